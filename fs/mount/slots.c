/* Requests in shared memory: the private view of one server.
 *
 * Threads: any. `lock` guards the lists of free and waiting slots; a stripe of `index` guards the chains of its buckets
 * and the private entries of the slots in them. The two are never held together. The words in shared memory are written
 * by whoever owns the slot at the time; nobody reads them but a later server. */
#include "fs/mount/slots.h"

#include "fs/base/cleanup.h"
#include "fs/mount/process.h"

#include <pthread.h>
#include <string.h>

enum { BUCKETS = 1024, STRIPES = 32, PAGE = 4096 };

struct entry {
    uint64_t unique;
    int next;      /* in the bucket's chain */
    bool busy;     /* its handler has not returned */
    bool answered; /* while it is busy: the slot goes back to the handler's thread */
    bool suspect;
};

struct stripe {
    _Alignas(64) pthread_mutex_t lock;
};

struct slots {
    struct lane *lane;
    uint32_t self; /* process id */
    pthread_mutex_t lock;
    pthread_cond_t freed; /* a slot was put back, or stop */
    bool stopping;        /* lock */
    int free_count, fresh_count, suspect_count, late_count;
    int *free, *fresh, *suspect, *late; /* lock; stacks */
    bool suspect_running;               /* lock */
    atomic_int to_replay;               /* fresh and suspects: spares the lock once there are none */
    struct entry *entry;
    int *bucket;
    struct stripe *stripe;
};

size_t lane_size(uint32_t count, uint32_t room)
{
    size_t head = (sizeof(struct lane) + count * sizeof(struct slot) + PAGE - 1) & ~(size_t)(PAGE - 1);
    return head + (size_t)count * room;
}

void lane_init(struct lane *lane, uint32_t count, uint32_t room)
{
    lane->count = count;
    lane->room = room;
    lane->slots = sizeof *lane;
    lane->buffers = lane_size(count, 0);
}

static void set_state(struct slot *slot, enum slot_state state, unsigned deaths)
{
    atomic_store_explicit(&slot->word, state | (deaths > 255 ? 255 : deaths) << 8, memory_order_release);
}

static enum slot_state state_of(const struct slot *slot)
{
    return atomic_load_explicit(&slot->word, memory_order_acquire) & 255;
}

unsigned slots_deaths(const struct slots *s, int slot)
{
    return atomic_load_explicit(&lane_slot(s->lane, slot)->word, memory_order_relaxed) >> 8;
}

/* A header is there, and leads nowhere outside the slot. */
static bool has_request(const struct lane *lane, int i)
{
    const struct fuse_in_header *in = lane_request(lane, i);
    return in->unique != 0 && in->len >= sizeof *in && in->len <= lane->room;
}

static bool reader_lingers(const struct slot *slot)
{
    return !process_is_gone((pid_t)atomic_load_explicit(&slot->reader, memory_order_relaxed));
}

static void recover(struct slots *s, int i)
{
    struct slot *slot = lane_slot(s->lane, i);
    unsigned deaths = slots_deaths(s, i);
    switch (state_of(slot)) {
    case SLOT_READING:
        if (has_request(s->lane, i)) {
            deaths = 0;
            break;
        }
        if (reader_lingers(slot)) {
            s->late[s->late_count++] = i;
            return;
        }
        goto free;
    case SLOT_RUNNING:
        deaths++;
        break;
    case SLOT_PARKED:
        deaths = 0;
        break;
    case SLOT_WAITING:
        break;
    default:
        goto free;
    }
    if (!has_request(s->lane, i))
        goto free;
    set_state(slot, SLOT_WAITING, deaths);
    if (deaths)
        s->suspect[s->suspect_count++] = i;
    else
        s->fresh[s->fresh_count++] = i;
    return;
free:
    set_state(slot, SLOT_FREE, 0);
    s->free[s->free_count++] = i;
}

int slots_create(struct lane *lane, struct slots **slots)
{
    struct slots *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->lane = lane;
    s->self = (uint32_t)getpid();
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->freed, NULL);
    s->free = calloc(lane->count, sizeof *s->free);
    s->fresh = calloc(lane->count, sizeof *s->fresh);
    s->suspect = calloc(lane->count, sizeof *s->suspect);
    s->late = calloc(lane->count, sizeof *s->late);
    s->entry = calloc(lane->count, sizeof *s->entry);
    s->bucket = malloc(BUCKETS * sizeof *s->bucket);
    s->stripe = aligned_alloc(64, STRIPES * sizeof *s->stripe);
    if (!s->free || !s->fresh || !s->suspect || !s->late || !s->entry || !s->bucket || !s->stripe) {
        free(steal_pointer(s->stripe)); /* its locks are not made yet */
        slots_destroy(s);
        return -ENOMEM;
    }
    for (int i = 0; i < STRIPES; i++)
        pthread_mutex_init(&s->stripe[i].lock, NULL);
    for (int i = 0; i < BUCKETS; i++)
        s->bucket[i] = SLOT_NONE;
    for (int i = (int)lane->count - 1; i >= 0; i--)
        recover(s, i);
    atomic_store(&s->to_replay, s->fresh_count + s->suspect_count);
    *slots = s;
    return 0;
}

void slots_destroy(struct slots *s)
{
    if (!s)
        return;
    for (int i = 0; s->stripe && i < STRIPES; i++)
        pthread_mutex_destroy(&s->stripe[i].lock);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->freed);
    free(s->free);
    free(s->fresh);
    free(s->suspect);
    free(s->late);
    free(s->entry);
    free(s->bucket);
    free(s->stripe);
    free(s);
}

void slots_ready(struct slots *s, int i)
{
    char *buffer = (char *)lane_request(s->lane, i);
    struct slot *slot = lane_slot(s->lane, i);
    memset(buffer, 0, sizeof(struct fuse_in_header));
    /* A copy by the kernel into a page that is not there fails when the reader is killed at this moment, and the kernel
     * then ends the request with EIO: so every page is there, and writable, before the read. */
    for (size_t at = PAGE; at < s->lane->room; at += PAGE)
        *(volatile char *)(buffer + at) = 0;
    atomic_store_explicit(&slot->reader, s->self, memory_order_relaxed);
    set_state(slot, SLOT_READING, 0);
}

int slots_take(struct slots *s)
{
    int slot = SLOT_NONE;
    pthread_mutex_lock(&s->lock);
    while (!s->stopping && s->free_count == 0)
        pthread_cond_wait(&s->freed, &s->lock);
    if (!s->stopping)
        slot = s->free[--s->free_count];
    pthread_mutex_unlock(&s->lock);
    if (slot != SLOT_NONE)
        slots_ready(s, slot);
    return slot;
}

void slots_put(struct slots *s, int i)
{
    set_state(lane_slot(s->lane, i), SLOT_FREE, 0);
    pthread_mutex_lock(&s->lock);
    s->free[s->free_count++] = i;
    pthread_cond_signal(&s->freed);
    pthread_mutex_unlock(&s->lock);
}

void slots_stop(struct slots *s)
{
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_broadcast(&s->freed);
    pthread_mutex_unlock(&s->lock);
}

int slots_replay(struct slots *s)
{
    if (atomic_load_explicit(&s->to_replay, memory_order_acquire) == 0)
        return SLOT_NONE;
    int slot = SLOT_NONE;
    pthread_mutex_lock(&s->lock);
    if (s->suspect_count > 0 && !s->suspect_running) {
        slot = s->suspect[--s->suspect_count];
        s->suspect_running = s->entry[slot].suspect = true;
    } else if (s->fresh_count > 0) {
        slot = s->fresh[--s->fresh_count];
    }
    if (slot != SLOT_NONE)
        atomic_fetch_sub(&s->to_replay, 1);
    pthread_mutex_unlock(&s->lock);
    return slot;
}

int slots_late(struct slots *s, int *left)
{
    int found = SLOT_NONE;
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < s->late_count && found == SLOT_NONE;) {
        int slot = s->late[i];
        /* Asked before the header is looked at: who is gone now wrote before. */
        bool open = reader_lingers(lane_slot(s->lane, slot));
        bool request = has_request(s->lane, slot);
        if (open && !request) {
            i++;
            continue;
        }
        s->late[i] = s->late[--s->late_count];
        if (request) {
            found = slot;
        } else {
            set_state(lane_slot(s->lane, slot), SLOT_FREE, 0);
            s->free[s->free_count++] = slot;
            pthread_cond_signal(&s->freed);
        }
    }
    *left = s->late_count;
    pthread_mutex_unlock(&s->lock);
    return found;
}

int slots_late_count(struct slots *s)
{
    pthread_mutex_lock(&s->lock);
    int count = s->late_count;
    pthread_mutex_unlock(&s->lock);
    return count;
}

/* Uniques grow by two; interrupts, which have odd ones, are never in here. */
static unsigned bucket_of(uint64_t unique)
{
    return (unsigned)(unique >> 1) % BUCKETS;
}

static pthread_mutex_t *stripe_of(struct slots *s, uint64_t unique)
{
    return &s->stripe[bucket_of(unique) % STRIPES].lock;
}

void slots_begin(struct slots *s, int i)
{
    struct entry *e = &s->entry[i];
    e->unique = lane_request(s->lane, i)->unique;
    unsigned bucket = bucket_of(e->unique);
    pthread_mutex_t *lock = stripe_of(s, e->unique);
    set_state(lane_slot(s->lane, i), SLOT_RUNNING, slots_deaths(s, i));
    pthread_mutex_lock(lock);
    e->busy = true;
    e->answered = false;
    e->next = s->bucket[bucket];
    s->bucket[bucket] = i;
    pthread_mutex_unlock(lock);
}

bool slots_end(struct slots *s, int i)
{
    struct entry *e = &s->entry[i];
    pthread_mutex_t *lock = stripe_of(s, e->unique);
    bool suspect = e->suspect;
    e->suspect = false;
    pthread_mutex_lock(lock);
    bool answered = e->answered;
    e->busy = false;
    if (!answered)
        set_state(lane_slot(s->lane, i), SLOT_PARKED, 0);
    pthread_mutex_unlock(lock);
    if (suspect) {
        pthread_mutex_lock(&s->lock);
        s->suspect_running = false;
        pthread_mutex_unlock(&s->lock);
    }
    return answered;
}

bool slots_answered(struct slots *s, uint64_t unique)
{
    pthread_mutex_t *lock = stripe_of(s, unique);
    int found = SLOT_NONE;
    bool put = false;
    pthread_mutex_lock(lock);
    for (int *link = &s->bucket[bucket_of(unique)]; *link != SLOT_NONE; link = &s->entry[*link].next) {
        struct entry *e = &s->entry[*link];
        if (e->unique != unique)
            continue;
        found = *link;
        *link = e->next;
        e->answered = true;
        put = !e->busy;
        if (!put)
            set_state(lane_slot(s->lane, found), SLOT_FREE, 0);
        break;
    }
    pthread_mutex_unlock(lock);
    if (found == SLOT_NONE)
        return false;
    atomic_fetch_add_explicit(&s->lane->answered, 1, memory_order_relaxed);
    if (put)
        slots_put(s, found);
    return true;
}
