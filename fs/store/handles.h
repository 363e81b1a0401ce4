/* Caches a few open files of the source: large files are read in many pieces, and an open can cost more than a read.
 * One reader at a time takes a handle out. Handles are closed one second after they were opened, so that a network
 * filesystem revalidates a file about as often as if every read opened it. */
#ifndef FS_STORE_HANDLES_H
#define FS_STORE_HANDLES_H

#include <pthread.h>
#include <stdint.h>

struct handle {
    int fd; /* -1: none */
    uint32_t file;
    uint64_t opened; /* in the clock of clock_now */
};

enum { HANDLES = 16 };
struct handles {
    pthread_mutex_t lock;
    struct handle kept[HANDLES]; /* guarded by lock */
};

void handles_init(struct handles *h);
void handles_fini(struct handles *h);

int handles_take(struct handles *h, uint32_t file, struct handle *out); /* 0 or -ENOENT */
void handles_give(struct handles *h, struct handle handle);             /* caches or closes it */
void handles_expire(struct handles *h);                                 /* closes old handles */

#endif
