/* `umount`: tell all other nodes of the world to take their mounts away. This one's is taken away by who asks. */
#include "fs/mount/control/world.h"

#include <errno.h>
#include <string.h>

static int run(struct control *control, const struct request *request, const struct asker *asker, struct str *reply,
               struct str *why)
{
    int error = control->config.peers ? peers_command(control->config.peers, WORLD_UMOUNT, 0) : -ENOTCONN;

    (void)request, (void)asker, (void)reply;
    if (error == -ENOTCONN)
        str_adds(why, "this node is alone: there is nobody to be told");
    else if (error)
        str_addf(why, "cannot tell the other nodes: %s", strerror(-error));
    return error;
}

static const struct request_key keys[] = {{0}};

const struct verb verb_umount = {
    .name = "umount",
    .usage = "umount                             every other node of the world takes its mount away",
    .keys = keys,
    .run = run,
};
