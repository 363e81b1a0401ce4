/* Bytes that concurrent work may use together. */
#ifndef FS_IMAGE_ALLOWANCE_H
#define FS_IMAGE_ALLOWANCE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct allowance {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t most, used; /* guarded by lock */
    bool first;          /* guarded by lock: a thread waits for bytes, and the others wait for it */
};

void allowance_init(struct allowance *allowance, uint64_t most);
void allowance_fini(struct allowance *allowance);
/* Waits until there is room; threads that ask later do not overtake it. More than `most` are granted when nothing else
 * is in use. -EINTR: `gave_up`, which is called several times per second, has returned true (NULL: never). */
int allowance_take(struct allowance *allowance, uint64_t bytes, bool (*gave_up)(void *user), void *user);
void allowance_give(struct allowance *allowance, uint64_t bytes);

#endif
