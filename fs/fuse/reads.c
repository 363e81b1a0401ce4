/* READs that wait for the store.
 *
 * Threads: any thread begins a READ, any thread ends it. Our own thread returns READs to the kernel with an error when
 * too many wait. A READ that is answered at once touches nothing shared. `lock` guards all fields below it, also in
 * `pending_read`. The store is never called with the lock held.
 *
 * Only readahead may get that error, because no process waits for it. FUSE does not mark it, so two rules prove it:
 *
 *   1. A READ longer than a page is readahead, or direct I/O, which names its lock owner. The kernel's foreground reads
 *      (read_folio) are for one folio, and folios of FUSE are one page.
 *   2. A READ is readahead if its thread has sent two later ones: a thread waits for one foreground READ at a time.
 *      "Later" means a greater number. One greater number proves nothing, because readahead that waits for the
 *      kernel's limit is numbered when it is sent; a thread has at most one such READ.
 *
 * Large folios break rule 1, because read_folio of a large folio is as long as readahead. The kernel does that only for
 * a folio that readahead has made and that we have returned without bytes. So rule 1 does not apply to a READ within a
 * range that was returned recently. If such a READ is longer than a page, and is not exactly what was returned, this
 * kernel has large folios: from then on only rule 2 applies. */
#include "fs/fuse/reads.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/thread.h"
#include "fs/fuse/given.h"
#include "fs/fuse/session.h"
#include "fs/wire/feed.h"
#include "fs/wire/lane.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#define MOST_BYTES (UINT64_C(512) << 20)
enum { ASKERS = 1024, NUMBERS = 1024, USERS = 1024, LATER = 2, AGAIN_MS = 10 };

struct pending_read {
    struct store_read read;
    fuse_req_t req;
    struct reads *reads;
    struct store *store;
    uint64_t unique;
    pid_t asker;
    unsigned user; /* bucket of its user */
    size_t size;
    bool direct;
    /* guarded by lock: */
    bool listed;    /* false: it has ended, or is being taken back */
    bool ended;     /* it ended while it was being taken back */
    bool proven;    /* proven to be readahead */
    bool is_ahead;  /* in `ahead` */
    bool is_wanted; /* counted in `wanted` */
    bool is_excess; /* in `excess` */
    int later;      /* number of known READs of its thread with greater numbers */
    bool is_latest; /* in `latest` */
    TAILQ_ENTRY(pending_read) in_order;
    LIST_ENTRY(pending_read) same_bucket;
    LIST_ENTRY(pending_read) same_number;
};

struct reads {
    struct { /* spare buffers for READs that are answered at once; large, since they contain the answer */
        _Alignas(CACHE_LINE) _Atomic(struct pending_read *) pending;
    } spare[THREAD_STRIPES];
    struct feed *feed;
    unsigned most;       /* limit for `ahead` */
    uint64_t most_bytes; /* limit: the kernel keeps these pages locked, so they cannot be reclaimed */
    size_t page;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* signals the thread: too much readahead, or `excess`, or `stopping` */
    bool stopping;
    bool strained;                             /* return readahead at once */
    uint64_t since;                            /* since when there is too much readahead; 0: there is not */
    unsigned count;                            /* number of READs in `ahead` */
    uint64_t bytes;                            /* bytes of these */
    TAILQ_HEAD(, pending_read) ahead;          /* waiting, proven readahead, oldest first */
    unsigned wanted, room;                     /* waiting READs not in `ahead`; their maximum */
    unsigned wanted_by[USERS];                 /* the same per user */
    TAILQ_HEAD(, pending_read) excess;         /* those beyond their user's share */
    LIST_HEAD(, pending_read) latest[ASKERS];  /* waiting READs that are not proven, by thread */
    LIST_HEAD(, pending_read) listed[NUMBERS]; /* all waiting READs, by number */
    bool large_folios;
    struct given_table given;
};

/* --- readahead; the caller holds the lock --- */

static bool is_too_much(const struct reads *r)
{
    return r->count > r->most || r->bytes > r->most_bytes;
}

/* A READ that a process waits for keeps one of the slots. A user's share of them is as large as what remains: half for
 * a single user, a quarter next to one who has half, and so on. So there is always room for another user. */
static void begin_wanted(struct reads *r, struct pending_read *p)
{
    p->is_wanted = true;
    r->wanted++;
    if (++r->wanted_by[p->user] + r->wanted <= r->room)
        return;
    p->is_excess = true;
    TAILQ_INSERT_TAIL(&r->excess, p, in_order);
    pthread_cond_signal(&r->changed);
}

static void end_wanted(struct reads *r, struct pending_read *p)
{
    if (!p->is_wanted)
        return;
    if (p->is_excess)
        TAILQ_REMOVE(&r->excess, p, in_order);
    p->is_wanted = p->is_excess = false;
    r->wanted--;
    r->wanted_by[p->user]--;
}

static void begin_ahead(struct reads *r, struct pending_read *p)
{
    p->proven = true;
    if (p->is_ahead || p->direct)
        return;
    end_wanted(r, p);
    p->is_ahead = true;
    TAILQ_INSERT_TAIL(&r->ahead, p, in_order);
    r->count++;
    r->bytes += p->size;
    if (r->since || !is_too_much(r))
        return;
    r->since = clock_now();
    pthread_cond_signal(&r->changed);
}

static void end_ahead(struct reads *r, struct pending_read *p)
{
    if (!p->is_ahead)
        return;
    p->is_ahead = false;
    TAILQ_REMOVE(&r->ahead, p, in_order);
    r->count--;
    r->bytes -= p->size;
    if (!is_too_much(r))
        r->since = 0;
    if (r->count <= r->most / 2 && r->bytes <= r->most_bytes / 2)
        r->strained = false;
}

static bool is_readahead(struct reads *r, const struct pending_read *p)
{
    const struct given range = {p->read.span.offset, p->size, p->read.span.file};
    return p->size > r->page && !r->large_folios && !given_find(&r->given, &range, &r->large_folios);
}

static unsigned number_bucket(uint64_t unique)
{
    return (unsigned)(unique >> 1) % NUMBERS; /* numbers are even */
}

static void pending_enlist(struct reads *r, struct pending_read *p)
{
    p->listed = true;
    LIST_INSERT_HEAD(&r->listed[number_bucket(p->unique)], p, same_number);
    if (p->proven || is_readahead(r, p))
        begin_ahead(r, p);
    if (!p->is_ahead)
        begin_wanted(r, p);
}

static void pending_prove(struct reads *r, struct pending_read *p)
{
    if (p->is_latest)
        LIST_REMOVE(p, same_bucket);
    p->is_latest = false;
    begin_ahead(r, p);
}

/* Requests may arrive here in another order than they were sent. */
static void note_asker(struct reads *r, struct pending_read *p)
{
    unsigned bucket = (unsigned)p->asker % ASKERS;
    struct pending_read *other = LIST_FIRST(&r->latest[bucket]);
    for (struct pending_read *next; other; other = next) {
        next = LIST_NEXT(other, same_bucket);
        if (other->asker != p->asker)
            continue;
        if (other->unique > p->unique)
            p->later++;
        else if (++other->later == LATER)
            pending_prove(r, other);
    }
    if (p->later >= LATER)
        pending_prove(r, p);
    if (p->proven)
        return;
    LIST_INSERT_HEAD(&r->latest[bucket], p, same_bucket);
    p->is_latest = true;
}

static void pending_delist(struct reads *r, struct pending_read *p)
{
    end_ahead(r, p);
    end_wanted(r, p);
    LIST_REMOVE(p, same_number);
    if (p->is_latest)
        LIST_REMOVE(p, same_bucket);
    p->listed = p->is_latest = false;
}

/* --- one READ --- */

/* Not zeroed completely: the store sets what it needs of the answer. */
static struct pending_read *pending_get(struct reads *r)
{
    struct pending_read *p = atomic_exchange(&r->spare[thread_stripe()].pending, NULL);
    if (!p && !(p = malloc(sizeof *p)))
        return NULL;
    p->read.here = p->read.quiet = p->read.waiting = false;
    p->listed = p->ended = p->proven = p->is_ahead = p->is_wanted = p->is_excess = p->is_latest = false;
    p->later = 0;
    return p;
}

static void pending_put(struct reads *r, struct pending_read *p)
{
    free(atomic_exchange(&r->spare[thread_stripe()].pending, p));
}

/* A process that can write to the mount's memory could claim to be the feeder; then its own reads wait longer. */
static bool is_fed(const struct reads *r, pid_t asker)
{
    uint32_t feeder = atomic_load_explicit(&r->feed->feeder, memory_order_relaxed);
    return feeder && feeder == (uint32_t)asker;
}

/* If lists are being counted: note the answer before the reply, so that its reader finds it noted. */
static void note_answer(const struct pending_read *p)
{
    struct feed *feed = p->reads->feed;
    if (atomic_load_explicit(&feed->noting, memory_order_relaxed) != 0)
        feed_note_add(feed, &(struct feed_answer){.file = p->read.span.file,
                                                  .bytes = (uint32_t)p->read.span.length,
                                                  .waited = clock_now() - p->read.began,
                                                  .place = p->read.place,
                                                  .fed = p->read.fed});
}

static void pending_answer(struct pending_read *p, int error)
{
    struct feed_served *served = &p->reads->feed->served;
    if (error) {
        fuse_reply_err(p->req, -error);
    } else {
        note_answer(p);
        fuse_reply_iov(p->req, p->read.answer.piece, p->read.answer.pieces);
    }
    answer_release(&p->read.answer);
    if (!p->read.fed)
        return;
    atomic_fetch_sub_explicit(&served->waits.all, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&served->done, 1, memory_order_relaxed);
}

static void read_waits(struct store_read *read)
{
    struct pending_read *p = (struct pending_read *)((char *)read - offsetof(struct pending_read, read));
    LOCK_SCOPE(&p->reads->lock);
    pending_enlist(p->reads, p);
    if (p->asker && p->unique)
        note_asker(p->reads, p);
}

static void read_done(struct store_read *read, int error)
{
    struct pending_read *p = (struct pending_read *)((char *)read - offsetof(struct pending_read, read));
    struct reads *r = p->reads;
    pending_answer(p, error);
    if (!read->waiting) {
        pending_put(r, p);
        return;
    }
    pthread_mutex_lock(&r->lock);
    bool ours = p->listed;
    if (ours)
        pending_delist(r, p);
    p->ended = true;
    pthread_mutex_unlock(&r->lock);
    if (ours)
        free(p);
}

void reads_begin(struct reads *r, struct store *store, const struct reads_request *request)
{
    const struct fuse_file_info *info = request->info;
    struct pending_read *p = pending_get(r);
    if (!p) {
        fuse_reply_err(request->req, ENOMEM);
        return;
    }
    p->req = request->req;
    p->reads = r;
    p->store = store;
    p->unique = session_request().unique;
    p->asker = fuse_req_ctx(request->req)->pid;
    p->user = fuse_req_ctx(request->req)->uid % USERS;
    p->size = request->size;
    p->direct = !info || info->lock_owner || info->flags & O_DIRECT; /* unknown: assume direct I/O */
    p->read.span = request->span;
    p->read.fed = is_fed(r, p->asker);
    thread_set_patient(p->read.fed); /* do not take the core of a loader that computes */
    if (p->read.fed) {
        atomic_fetch_add_explicit(&r->feed->served.waits.all, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&r->feed->served.begun, 1, memory_order_relaxed);
    }
    p->read.waits = read_waits;
    p->read.done = read_done;
    int error = store_read(store, &p->read);
    if (error != -EINPROGRESS)
        read_done(&p->read, error);
}

/* --- taking back --- */

/* With the lock, which is released in between. False: it is just ending, or moving to another queue. */
static bool take_back(struct reads *r, struct pending_read *p, int error)
{
    pending_delist(r, p);
    pthread_mutex_unlock(&r->lock);
    bool taken = store_cancel(p->store, &p->read);
    if (taken)
        pending_answer(p, error);
    pthread_mutex_lock(&r->lock);
    bool over = taken || p->ended;
    if (over)
        free(p);
    else
        pending_enlist(r, p);
    return over;
}

bool reads_cancel(void *reads, uint64_t unique)
{
    struct reads *r = reads;
    struct pending_read *p;
    LOCK_SCOPE(&r->lock);
    LIST_FOREACH(p, &r->listed[number_bucket(unique)], same_number)
    if (p->unique == unique)
        break;
    return p && take_back(r, p, -EINTR);
}

static bool give_back(struct reads *r, struct pending_read *p)
{
    given_note(&r->given,
               /* before it can be asked for again */
               &(struct given){p->read.span.offset, p->size, p->read.span.file});
    return take_back(r, p, -EIO);
}

static void reads_strain(struct reads *r)
{
    if (!r->strained)
        log_limited(LOG_LEVEL_WARNING, 1, "%u readahead requests wait: the oldest are returned to the kernel",
                    r->count);
    r->strained = true;
}

static bool refuse(struct reads *r, struct pending_read *p)
{
    log_limited(LOG_LEVEL_WARNING, 1, "new reads of a user fail with EBUSY: %u reads of this user are already waiting",
                r->wanted_by[p->user]);
    return take_back(r, p, -EBUSY);
}

static void *reads_main(void *argument)
{
    struct reads *r = argument;
    LOCK_SCOPE(&r->lock);
    while (!r->stopping) {
        uint64_t now = clock_now();
        if (!TAILQ_EMPTY(&r->excess)) {
            if (!refuse(r, TAILQ_FIRST(&r->excess)))
                cond_wait_until(&r->changed, &r->lock, now + AGAIN_MS * MILLISECOND);
        } else if (!r->since) {
            pthread_cond_wait(&r->changed, &r->lock);
        } else if (!r->strained && now < r->since + SECOND) {
            cond_wait_until(&r->changed, &r->lock, r->since + SECOND);
        } else {
            reads_strain(r);
            if (!give_back(r, TAILQ_FIRST(&r->ahead)))
                cond_wait_until(&r->changed, &r->lock, now + AGAIN_MS * MILLISECOND);
        }
    }
    return NULL;
}

int reads_create(unsigned limit, struct feed *feed, struct reads **reads)
{
    struct reads *r = aligned_alloc(CACHE_LINE, sizeof *r);
    if (!r)
        return -ENOMEM;
    memset(r, 0, sizeof *r);
    r->feed = feed;
    r->page = (size_t)sysconf(_SC_PAGESIZE);
    r->most = limit / 2;
    r->most_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 8;
    if (r->most_bytes > MOST_BYTES)
        r->most_bytes = MOST_BYTES;
    r->room = DATA_SLOTS - r->most;
    TAILQ_INIT(&r->ahead);
    TAILQ_INIT(&r->excess);
    pthread_mutex_init(&r->lock, NULL);
    cond_init(&r->changed);
    int error = thread_create(&r->thread, "reads", reads_main, r);
    if (error)
        free(r);
    else
        *reads = r;
    return error;
}

void reads_stop(struct reads *r)
{
    if (!r->stopping)
        thread_stop(r->thread, &r->lock, &r->changed, &r->stopping);
}

void reads_destroy(struct reads *r)
{
    if (!r)
        return;
    reads_stop(r);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    for (int i = 0; i < THREAD_STRIPES; i++)
        free(atomic_load(&r->spare[i].pending));
    free(r);
}
