/* Requests while no server lives: each that has waited for `patience` gets EIO from the keeper, whether it is in a slot
 * or still in the kernel. Requests of processes that are being killed are answered at once. */
#ifndef FS_KEEPER_STRANDED_H
#define FS_KEEPER_STRANDED_H

#include <stdint.h>

struct handover;
struct stranded {
    struct handover *handover;
    uint64_t patience;   /* nanoseconds */
    uint64_t queued[2];  /* since when the kernel has requests of the data or control mount; 0: it has none */
    uint64_t dying_next; /* when to check next which processes are being killed */
};

/* `patience`: nanoseconds. */
void stranded_init(struct stranded *stranded, struct handover *handover, uint64_t patience);
/* Call it several times per second while no server runs. `lived`: when the last one died. Never blocks. */
void stranded_look(struct stranded *stranded, uint64_t lived);
/* A server runs: it takes the requests from the kernel. */
void stranded_forget(struct stranded *stranded);

#endif
