#include "fs/store/proof.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/str.h"
#include "fs/base/thread.h"
#include "fs/store/disk.h"
#include "fs/store/store-inside.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>

/* A read of the SSD for which a thread waits. */
struct drawing {
    struct store_read read; /* the first field */
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool over; /* lock */
    int error; /* lock */
};

static void drawing_done(struct store_read *read, int error)
{
    struct drawing *drawing = (struct drawing *)read;
    LOCK_SCOPE(&drawing->lock);
    drawing->error = error;
    drawing->over = true;
    pthread_cond_signal(&drawing->ended);
}

static int draw_from_disk(struct store *s, const struct span *span, struct answer *answer)
{
    struct drawing drawing = {.read = {.span = *span, .done = drawing_done, .drawn = true, .quiet = true}};
    if (!s->disk)
        return -ENOENT;
    pthread_mutex_init(&drawing.lock, NULL);
    cond_init(&drawing.ended);
    int error = disk_get(s->disk, &drawing.read, false);
    if (error == -EINPROGRESS) {
        pthread_mutex_lock(&drawing.lock);
        while (!drawing.over)
            pthread_cond_wait(&drawing.ended, &drawing.lock);
        error = drawing.error;
        pthread_mutex_unlock(&drawing.lock);
    }
    pthread_cond_destroy(&drawing.ended);
    pthread_mutex_destroy(&drawing.lock);
    if (!error)
        *answer = drawing.read.answer;
    return error;
}

static bool is_held(const struct store *s, uint32_t file, uint64_t value)
{
    return shard_where(s->shard, file, value * VALUE_BYTES) != TIERS;
}

/* The first cached value from a random one on. */
static bool find_value(const struct store *s, uint32_t file, uint64_t *value)
{
    uint64_t values = catalog_kept_size(s->catalog, file) ? file_values(s->catalog, file) : 0, random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) < 0)
        random = clock_now();
    for (uint64_t i = 0; i < values; i++) {
        *value = (random % values + i) % values;
        if (is_held(s, file, *value))
            return true;
    }
    return false;
}

int proof_draw(struct store *s, uint32_t file, struct span *span, struct answer *answer)
{
    enum { TRIES = 8 }; /* a value can be dropped, or move, between the look and the read */
    for (int i = 0; i < TRIES; i++) {
        enum tier_name slowest;
        uint64_t value;
        if (!find_value(s, file, &value))
            return shard_is_locked(s->shard) ? -EBUSY : -ENOENT;
        *span = (struct span){file, value_raw(s->catalog, file, value), value * VALUE_BYTES};
        int error = shard_get(s->shard, span, TIER_RAM, answer, &slowest);
        if (error)
            error = draw_from_disk(s, span, answer);
        if (error != -ENOENT)
            return error;
    }
    return -EBUSY;
}

bool proof_equal(const struct answer *drawn, const char *bytes, size_t n)
{
    size_t at = 0;
    for (int i = 0; i < drawn->pieces && at + drawn->piece[i].iov_len <= n; i++) {
        if (memcmp(bytes + at, drawn->piece[i].iov_base, drawn->piece[i].iov_len) != 0)
            return false;
        at += drawn->piece[i].iov_len;
    }
    return at == n;
}

static void log_drop(const struct catalog *c, uint32_t file)
{
    CLEANUP_STR struct str name = STR_INIT;
    char path[CATALOG_PATH_MAX];
    long n = catalog_path(c, catalog_file_ino(c, file), path, sizeof path);
    str_add_printable(&name, path, n < 0 ? 0 : (size_t)n);
    log_limited(LOG_LEVEL_WARNING, 10, "%.1000s has changed, not only its mode, owner or links: its data is dropped",
                name.data ? name.data : "?");
}

void proof_drop(struct store *s, uint32_t file, bool scanned)
{
    log_drop(s->catalog, file);
    atomic_store(&s->doubts.file[file], DOUBT_STALE);
    atomic_store(&s->doubts.any, true);
    shard_distrust(s->shard, file, scanned);
}
