/* The watch over the requests that a session has in progress. A reader that is killed while it waits is let go at once,
 * and what all of them wait for is said.
 *
 * The kernel lets nobody go who waits for a request that the server has read, not even after SIGKILL, until that is
 * answered. It sends an INTERRUPT for the first signal of any kind, and none for a second one; for some reads it sends
 * none at all (O_DIRECT). So INTERRUPT only makes the watch look: whether a signal that ends the asker is pending says
 * /proc, a few times per second for as long as a request waits. Signals of profilers and timers change nothing. */
#ifndef FS_FUSE_WATCH_H
#define FS_FUSE_WATCH_H

#include "fs/fuse/slots.h"

struct watch;

struct watch_config {
    struct slots *slots;
    int fd;                                      /* /dev/fuse */
    int readers;                                 /* threads that run the handlers */
    struct pulse *pulse;                         /* where what it sees is said */
    bool (*cancel)(void *user, uint64_t unique); /* as in session_config */
    void *cancel_user;
};

int watch_create(const struct watch_config *config, struct watch **watch);
void watch_stop(struct watch *watch); /* it looks no more */
void watch_destroy(struct watch *watch);
/* An INTERRUPT has come. */
void watch_interrupt(struct watch *watch, const struct fuse_in_header *in);
/* A handler has replied to what the watch had answered before. */
void watch_late_reply(struct watch *watch);

#endif
