/* The wraps' table of descriptors. Sockets, pipes and files are the kernel's; eventfds and epolls are modelled. */
#ifndef TESTS_SIM_DESCRIPTORS_H
#define TESTS_SIM_DESCRIPTORS_H

#include "tests/sim/sched-inside.h"

#include <sys/types.h>

enum { FDS = 65536 };

struct event;
struct epoll;

struct descriptor {
    struct sim_process *owner; /* NULL: not made by a simulated thread */
    uint64_t timeout[2];       /* for receiving and sending; 0: none */
    dev_t device;              /* of the file that a socket is bound to */
    ino_t inode;
    int peer; /* process at the other end; 0: not known */
    enum { UNKNOWN, FILE_LIKE, WAITS } kind;
    bool flags_known, blocking; /* blocking: no O_NONBLOCK */
    short seen;                 /* what poll said */
    uint64_t asked;             /* `seen` is right while this is the number of changes of the kernel's descriptors */
    struct event *event;        /* an eventfd */
    struct epoll *epoll;
};

extern struct descriptor sim_fd_table[FDS];
extern int sim_fd_end; /* none is in use from here on */

/* The calling thread is simulated, and this can be a descriptor. */
static inline bool fd_is_known(int fd)
{
    return sim_is_simulated() && fd >= 0 && fd < FDS;
}

/* wrap-files.c */
int fd_own(int fd);    /* the calling thread has made it; errors pass through */
bool fd_waits(int fd); /* calls on it may have to wait */

/* wrap-events.c */
void fd_came(int fd);   /* by a message */
void fd_leaves(int fd); /* it is closed */
void fd_set_flags(int fd, int flags);
/* True: the call may be made, and answers at once, if only by EAGAIN. */
bool fd_await(int fd, short events, int flags, const char *what);
ssize_t fd_changed(ssize_t result);   /* after a call that gave others something: they look again */
ssize_t fd_made_room(ssize_t result); /* after a call that took something */

#endif
