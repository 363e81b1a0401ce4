/* Reads an epoch.
 *
 * Threads: each takes the next place of the shuffled order, opens, reads and closes that file. They share only atomic
 * counters. */
#include "cli/lab/epoch.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/base/hash.h"
#include "fs/base/str.h"
#include "fs/base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS_MOST = 64, FILE_MOST = 1 << 30 };

struct reading {
    const struct epoch *epoch;
    const uint32_t *order;
    uint64_t began;
    _Atomic uint32_t next;
    _Atomic uint64_t bytes, sum;
    _Atomic int error;
};

/* Fisher-Yates; with a 64-bit generator, the remainder is good enough. */
static uint32_t *epoch_shuffle(uint32_t files, uint64_t seed)
{
    uint32_t *order = calloc((size_t)files + 1, sizeof *order);
    for (uint32_t i = 0; order && i < files; i++) {
        uint32_t j = (uint32_t)(hash64(&i, sizeof i, seed) % (i + 1));
        order[i] = order[j];
        order[j] = i;
    }
    return order;
}

static int read_one(struct reading *r, uint32_t place, struct str *text)
{
    int root = r->epoch->root[place % (uint32_t)r->epoch->roots];
    CLEANUP_CLOSE int fd = openat(root, r->epoch->path[r->order[place]], O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    str_clear(text);
    int error = file_read_fd(fd, FILE_MOST, text);
    if (error)
        return error;
    atomic_fetch_add(&r->bytes, text->length);
    atomic_fetch_add(&r->sum, hash64(text->length > 0 ? text->data : "", text->length, 0));
    return 0;
}

/* Wait until the bytes so far are allowed by the rate. */
static void keep_rate(const struct reading *r)
{
    uint64_t elapsed = clock_now() - r->began;
    uint64_t due = (uint64_t)((double)atomic_load(&r->bytes) / (double)r->epoch->rate * 1e9);
    uint64_t wait = due > elapsed ? due - elapsed : 0;
    clock_sleep(wait);
}

static void *epoch_body(void *user)
{
    struct reading *r = user;
    CLEANUP_STR struct str text = STR_INIT;
    while (atomic_load(&r->error) == 0) {
        uint32_t place = atomic_fetch_add(&r->next, 1);
        int none = 0;
        if (place >= r->epoch->files)
            break;
        int error = *r->epoch->stop ? -ECANCELED : read_one(r, place, &text);
        if (error)
            atomic_compare_exchange_strong(&r->error, &none, error);
        else if (r->epoch->rate > 0)
            keep_rate(r);
    }
    return NULL;
}

int epoch_read(struct epoch *epoch)
{
    CLEANUP_FREE uint32_t *drawn = epoch->order ? NULL : epoch_shuffle(epoch->files, epoch->seed);
    struct reading reading = {.epoch = epoch, .order = epoch->order ? epoch->order : drawn, .began = clock_now()};
    pthread_t thread[THREADS_MOST];
    if (!reading.order)
        return -ENOMEM;
    int most = epoch->threads < THREADS_MOST ? epoch->threads : THREADS_MOST;
    int started = threads_start(thread, most, "epoch", epoch_body, &reading);
    threads_join(thread, started);
    epoch->elapsed = clock_now() - reading.began;
    epoch->bytes = atomic_load(&reading.bytes);
    epoch->sum = atomic_load(&reading.sum);
    return started == 0 ? -EAGAIN : atomic_load(&reading.error);
}

void epoch_forget(const struct epoch *epoch)
{
    for (int root = 0; root < epoch->roots; root++)
        for (uint32_t i = 0; i < epoch->files; i++) {
            CLEANUP_CLOSE int fd = openat(epoch->root[root], epoch->path[i], O_RDONLY | O_CLOEXEC);
            if (fd >= 0)
                posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        }
}
