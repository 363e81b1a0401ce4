/* Faults for tests: answers that go wrong on their way out. DEALFS_COURIER_FAULTS=damage:10,short:7 spoils every tenth
 * answer in one way, every seventh in another. */
#ifndef MPI_FAULTS_H
#define MPI_FAULTS_H

#include <stddef.h>
#include <stdint.h>

enum fault {
    FAULT_NONE,
    FAULT_DAMAGE, /* a byte of the payload is another */
    FAULT_SHORT,  /* its end is missing */
    FAULT_NEVER,  /* it is not sent */
    FAULT_TWICE,  /* it is sent twice */
    FAULTS
};

struct faults {
    uint32_t every[FAULTS], count[FAULTS]; /* 0: never */
};

int faults_parse(const char *text, struct faults *faults); /* NULL: none; -EINVAL */
enum fault faults_next(struct faults *faults);             /* for this answer; NULL: none */
void faults_damage(void *payload, size_t n);

#endif
