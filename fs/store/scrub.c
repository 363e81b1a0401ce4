/* A round takes about an hour, or less if the tier has less than 3.6 GiB. */
#include "fs/store/scrub.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/thread.h"
#include "fs/store/tier-read.h"

#define SLACK (100 * MILLISECOND) /* pauses are not shorter */
enum {
    ROUND_S = 3600,
    LEAST_RATE = 1 << 20, /* bytes per second */
    VISIT = 512,          /* looking at a value costs as much time as hashing this number of bytes */
};

/* False: scrub_stop was called. */
static bool pause_until(struct scrub *s, uint64_t when)
{
    LOCK_SCOPE(&s->lock);
    while (!s->stop && cond_wait_until(&s->ended, &s->lock, when))
        continue;
    return !s->stop;
}

static uint64_t rate_of(struct stock *k)
{
    LOCK_SCOPE(&k->lock);
    uint64_t rate = k->held / ROUND_S;
    return rate > LEAST_RATE ? rate : LEAST_RATE;
}

static bool scrub_value(struct scrub *s, const struct span *value)
{
    uint64_t now = clock_now(), bytes = tier_scrub(s->stock, value);
    atomic_fetch_add(&s->bytes, bytes);
    if (s->due < now)
        s->due = now;
    s->due += (bytes + VISIT) * SECOND / atomic_load(&s->rate);
    return s->due < now + SLACK || pause_until(s, s->due);
}

static bool scrub_file(struct scrub *s, uint32_t file)
{
    uint64_t size = catalog_file(s->stock->map->catalog, file).size;
    bool go_on = true;
    for (uint64_t offset = 0; offset < size && go_on; offset += VALUE_BYTES) {
        uint64_t left = size - offset;
        struct span value = {
            .file = file, .length = left < VALUE_BYTES ? (uint32_t)left : VALUE_BYTES, .offset = offset};
        go_on = scrub_value(s, &value);
    }
    return go_on;
}

static void *scrub_thread(void *object)
{
    struct scrub *s = object;
    uint32_t files = catalog_files(s->stock->map->catalog);
    bool go_on = true;
    while (go_on) {
        uint64_t begin = clock_now();
        atomic_store(&s->rate, rate_of(s->stock));
        for (uint32_t file = 0; file < files && go_on; file++)
            go_on = scrub_file(s, file);
        if (!go_on)
            break;
        atomic_fetch_add(&s->rounds, 1);
        go_on = pause_until(s, begin + SECOND);
    }
    return NULL;
}

int scrub_start(struct scrub *s, struct stock *stock)
{
    s->stock = stock;
    pthread_mutex_init(&s->lock, NULL);
    cond_init(&s->ended);
    int error = thread_create(&s->thread, "scrub", scrub_thread, s);
    s->running = !error;
    if (error) {
        pthread_cond_destroy(&s->ended);
        pthread_mutex_destroy(&s->lock);
    }
    return error;
}

void scrub_stop(struct scrub *s)
{
    if (!s->running)
        return;
    thread_stop(s->thread, &s->lock, &s->ended, &s->stop);
    pthread_cond_destroy(&s->ended);
    pthread_mutex_destroy(&s->lock);
    s->running = false;
}
