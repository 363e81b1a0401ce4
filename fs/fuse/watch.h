/* The watch over a session's requests in progress. It answers for readers that are killed while they wait, and reports
 * how long requests wait.
 *
 * Even after SIGKILL, the kernel does not end a process whose request the server has read, until that is answered. It
 * sends an INTERRUPT for the first signal of any kind, none for a second one, and for some reads (O_DIRECT) none at
 * all. So INTERRUPT only triggers a look: /proc shows whether a signal is pending that ends the process. While requests
 * wait, the watch looks several times per second. Signals of profilers and timers change nothing. */
#ifndef FS_FUSE_WATCH_H
#define FS_FUSE_WATCH_H

#include "fs/fuse/slots.h"

struct watch;

struct watch_config {
    struct slots *slots;
    int fd;                                      /* /dev/fuse */
    int readers;                                 /* number of threads that run handlers */
    struct pulse *pulse;                         /* where it reports */
    bool (*cancel)(void *user, uint64_t unique); /* as in session_config */
    void *cancel_user;
};

int watch_create(const struct watch_config *config, struct watch **watch);
void watch_stop(struct watch *watch); /* it stops looking */
void watch_destroy(struct watch *watch);
/* An INTERRUPT has arrived. */
void watch_interrupt(struct watch *watch, const struct fuse_in_header *in);
/* A handler has replied to a request that the watch had already answered. */
void watch_late_reply(struct watch *watch);

#endif
