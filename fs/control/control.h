/* The control mount: a small tree of generated files, and `control`, a stream of requests and replies. */
#ifndef FS_CONTROL_CONTROL_H
#define FS_CONTROL_CONTROL_H

#include <fuse_lowlevel.h>

#include "fs/catalog/samples.h"
#include "fs/attach/config.h"
#include "fs/store/store.h"
#include "fs/wire/ring.h"
#include "fs/world/self.h"

struct control;
struct feed;
struct handover;
struct peers;

struct control_config {
    const struct mount_config *mount;
    const struct catalog *catalog; /* NULL: it comes later, with control_fill */
    struct store *store;
    struct peers *peers;           /* NULL: none */
    uint32_t generation;           /* of this server: handles of another are ESTALE */
    const uint32_t *keeper;        /* its process id, which changes when it is replaced */
    struct staging *staging;       /* where to note it; NULL: nowhere */
    int state;                     /* the state directory, to see whether it is still there; 0: not looked at */
    const struct derived *derived; /* NULL: files are as the source has them */
    struct derived_counts *remade; /* with that */
    struct handover *handover;     /* what is said of the servers; NULL: nothing */
    struct feed *feed;             /* NULL: none */
};

int control_create(const struct control_config *config, struct control **control);
/* Before its session stops: waits a moment for threads that the kernel has wait for answers of that session. */
void control_stop(struct control *control);
void control_destroy(struct control *control);
/* Once, from any thread: what was not there yet when control was made. Before, what needs it says EAGAIN. */
int control_fill(struct control *control, const struct catalog *catalog, struct store *store,
                 const struct derived *derived);

/* What another node has begun; as peers_config.command. */
void control_command(void *control, enum world_command command, uint64_t token);
/* As peers_config.joined and .blob: uploaded lists go to and fro. */
void control_joined(void *control);
ssize_t control_blob(void *control, const struct blob_question *question, void *to, size_t room, uint64_t *length);

extern const struct fuse_lowlevel_ops control_ops; /* userdata: struct control */

#endif
