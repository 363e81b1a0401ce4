/* A few open files of the source, kept for a moment: large files are read in many pieces, and an open can cost more
 * than a read. A handle is taken out by one reader at a time. None is kept longer than a second after it was opened, so
 * that a network file system revalidates the file about as often as if every read had opened it. */
#ifndef FS_STORE_HANDLES_H
#define FS_STORE_HANDLES_H

#include <pthread.h>
#include <stdint.h>

struct handle {
    int fd; /* -1: none */
    uint32_t file;
    uint64_t opened; /* clock_now */
};

enum { HANDLES = 16 };
struct handles {
    pthread_mutex_t lock;
    struct handle kept[HANDLES]; /* lock */
};

void handles_init(struct handles *h);
void handles_fini(struct handles *h);

int handles_take(struct handles *h, uint32_t file, struct handle *out); /* 0 or -ENOENT */
void handles_give(struct handles *h, struct handle handle);             /* keeps or closes it */
void handles_expire(struct handles *h);                                 /* close what is too old */

#endif
