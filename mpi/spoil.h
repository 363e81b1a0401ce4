/* Answers that go wrong on their way out, for tests. DEALFS_COURIER_FAULTS=damage:10,short:7 spoils every tenth answer
 * in one way, every seventh in another: counted and not drawn, so that a test knows what comes. */
#ifndef MPI_SPOIL_H
#define MPI_SPOIL_H

#include <stddef.h>
#include <stdint.h>

enum spoil_way {
    SPOIL_NONE,
    SPOIL_DAMAGE, /* a byte of the payload is another */
    SPOIL_SHORT,  /* its end is missing */
    SPOIL_NEVER,  /* it is not sent */
    SPOIL_TWICE,  /* it is sent twice */
    SPOIL_WAYS
};

struct spoil {
    uint32_t every[SPOIL_WAYS], count[SPOIL_WAYS]; /* 0: never */
};

int spoil_parse(const char *text, struct spoil *spoil); /* NULL: nothing; -EINVAL */
enum spoil_way spoil_next(struct spoil *spoil);         /* for this answer */
void spoil_damage(void *payload, size_t n);

#endif
