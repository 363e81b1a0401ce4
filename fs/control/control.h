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
    const struct catalog *catalog; /* NULL: control_fill sets it later */
    struct store *store;
    struct peers *peers;           /* NULL: none */
    uint32_t generation;           /* of this server: handles of other servers are ESTALE */
    const uint32_t *keeper;        /* the keeper's process id, which changes when it is replaced */
    struct staging *staging;       /* where staging is recorded; NULL: nowhere */
    int state;                     /* the state directory, to check that it still exists; 0: not checked */
    const struct derived *derived; /* NULL: files are as in the source */
    struct derived_counts *remade; /* set if `derived` is */
    struct handover *handover;     /* records about servers; NULL: none */
    struct feed *feed;             /* NULL: none */
};

int control_create(const struct control_config *config, struct control **control);
/* Call it before the session stops. Waits briefly for threads that the kernel lets wait for answers of that session. */
void control_stop(struct control *control);
void control_destroy(struct control *control);
/* Sets what was unknown in control_create. Called once, by any thread. Before, requests that need it fail with
 * EAGAIN. */
int control_fill(struct control *control, const struct catalog *catalog, struct store *store,
                 const struct derived *derived);

/* A command of another node; see peers_config.command. */
void control_command(void *control, enum world_command command, uint64_t token);
/* See peers_config.joined and .blob: nodes exchange uploaded lists. */
void control_joined(void *control);
ssize_t control_blob(void *control, const struct blob_question *question, void *to, size_t room, uint64_t *length);

extern const struct fuse_lowlevel_ops control_ops; /* userdata: struct control */

#endif
