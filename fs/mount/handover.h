/* What a mount consists of while processes come and go: descriptors with fixed numbers, and shared memory.
 *
 * The command opens or makes them all and executes `dealfs-keeper STATE`; the keeper executes `dealfs-server STATE`,
 * and each starts the other again with the same descriptors when it dies. A number that a mount does not need is
 * closed. */
#ifndef FS_MOUNT_HANDOVER_H
#define FS_MOUNT_HANDOVER_H

#include <stdatomic.h>
#include <stdint.h>

enum handover_fd {
    FD_DATA = 3,    /* /dev/fuse of the data mount */
    FD_CONTROL = 4, /* /dev/fuse of the control mount */
    FD_SHARED = 5,  /* memfd: struct handover; made by the first keeper where absent */
    FD_LOCK = 6,    /* STATE/lock, flock held: one mount for a state directory */
    FD_READY = 7,   /* write end of a pipe to the command, first start only. One line: "ready", or what went wrong */
    FD_LIFE = 8,    /* read end of a pipe; when it hangs up the keeper takes the mount away (run, -f) */
    FD_RAM = 9,     /* the root of the RAM tier's detached tmpfs */
    FD_SOURCE = 10, /* the source's root */
    FD_LOG = 11,    /* the log */
    FD_LAST = FD_LOG
};

/* Exit statuses of the server that mean something to the keeper. */
enum { SERVER_ENDED = 0, SERVER_REFUSED = 2 /* it said why, and would say the same again: do not restart */ };

enum handover_flags {
    HANDOVER_READY = 1,   /* a server has said so to the command */
    HANDOVER_ENDED = 2,   /* the data mount is gone */
    HANDOVER_REFUSED = 4, /* as SERVER_REFUSED, for a keeper that is not the server's parent */
    HANDOVER_FILLED = 8,  /* of a mount made with wait_join: a courier has brought the catalog */
    HANDOVER_LEAVE = 16,  /* the keeper is to take the mount away */
};

/* Staging that was begun, which the next server goes on with; unless it is what servers die of. */
struct staging {
    _Atomic uint64_t round;  /* 0: none, or it was stopped */
    _Atomic uint32_t deaths; /* of servers since */
};

/* The numbers that a keeper and a server leave to those after them. The lanes (fs/mount/slots.h), with the requests
 * themselves, follow it in the same memory. Everything in it may be cut off between any two stores by a kill -9. */
struct handover {
    uint32_t magic, layout;
    uint64_t size;
    _Atomic uint32_t keeper, server; /* process ids */
    _Atomic uint32_t generation;     /* servers started so far: the running one's number, from 1 */
    _Atomic uint32_t flags;          /* enum handover_flags */
    _Atomic uint32_t failures;       /* servers in a row that died before they answered a request */
    _Atomic uint64_t started;        /* when the running one was: nanoseconds, monotonic */
    _Atomic uint64_t answered;       /* requests that those before it had answered */
    _Atomic uint32_t minors_known;   /* the two device numbers are set */
    uint32_t data_minor, control_minor;
    uint64_t data_lane, control_lane; /* offsets of struct lane */
    struct staging staging;
};

struct lane;

/* Map FD_SHARED, after making and laying it out when `create` is set and the descriptor is closed. -ESTALE: of another
 * layout (a server of another version). */
int handover_open(int create, struct handover **handover);
void handover_close(struct handover *handover);
struct lane *handover_data(struct handover *handover);
struct lane *handover_control(struct handover *handover);
uint64_t handover_answered(struct handover *handover); /* requests, by all servers so far */

/* The binary that stands beside this one, or in ../libexec/dealfs seen from it: dealfs-keeper, dealfs-server. Returns 0
 * or -ENOENT. */
int handover_find_program(const char *name, char *path, unsigned long n);
/* Put a close-on-exec placeholder on each number of the list above that is closed, so that nothing else ever gets it.
 */
int handover_reserve(void);
int handover_has(int fd);   /* open, and not a placeholder */
void handover_drop(int fd); /* close it; a placeholder takes its number */
/* Close what is above FD_LAST, for a child that is about to execute a program with the descriptors of a mount. */
void handover_close_others(void);

#endif
