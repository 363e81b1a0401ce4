/* A FUSE session whose requests live in shared memory, so that the next server can answer what this one could not.
 *
 * Each thread reads a request straight into a slot; the slot is freed when its reply has been written. Replies may be
 * sent by any thread and at any time, by the usual fuse_reply_*. */
#ifndef FS_MOUNT_SESSION_H
#define FS_MOUNT_SESSION_H

#include "fs/mount/slots.h"

#include <fuse_lowlevel.h>

struct session;

struct session_config {
    const char *name;  /* "data", "control" */
    int fd;            /* /dev/fuse; closed by session_destroy */
    struct lane *lane; /* its slots and its recorded INIT in the shared memory */
    int threads;
    const struct fuse_lowlevel_ops *ops;
    void *user;      /* fuse_req_userdata */
    bool interrupts; /* pass FUSE_INTERRUPT on; else it is refused once and never sent again */
    /* Called once, from a thread of the session: no more requests will come. 0: the file system was unmounted, or its
     * connection aborted; -errno: this server cannot serve it (the next one may). */
    void (*ended)(void *user, int error);
    void *ended_user;
};

int session_create(const struct session_config *config, struct session **session);
/* Answers INIT or replays it, then replays what the slots hold, then serves. Returns at once. */
int session_start(struct session *session);
/* Waits until INIT has been answered. 0, or -ENODEV when the session ended before. */
int session_wait(struct session *session);
/* Session threads stop reading new requests and are joined; for sanitizer runs and after `ended`. */
void session_stop(struct session *session);
void session_destroy(struct session *session);

/* libfuse's, for notifications to the kernel. */
struct fuse_session *session_fuse(struct session *session);

#endif
