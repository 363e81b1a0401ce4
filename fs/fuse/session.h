/* A FUSE session whose requests are in shared memory, so that the next server can answer what this one could not.
 *
 * Each thread reads a request directly into a slot; the slot is freed when its reply has been written. Replies may be
 * sent by any thread at any time, with the usual fuse_reply_*. */
#ifndef FS_FUSE_SESSION_H
#define FS_FUSE_SESSION_H

#include "fs/fuse/slots.h"

#include <fuse_lowlevel.h>

struct session;

struct session_config {
    const char *name;  /* "data", "control" */
    int fd;            /* /dev/fuse; closed by session_destroy */
    struct lane *lane; /* its slots and its recorded INIT in shared memory */
    int threads;
    const struct fuse_lowlevel_ops *ops;
    void *user;      /* fuse_req_userdata */
    bool interrupts; /* pass FUSE_INTERRUPT to libfuse */
    /* A READ fails with EIO after two servers died while it was in progress, and then all READs of its file for a
     * minute; else after BLAME_MOST, and then READs that overlap it. */
    bool strict_reads;
    bool killed;         /* the last server did not die by itself: it was killed */
    bool foreign_pids;   /* process ids of requests mean nothing here: each becomes 0 */
    struct pulse *pulse; /* enables the watch over waiting requests (watch.h), which INTERRUPT serves. NULL: none */
    /* Called by the watch: nobody waits for this request. True: it is answered, or just being answered; else it
     * continues, and its reply is dropped. Not called after session_stop. NULL: all requests continue. */
    bool (*cancel)(void *user, uint64_t unique);
    void *cancel_user;
    /* Called once, by a thread of the session: there will be no more requests. 0: the filesystem was unmounted, or its
     * connection aborted; -errno: this server cannot serve it (the next one may). */
    void (*ended)(void *user, int error);
    void *ended_user;
};

int session_create(const struct session_config *config, struct session **session);
/* Answers or replays INIT, replays requests in the slots, then serves. Returns at once. */
int session_start(struct session *session);
/* Waits until INIT is answered. 0, or -ENODEV: the session ended before. */
int session_wait(struct session *session);
/* The session's threads stop reading and are joined; for sanitizer runs and after `ended`. */
void session_stop(struct session *session);
void session_destroy(struct session *session);

/* The request that this thread's handler has, for another thread to continue; none outside of a handler. */
struct session_request {
    struct session *session;
    uint64_t unique; /* increases with each request of the kernel; 0: none */
};
struct session_request session_request(void);
/* Called by the thread that continues: a crash now counts as a crash of the handler. */
void session_resume(const struct session_request *request);
/* Makes the kernel drop a range of a file's pages. This waits for READs of these pages, so a thread that owes a reply
 * must not call it. */
void session_drop_pages(struct session *session, uint64_t ino, uint64_t offset, uint64_t length);
/* Makes the kernel ask for an inode's attributes again. Waits only for INIT, and the session's end. */
void session_drop_attributes(struct session *session, uint64_t ino);

#endif
