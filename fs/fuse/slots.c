/* Requests in shared memory: the private view of one server.
 *
 * Threads: any. `lock` guards the lists of free and waiting slots. A stripe of `index` guards the chains of its buckets
 * and the private entries of the slots in them. The two are never held together. Only the thread that currently owns a
 * slot writes its words in shared memory; only a later server reads them. */
#include "fs/fuse/slots.h"

#include "fs/base/cleanup.h"
#include "fs/base/process.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

enum {
    BUCKETS = 1024,
    STRIPES = 32,
    PAGE = 4096,
    FILLED_MOST = 16, /* parked slots for long writes that may keep all their memory */
};

struct slot_entry {
    uint64_t unique;
    int next;      /* next in the bucket's chain */
    bool busy;     /* its handler has not returned */
    bool answered; /* answered while busy: the slot returns to the handler's thread */
    bool resumed;  /* another thread has continued it */
    bool suspect;
    bool filled; /* all its pages exist. Used by the thread that has the slot */
};

struct slot_stripe {
    _Alignas(64) pthread_mutex_t lock;
};

struct slot_stack {
    int *slot, count;
};

struct slots {
    struct lane *lane;
    uint32_t self;  /* process id */
    unsigned blame; /* for the death of the last server */
    pthread_mutex_t lock;
    pthread_cond_t freed;                         /* signals: a slot was freed, or `stopping` */
    bool stopping;                                /* guarded by lock */
    struct slot_stack free, fresh, suspect, late; /* guarded by lock */
    bool suspect_running;                         /* guarded by lock */
    atomic_int to_replay; /* number of fresh and suspect slots: avoids the lock if there are none */
    atomic_int filled;    /* number of filled slots */
    int *stacked;         /* memory of the stacks */
    struct slot_entry *entry;
    int *bucket;
    struct slot_stripe *stripe;
};

static void stack_push(struct slot_stack *s, int slot)
{
    s->slot[s->count++] = slot;
}

static int stack_pop(struct slot_stack *s)
{
    return s->count > 0 ? s->slot[--s->count] : SLOT_NONE;
}

static enum slot_state state_of(const struct slot *slot)
{
    return atomic_load_explicit(&slot->word, memory_order_acquire) & 255;
}

unsigned slots_blame(const struct slots *s, int slot)
{
    return atomic_load_explicit(&lane_slot(s->lane, slot)->word, memory_order_relaxed) >> 8;
}

/* Is there a header that stays within the slot? */
static bool has_request(const struct lane *lane, int i)
{
    const struct fuse_in_header *in = lane_request(lane, i);
    return in->unique != 0 && in->len >= sizeof *in && in->len <= lane->room;
}

/* Asserts the table in lane.h. */
static void check_state(const struct slots *s, int i, enum slot_state state)
{
#ifdef DEALFS_CHECKS
    enum {
        FREE = 1 << SLOT_FREE,
        READING = 1 << SLOT_READING,
        RUNNING = 1 << SLOT_RUNNING,
        PARKED = 1 << SLOT_PARKED,
        WAITING = 1 << SLOT_WAITING
    };
    static const int before[] = {
        [SLOT_READING] = FREE | READING | WAITING,
        [SLOT_RUNNING] = READING | RUNNING | PARKED | WAITING,
        [SLOT_PARKED] = RUNNING,
        [SLOT_WAITING] = READING | RUNNING | PARKED | WAITING,
    };
    const struct slot_entry *e = &s->entry[i];
    /* FREE may also follow any state that an earlier server left. */
    assert(state == SLOT_FREE || before[state] & 1 << state_of(lane_slot(s->lane, i)));
    assert(state == SLOT_FREE || has_request(s->lane, i) == (state != SLOT_READING));
    assert(state != SLOT_READING || atomic_load(&lane_slot(s->lane, i)->reader) == s->self);
    assert(state != SLOT_PARKED || (!e->busy && !e->answered && !e->resumed));
#endif
    (void)s, (void)i, (void)state;
}

static void set_state(struct slots *s, int i, enum slot_state state, unsigned blame)
{
    check_state(s, i, state);
    atomic_store_explicit(&lane_slot(s->lane, i)->word, state | (blame > 255 ? 255 : blame) << 8, memory_order_release);
}

static bool reader_lingers(const struct slot *slot)
{
    return !process_is_gone((pid_t)atomic_load_explicit(&slot->reader, memory_order_relaxed));
}

static void slot_recover(struct slots *s, int i)
{
    const struct slot *slot = lane_slot(s->lane, i);
    enum slot_state state = state_of(slot);
    unsigned blame = state == SLOT_WAITING   ? slots_blame(s, i)
                     : state == SLOT_RUNNING ? slots_blame(s, i) + s->blame
                                             : 0;
    bool open = state == SLOT_READING && reader_lingers(slot); /* checked before the header: see slots_late */
    bool request = has_request(s->lane, i);
    if (open && !request) {
        stack_push(&s->late, i);
    } else if (request && state > SLOT_FREE && state <= SLOT_WAITING) {
        set_state(s, i, SLOT_WAITING, blame);
        stack_push(blame ? &s->suspect : &s->fresh, i);
    } else {
        set_state(s, i, SLOT_FREE, 0);
        stack_push(&s->free, i);
    }
}

int slots_create(struct lane *lane, unsigned blame, struct slots **slots)
{
    struct slots *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->lane = lane;
    s->blame = blame;
    s->self = (uint32_t)getpid();
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->freed, NULL);
    s->stacked = calloc(4 * (size_t)lane->count, sizeof *s->stacked);
    s->entry = calloc(lane->count, sizeof *s->entry);
    s->bucket = malloc(BUCKETS * sizeof *s->bucket);
    s->stripe = aligned_alloc(64, STRIPES * sizeof *s->stripe);
    if (!s->stacked || !s->entry || !s->bucket || !s->stripe) {
        free(steal_pointer(s->stripe)); /* its locks do not exist yet */
        slots_destroy(s);
        return -ENOMEM;
    }
    s->free.slot = s->stacked;
    s->fresh.slot = s->free.slot + lane->count;
    s->suspect.slot = s->fresh.slot + lane->count;
    s->late.slot = s->suspect.slot + lane->count;
    for (int i = 0; i < STRIPES; i++)
        pthread_mutex_init(&s->stripe[i].lock, NULL);
    for (int i = 0; i < BUCKETS; i++)
        s->bucket[i] = SLOT_NONE;
    for (int i = (int)lane->count - 1; i >= 0; i--)
        slot_recover(s, i);
    atomic_store(&s->to_replay, s->fresh.count + s->suspect.count);
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
    free(s->stacked);
    free(s->entry);
    free(s->bucket);
    free(s->stripe);
    free(s);
}

size_t slots_count(const struct slots *s)
{
    return s->lane->count;
}

void slots_ready(struct slots *s, int i)
{
    char *buffer = (char *)lane_request(s->lane, i);
    struct slot *slot = lane_slot(s->lane, i);
    memset(buffer, 0, sizeof(struct fuse_in_header));
    /* If a page is missing and the reading process is killed at this moment, the kernel's copy fails, and it ends the
     * request with EIO. So all pages are made present and writable before the read. */
    for (size_t at = PAGE; at < s->lane->room; at += PAGE)
        *(volatile char *)(buffer + at) = 0;
    atomic_fetch_add_explicit(&s->filled, !s->entry[i].filled, memory_order_relaxed);
    s->entry[i].filled = true;
    atomic_store_explicit(&slot->reader, s->self, memory_order_relaxed);
    atomic_store_explicit(&slot->since, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->interrupted, 0, memory_order_relaxed);
    set_state(s, i, SLOT_READING, 0);
}

int slots_take(struct slots *s)
{
    int slot = SLOT_NONE;
    pthread_mutex_lock(&s->lock);
    while (!s->stopping && s->free.count == 0)
        pthread_cond_wait(&s->freed, &s->lock);
    if (!s->stopping)
        slot = stack_pop(&s->free);
    pthread_mutex_unlock(&s->lock);
    if (slot != SLOT_NONE)
        slots_ready(s, slot);
    return slot;
}

void slots_put(struct slots *s, int i)
{
    set_state(s, i, SLOT_FREE, 0);
    LOCK_SCOPE(&s->lock);
    stack_push(&s->free, i);
    pthread_cond_signal(&s->freed);
}

void slots_stop(struct slots *s)
{
    LOCK_SCOPE(&s->lock);
    s->stopping = true;
    pthread_cond_broadcast(&s->freed);
}

int slots_replay(struct slots *s)
{
    if (atomic_load_explicit(&s->to_replay, memory_order_acquire) == 0)
        return SLOT_NONE;
    int slot = SLOT_NONE;
    LOCK_SCOPE(&s->lock);
    if (s->suspect.count > 0 && !s->suspect_running) {
        slot = stack_pop(&s->suspect);
        s->suspect_running = s->entry[slot].suspect = true;
    } else {
        slot = stack_pop(&s->fresh);
    }
    if (slot != SLOT_NONE)
        atomic_fetch_sub(&s->to_replay, 1);
    return slot;
}

int slots_late(struct slots *s, int *left)
{
    int found = SLOT_NONE;
    LOCK_SCOPE(&s->lock);
    for (int i = 0; i < s->late.count && found == SLOT_NONE;) {
        int slot = s->late.slot[i];
        /* checked before the header: a reader that is gone now has written its header before */
        bool open = reader_lingers(lane_slot(s->lane, slot));
        bool request = has_request(s->lane, slot);
        if (open && !request) {
            i++;
            continue;
        }
        s->late.slot[i] = s->late.slot[s->late.count - 1];
        s->late.count--;
        if (request) {
            found = slot;
        } else {
            set_state(s, slot, SLOT_FREE, 0);
            stack_push(&s->free, slot);
            pthread_cond_signal(&s->freed);
        }
    }
    *left = s->late.count;
    return found;
}

int slots_late_count(struct slots *s)
{
    LOCK_SCOPE(&s->lock);
    return s->late.count;
}

/* Numbers increase by two; interrupts have odd numbers and are never stored here. */
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
    struct slot_entry *e = &s->entry[i];
    e->unique = lane_request(s->lane, i)->unique;
    unsigned bucket = bucket_of(e->unique);
    pthread_mutex_t *lock = stripe_of(s, e->unique);
    set_state(s, i, SLOT_RUNNING, slots_blame(s, i));
    LOCK_SCOPE(lock);
    e->busy = true;
    e->answered = false;
    e->resumed = false;
    e->next = s->bucket[bucket];
    s->bucket[bucket] = i;
}

/* Many requests may be parked, so the unused memory of slots for long writes is returned. A few slots keep theirs:
 * returning and faulting in memory takes longer than most requests. */
static void give_rest_back(struct slots *s, int i)
{
    const struct lane *lane = s->lane;
    char *request = (char *)lane_request(lane, i);
    size_t used = (lane_request(lane, i)->len + PAGE - 1) & ~(size_t)(PAGE - 1);
    if (lane->room <= DATA_ROOM || used >= lane->room / PAGE * PAGE ||
        atomic_load_explicit(&s->filled, memory_order_relaxed) <= FILLED_MOST)
        return;
    madvise(request + used, lane->room / PAGE * PAGE - used, MADV_REMOVE);
    s->entry[i].filled = false;
    atomic_fetch_sub_explicit(&s->filled, 1, memory_order_relaxed);
}

bool slots_end(struct slots *s, int i)
{
    struct slot_entry *e = &s->entry[i];
    pthread_mutex_t *lock = stripe_of(s, e->unique);
    bool suspect = e->suspect;
    e->suspect = false;
    pthread_mutex_lock(lock);
    bool answered = e->answered;
    e->busy = false;
    if (!answered) {
        give_rest_back(s, i);
        if (!e->resumed)
            set_state(s, i, SLOT_PARKED, slots_blame(s, i));
    }
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
        struct slot_entry *e = &s->entry[*link];
        if (e->unique != unique)
            continue;
        found = *link;
        *link = e->next;
        e->answered = true;
        put = !e->busy;
        if (!put)
            set_state(s, found, SLOT_FREE, 0);
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

/* The entry of a request in progress, or SLOT_NONE. The caller holds its stripe's lock. */
static int find_entry(const struct slots *s, uint64_t unique)
{
    int i = s->bucket[bucket_of(unique)];
    while (i != SLOT_NONE && s->entry[i].unique != unique)
        i = s->entry[i].next;
    return i;
}

void slots_resume(struct slots *s, uint64_t unique)
{
    pthread_mutex_t *lock = stripe_of(s, unique);
    LOCK_SCOPE(lock);
    int i = find_entry(s, unique);
    if (i != SLOT_NONE) {
        s->entry[i].resumed = true;
        set_state(s, i, SLOT_RUNNING, slots_blame(s, i));
    }
}

bool slots_interrupt(struct slots *s, uint64_t unique)
{
    LOCK_SCOPE(stripe_of(s, unique));
    int i = find_entry(s, unique);
    if (i != SLOT_NONE)
        atomic_store_explicit(&lane_slot(s->lane, i)->interrupted, 1, memory_order_relaxed);
    return i != SLOT_NONE;
}

/* With the lock of its stripe: an entry in a chain stays in its slot. */
static struct slots_request look_at(struct slots *s, int i, uint64_t now)
{
    struct slot *slot = lane_slot(s->lane, i);
    uint64_t since = atomic_load_explicit(&slot->since, memory_order_relaxed);
    if (!since) {
        since = now;
        atomic_store_explicit(&slot->since, since, memory_order_relaxed);
    }
    return (struct slots_request){
        .unique = s->entry[i].unique,
        .since = since,
        .asker = lane_request(s->lane, i)->pid,
        .busy = s->entry[i].busy,
        .interrupted = atomic_load_explicit(&slot->interrupted, memory_order_relaxed),
    };
}

/* A slot that is freed and reused meanwhile is seen twice, so the result may exceed the number of slots. */
int slots_look(struct slots *s, uint64_t now, struct slots_request *seen)
{
    int count = 0;
    for (int stripe = 0; stripe < STRIPES; stripe++) {
        pthread_mutex_lock(&s->stripe[stripe].lock);
        for (int bucket = stripe; bucket < BUCKETS; bucket += STRIPES)
            for (int i = s->bucket[bucket]; i != SLOT_NONE && count < (int)s->lane->count; i = s->entry[i].next)
                seen[count++] = look_at(s, i, now);
        pthread_mutex_unlock(&s->stripe[stripe].lock);
    }
    return count;
}
