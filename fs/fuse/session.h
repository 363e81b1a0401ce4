/* A FUSE session whose requests live in shared memory, so that the next server can answer what this one could not.
 *
 * Each thread reads a request straight into a slot; the slot is freed when its reply has been written. Replies may be
 * sent by any thread and at any time, by the usual fuse_reply_*. */
#ifndef FS_FUSE_SESSION_H
#define FS_FUSE_SESSION_H

#include "fs/fuse/slots.h"

#include <fuse_lowlevel.h>

struct session;

struct session_config {
    const char *name;  /* "data", "control" */
    int fd;            /* /dev/fuse; closed by session_destroy */
    struct lane *lane; /* its slots and its recorded INIT in the shared memory */
    int threads;
    const struct fuse_lowlevel_ops *ops;
    void *user;          /* fuse_req_userdata */
    bool interrupts;     /* libfuse gets FUSE_INTERRUPT */
    struct pulse *pulse; /* a watch is kept over what waits, see watch.h, which INTERRUPT is for. NULL: none */
    /* The watch's: nobody waits for this request any more. True: it is answered, or just being answered; else it goes
     * on, and its reply is dropped. Not called any more after session_stop. NULL: all go on. */
    bool (*cancel)(void *user, uint64_t unique);
    void *cancel_user;
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

/* The request that this thread's handler is in, for another thread to go on with; none outside of a handler. */
struct session_request {
    struct session *session;
    uint64_t unique; /* grows with each that the kernel sends; 0: none */
};
struct session_request session_request(void);
/* To be called by the thread that goes on: what dies with it now is counted as for handlers. */
void session_resume(const struct session_request *request);
/* The kernel drops the pages of a file that are in this range. It waits for READs of them, so only a thread that owes
 * no reply may call it. */
void session_drop_pages(struct session *session, uint64_t ino, uint64_t offset, uint64_t length);

#endif
