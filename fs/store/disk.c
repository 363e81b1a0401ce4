/* Threads: DISK_THREADS serve the queue. The watch looks for late reads every WATCH_MS, and sleeps while there are no
 * reads. The feeder's reads yield to all others, and use at most MOST_FED of these threads and half of the callers'
 * slots.
 *
 * A thread that reads the SSD uses a slot: a cache line of its own, so that successful reads share nothing.
 *
 *   began   start of the current read; 0: the slot is free
 *   ended   end of the last read
 *   read    what the thread reads for
 *
 * `read` belongs to the thread that changes it to NULL: the reading thread when it is done, the watch if that takes too
 * long, or the thread that cancels. A thread that finds NULL must not touch the read. (The slot may have got the same
 * read again since a thread looked. That is harmless: the thread that takes it still has a waiting read.) */
#include "fs/store/disk.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/thread.h"
#include "fs/store/fair.h"
#include "fs/store/store-inside.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define MOST_WAIT SECOND
enum { DISK_THREADS = 6, MOST_FED = 4, WATCH_MS = 200 };

struct disk_slot {
    _Alignas(CACHE_LINE) _Atomic uint64_t began, ended;
    _Atomic(struct store_read *) read;
};

struct disk_thread {
    struct disk *disk;
    struct disk_slot *slot;
    pthread_t thread;
};

struct disk {
    struct store *store;
    int callers;
    atomic_bool hangs, watched; /* hangs: bypass the SSD; watched: the watch is awake */

    pthread_mutex_t lock;
    pthread_cond_t work;     /* signals the threads: a read is queued, or `stopping` */
    pthread_cond_t wake;     /* signals the watch: a thread reads, or `stopping` */
    struct fair_queue queue; /* guarded by `lock`, like all fields below: */
    struct fair_turns turns;
    int fed_running;      /* of DISK_THREADS */
    atomic_bool stopping; /* written with the lock held */

    struct disk_thread own[DISK_THREADS];
    pthread_t watch;
    int threads; /* number of started threads; the watch is the last */
    int slots;   /* those of callers come first */
    struct disk_slot *slot;
};

/* --- slots --- */

static bool slot_take(struct disk_slot *slot)
{
    uint64_t none = 0;
    return !atomic_load_explicit(&slot->began, memory_order_relaxed) &&
           atomic_compare_exchange_strong(&slot->began, &none, clock_now());
}

/* Each thread starts its search at its own position, so that it usually gets the same slot. */
static struct disk_slot *slot_of_caller(struct disk *d, bool fed)
{
    unsigned number = thread_number();
    int slots = fed ? d->callers / 2 : d->callers;
    for (int i = 0; i < slots; i++) {
        struct disk_slot *slot = &d->slot[(number + (unsigned)i) % (unsigned)slots];
        if (slot_take(slot))
            return slot;
    }
    return NULL;
}

static void slot_fill(struct disk *d, struct disk_slot *slot, struct store_read *read)
{
    atomic_store(&slot->read, read);
    if (atomic_load(&d->watched))
        return;
    LOCK_SCOPE(&d->lock);
    atomic_store(&d->watched, true);
    pthread_cond_signal(&d->wake);
}

/* False: the read was taken away. */
static bool slot_empty(struct disk_slot *slot)
{
    bool ours = atomic_exchange(&slot->read, NULL);
    atomic_store_explicit(&slot->ended, clock_now(), memory_order_relaxed);
    atomic_store(&slot->began, 0);
    return ours;
}

static bool slot_steal(struct disk_slot *slot, struct store_read *read)
{
    return atomic_compare_exchange_strong(&slot->read, &read, NULL);
}

/* --- reading; the caller has the slot --- */

static int get_in_slot(struct disk *d, struct disk_slot *slot, struct store_read *read)
{
    struct span span = read->span;
    struct answer got;
    enum tier_name slowest;
    answer_init(&got);
    slot_fill(d, slot, read);
    int error = shard_get(d->store->shard, &span, TIER_SSD, &got, &slowest);
    if (!slot_empty(slot)) {
        answer_release(&got);
        return -EINPROGRESS;
    }
    if (!error) {
        read->place = slowest == TIER_RAM ? PLACE_RAM : PLACE_SSD;
        error = answer_append(&read->answer, &got, &span);
    }
    return error;
}

static int queue_add(struct disk *d, struct store_read *read)
{
    LOCK_SCOPE(&d->lock);
    if (atomic_load(&d->stopping))
        return -ESHUTDOWN;
    fair_add(&d->queue, read);
    store_waits(d->store, read, PLACE_SSD);
    pthread_cond_signal(&d->work);
    return -EINPROGRESS;
}

int disk_get(struct disk *d, struct store_read *read, bool may_wait)
{
    if (atomic_load_explicit(&d->stopping, memory_order_relaxed))
        return -ESHUTDOWN;
    if (atomic_load_explicit(&d->hangs, memory_order_relaxed))
        return -EBUSY;
    struct disk_slot *slot = may_wait ? slot_of_caller(d, read->fed) : NULL;
    return slot ? get_in_slot(d, slot, read) : queue_add(d, read);
}

/* The caller holds the lock. */
static struct store_read *queue_take(struct disk *d, enum fair_room fed)
{
    struct store_read *read = fair_take(&d->queue, &d->turns, fed);
    if (read)
        store_waits_no_more(d->store, read, PLACE_SSD);
    return read;
}

static void get_queued(struct disk *d, struct disk_slot *slot, struct store_read *read)
{
    slot_take(slot);
    int error = get_in_slot(d, slot, read);
    if (error != -EINPROGRESS)
        store_got(d->store, read, error);
}

static void *thread_main(void *argument)
{
    struct disk_thread *own = argument;
    struct disk *d = own->disk;
    pthread_mutex_lock(&d->lock);
    while (!atomic_load(&d->stopping)) {
        struct store_read *read = queue_take(d, d->fed_running < MOST_FED ? FAIR_WITHIN : FAIR_FULL);
        if (!read) {
            pthread_cond_wait(&d->work, &d->lock);
            continue;
        }
        bool fed = read->fed;
        fair_went(&d->turns, fed);
        d->fed_running += fed;
        pthread_mutex_unlock(&d->lock);
        get_queued(d, own->slot, read);
        pthread_mutex_lock(&d->lock);
        d->fed_running -= fed;
        if (fed && !fair_is_empty(&d->queue))
            pthread_cond_signal(&d->work);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* --- watching --- */

static bool anybody_reads(struct disk *d)
{
    for (int i = 0; i < d->slots; i++)
        if (atomic_load(&d->slot[i].began))
            return true;
    return false;
}

/* Does a read wait for too long while none was completed? One bad sector is not a hanging disk. */
static bool nobody_is_answered(struct disk *d, bool *late)
{
    uint64_t before = clock_now() - MOST_WAIT, ended = 0;
    *late = false;
    for (int i = 0; i < d->slots; i++) {
        uint64_t began = atomic_load(&d->slot[i].began), last = atomic_load(&d->slot[i].ended);
        *late |= began && began < before;
        ended = last > ended ? last : ended;
    }
    return *late && ended < before;
}

static void take_late(struct disk *d, uint64_t most, int error)
{
    uint64_t before = clock_now() - most;
    for (int i = 0; i < d->slots; i++) {
        uint64_t began = atomic_load(&d->slot[i].began);
        struct store_read *read = atomic_load(&d->slot[i].read);
        if (began && began <= before && read && slot_steal(&d->slot[i], read))
            store_got(d->store, read, error);
    }
}

static void take_queued(struct disk *d, int error)
{
    struct store_read *read;
    do {
        pthread_mutex_lock(&d->lock);
        read = queue_take(d, FAIR_WITHIN);
        pthread_mutex_unlock(&d->lock);
        if (read)
            store_got(d->store, read, error);
    } while (read);
}

static void watch(struct disk *d)
{
    bool late, hangs = nobody_is_answered(d, &late);
    if (hangs != atomic_exchange(&d->hangs, hangs))
        log_limited(LOG_LEVEL_WARNING, 5,
                    hangs ? "the SSD has not answered for 1 s: it is bypassed until it does" : "the SSD answers again");
    if (late)
        take_late(d, MOST_WAIT, -EBUSY);
    if (hangs)
        take_queued(d, -EBUSY);
}

static void *watch_main(void *argument)
{
    struct disk *d = argument;
    pthread_mutex_lock(&d->lock);
    while (!atomic_load(&d->stopping)) {
        /* A read that begins now either finds `watched` false, or anybody_reads finds it. */
        if (!atomic_load_explicit(&d->hangs, memory_order_relaxed))
            atomic_store(&d->watched, false);
        if (!atomic_load(&d->watched) && !anybody_reads(d))
            pthread_cond_wait(&d->wake, &d->lock);
        atomic_store(&d->watched, true);
        cond_wait_until(&d->wake, &d->lock, clock_now() + WATCH_MS * MILLISECOND);
        pthread_mutex_unlock(&d->lock);
        watch(d);
        pthread_mutex_lock(&d->lock);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

bool disk_cancel(struct disk *d, struct store_read *read)
{
    pthread_mutex_lock(&d->lock);
    bool found = fair_remove(&d->queue, read);
    pthread_mutex_unlock(&d->lock);
    if (found)
        store_waits_no_more(d->store, read, PLACE_SSD);
    for (int i = 0; i < d->slots && !found; i++)
        found = slot_steal(&d->slot[i], read);
    return found;
}

/* --- beginning and end --- */

static void init_sync(struct disk *d)
{
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->work, NULL);
    cond_init(&d->wake);
}

static int start_threads(struct disk *d)
{
    int error = 0;
    for (; !error && d->threads < DISK_THREADS; d->threads += !error) {
        struct disk_thread *own = &d->own[d->threads];
        *own = (struct disk_thread){.disk = d, .slot = &d->slot[d->callers + d->threads]};
        error = thread_create(&own->thread, "disk", thread_main, own);
    }
    if (!error) {
        error = thread_create(&d->watch, "disk-watch", watch_main, d);
        d->threads += !error;
    }
    return error;
}

int disk_create(struct store *store, int callers, struct disk **disk)
{
    struct disk *d = calloc(1, sizeof *d);
    if (!d)
        return -ENOMEM;
    d->store = store;
    d->callers = callers;
    d->slots = callers + DISK_THREADS;
    fair_init(&d->queue);
    init_sync(d);
    d->slot = aligned_alloc(CACHE_LINE, (size_t)d->slots * sizeof *d->slot);
    int error = d->slot ? 0 : -ENOMEM;
    for (int i = 0; d->slot && i < d->slots; i++)
        d->slot[i] = (struct disk_slot){0};
    if (!error)
        error = start_threads(d);
    if (error)
        disk_destroy(d);
    else
        *disk = d;
    return error;
}

void disk_stop(struct disk *d)
{
    pthread_mutex_lock(&d->lock);
    atomic_store(&d->stopping, true);
    pthread_cond_broadcast(&d->work);
    pthread_cond_signal(&d->wake);
    pthread_mutex_unlock(&d->lock);
    if (d->slot)
        take_late(d, 0, -ESHUTDOWN);
    take_queued(d, -ESHUTDOWN);
}

void disk_join(struct disk *d)
{
    if (!d)
        return;
    disk_stop(d);
    for (; d->threads; d->threads--)
        pthread_join(d->threads > DISK_THREADS ? d->watch : d->own[d->threads - 1].thread, NULL);
}

void disk_destroy(struct disk *d)
{
    if (!d)
        return;
    disk_join(d);
    pthread_cond_destroy(&d->work);
    pthread_cond_destroy(&d->wake);
    pthread_mutex_destroy(&d->lock);
    free(d->slot);
    free(d);
}
