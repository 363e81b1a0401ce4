/* Injects faults into answers, for tests. DEALFS_COURIER_FAULTS=damage:10,short:7 changes every tenth answer in one
 * way, every seventh in another. They are counted, not random, so that tests are reproducible. */
#ifndef MPI_SPOIL_H
#define MPI_SPOIL_H

#include <stddef.h>
#include <stdint.h>

enum spoil_way {
    SPOIL_NONE,
    SPOIL_DAMAGE, /* a byte of the payload is changed */
    SPOIL_SHORT,  /* its end is missing */
    SPOIL_NEVER,  /* it is not sent */
    SPOIL_TWICE,  /* it is sent twice */
    SPOIL_WAYS
};

struct spoil {
    uint32_t every[SPOIL_WAYS], count[SPOIL_WAYS]; /* every: 0: never */
};

int spoil_parse(const char *text, struct spoil *spoil); /* NULL: no faults; -EINVAL */
enum spoil_way spoil_next(struct spoil *spoil);         /* the fault of the next answer */
void spoil_damage(void *payload, size_t n);

#endif
