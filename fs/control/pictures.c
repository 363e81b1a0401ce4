/* A table of pictures by file and size, the least recently used one first in `order`.
 *
 *   state    who asks                                  becomes
 *   MAKING   waits for `changed`                       READY; or gone, where it failed, and one of those who wait tries
 *   READY    gets it                                   gone when there is no room, nobody reads it, and it is done with
 *
 * A picture that is READY is done with when all of it has been read, or its reader has asked for another one, or nobody
 * has asked for a while. Only these give way to another: to drop one in the middle would have it decoded again for its
 * next part. So who makes one waits until it has room, in the order of coming; and takes over the memory of one that
 * gives way. One picture may be larger than all room: then it is alone.
 *
 * Threads: workers, any number at once. `lock` guards the table, each picture's state, and the room; it is not held
 * while one is fetched or decoded. */
#include "fs/control/pictures.h"

#include "fs/control/control-private.h"
#include "fs/control/jobs.h"
#include "fs/control/picture-make.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum {
    BUCKETS = 4096,
    LOOKS = 8192, /* headers that are remembered */
    LOOK_EVERY_MS = 50,
    MEMORY_PATIENCE = 30, /* seconds that memory in others' hands is waited for */
    READING_MS = 1000,    /* a reader that has not asked for so long is done, */
    READING_MOST = 10,    /* or has had the picture for so many seconds */
};

struct kept {
    struct decoded_picture picture; /* first */
    bool ready;
    unsigned references;
    struct image_frame *frame;
    size_t room;   /* that it takes, */
    size_t slot;   /* and that of who decodes it, until it is made */
    size_t left;   /* bytes that nobody has read */
    pid_t reader;  /* the last one, */
    uint64_t used; /* and when */
    uint64_t made; /* when */
    struct charge charge;
    LIST_ENTRY(kept) same_bucket;
    TAILQ_ENTRY(kept) by_use;
};

/* What is not in the table any more, to be destroyed without the lock. */
TAILQ_HEAD(kept_list, kept);

struct room_waiter {
    TAILQ_ENTRY(room_waiter) next;
};

/* What a header said. */
struct picture_look {
    bool known;
    uint32_t file;
    struct image_info info;
};

struct pictures {
    uint64_t most;
    struct crew *crew;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    LIST_HEAD(, kept) bucket[BUCKETS];
    struct kept_list order;
    TAILQ_HEAD(, room_waiter) waiting;
    struct picture_look look[LOOKS];
    struct picture_stats stats;
};

int pictures_create(uint64_t most, const char *program, struct pictures **pictures)
{
    struct pictures *p = calloc(1, sizeof *p);
    int error = p ? crew_create(program, &p->crew) : -ENOMEM;
    if (error) {
        free(p);
        return error;
    }
    p->most = most;
    pthread_mutex_init(&p->lock, NULL);
    cond_init(&p->changed);
    TAILQ_INIT(&p->order);
    TAILQ_INIT(&p->waiting);
    *pictures = p;
    return 0;
}

/* With the lock, as kept_leave. */
static void room_give(struct pictures *p, struct kept *k)
{
    p->stats.kept -= k->room + k->slot;
    k->room = k->slot = 0;
    pthread_cond_broadcast(&p->changed);
}

static void kept_leave(struct pictures *p, struct kept *k, struct kept_list *gone)
{
    LIST_REMOVE(k, same_bucket);
    TAILQ_REMOVE(&p->order, k, by_use);
    TAILQ_INSERT_TAIL(gone, k, by_use);
    room_give(p, k);
}

static void memory_free(struct kept *k)
{
    frame_destroy(steal_pointer(k->frame));
    charge_fini(&k->charge);
}

static void kept_destroy(struct kept_list *gone)
{
    for (struct kept *k; (k = TAILQ_FIRST(gone));) {
        TAILQ_REMOVE(gone, k, by_use);
        memory_free(k);
        free(k);
    }
}

void pictures_destroy(struct pictures *p)
{
    if (!p)
        return;
    kept_destroy(&p->order);
    crew_destroy(p->crew);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

void pictures_rest(struct pictures *p)
{
    crew_rest(p->crew);
}

/* --- the table; with the lock --- */

static unsigned bucket_of(struct picture_key key)
{
    return (key.file * 2654435761u ^ key.side * 40503u) % BUCKETS;
}

static struct kept *kept_find(struct pictures *p, struct picture_key key)
{
    struct kept *k;
    LIST_FOREACH(k, &p->bucket[bucket_of(key)], same_bucket)
    if (k->picture.key.file == key.file && k->picture.key.side == key.side)
        return k;
    return NULL;
}

static struct kept *kept_enter(struct pictures *p, struct picture_key key)
{
    struct kept *k = calloc(1, sizeof *k);
    if (!k)
        return NULL;
    k->picture.key = key;
    k->references = 1;
    LIST_INSERT_HEAD(&p->bucket[bucket_of(key)], k, same_bucket);
    TAILQ_INSERT_TAIL(&p->order, k, by_use);
    return k;
}

static void kept_use(struct pictures *p, struct kept *k)
{
    k->references++;
    p->stats.hits++;
    TAILQ_REMOVE(&p->order, k, by_use);
    TAILQ_INSERT_TAIL(&p->order, k, by_use);
}

static struct picture_look *look_of(struct pictures *p, uint32_t file)
{
    return &p->look[file % LOOKS];
}

/* --- room --- */

static bool may_go(const struct kept *k, pid_t asker, uint64_t now)
{
    return k->ready && k->references == 0 &&
           (k->left == 0 || (asker && k->reader == asker) || now - k->used >= READING_MS * MILLISECOND ||
            now - k->made >= READING_MOST * SECOND);
}

/* For `k`, which is to have so much room, and a slot of so much. */
static bool room_make(struct pictures *p, struct kept *k, size_t room, size_t slot, pid_t asker, struct kept_list *gone)
{
    uint64_t now = clock_now(), most = p->most > room + slot ? p->most - room - slot : 0, going = 0;
    struct kept *old, *next;
    TAILQ_FOREACH(old, &p->order, by_use)
        going += may_go(old, asker, now) ? old->room : 0;
    if (p->stats.kept - going > most)
        return false;
    for (old = TAILQ_FIRST(&p->order); old && p->stats.kept > most; old = next) {
        next = TAILQ_NEXT(old, by_use);
        if (!may_go(old, asker, now))
            continue;
        if (!k->frame || old->frame->size > k->frame->size) {
            struct image_frame *frame = k->frame;
            k->frame = old->frame;
            old->frame = frame;
        }
        kept_leave(p, old, gone);
    }
    /* A frame that is not much too large stays so: to make memory anew, for the next picture, takes longer. */
    if (k->frame && k->frame->size > room && k->frame->size <= room + room / 2 &&
        p->stats.kept + k->frame->size + slot <= p->most)
        room = k->frame->size;
    k->room = room;
    k->slot = slot;
    p->stats.kept += room + slot;
    return true;
}

/* Room, and perhaps a frame, of any size. */
static int room_take(struct pictures *p, struct request_job *job, struct kept *k, size_t room, size_t slot)
{
    pid_t asker = fuse_req_ctx(job->req)->pid;
    struct kept_list gone = TAILQ_HEAD_INITIALIZER(gone);
    struct room_waiter me;
    bool given_up = false;
    pthread_mutex_lock(&p->lock);
    TAILQ_INSERT_TAIL(&p->waiting, &me, next);
    while (!given_up && (TAILQ_FIRST(&p->waiting) != &me || !room_make(p, k, room, slot, asker, &gone))) {
        if (cond_wait_until(&p->changed, &p->lock, clock_now() + LOOK_EVERY_MS * MILLISECOND))
            continue;
        pthread_mutex_unlock(&p->lock);
        given_up = job_gave_up(job);
        pthread_mutex_lock(&p->lock);
    }
    TAILQ_REMOVE(&p->waiting, &me, next);
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    kept_destroy(&gone);
    return given_up ? -EINTR : 0;
}

bool pictures_drop(struct pictures *p)
{
    struct kept_list gone = TAILQ_HEAD_INITIALIZER(gone);
    struct kept *k;
    pthread_mutex_lock(&p->lock);
    TAILQ_FOREACH(k, &p->order, by_use)
        if (k->ready && k->references == 0)
            break;
    if (k)
        kept_leave(p, k, &gone);
    pthread_mutex_unlock(&p->lock);
    bool dropped = k;
    kept_destroy(&gone);
    return dropped;
}

/* --- making one --- */

static int begin_making(struct pictures *p, struct picture_making *m)
{
    pthread_mutex_lock(&p->lock);
    struct picture_look *look = look_of(p, m->key.file);
    if (look->known && look->file == m->key.file)
        m->info = look->info;
    pthread_mutex_unlock(&p->lock);
    m->crew = p->crew;
    int error = making_begin(m);
    if (error)
        return error;
    pthread_mutex_lock(&p->lock);
    *look = (struct picture_look){true, m->key.file, m->info};
    pthread_mutex_unlock(&p->lock);
    return 0;
}

int pictures_length(struct control *control, struct request_job *job, struct picture_key key, uint64_t *length,
                    struct str *why)
{
    struct picture_making m = {.control = control, .job = job, .key = key, .why = why};
    int error = begin_making(control->pictures, &m);
    *length = error ? 0 : making_length(&m);
    making_fini(&m);
    return error == -EAGAIN ? -ENOMEM : error;
}

static int make_picture(struct control *control, struct request_job *job, struct kept *k, uint64_t *took,
                        struct str *why)
{
    struct picture_making m = {.control = control, .job = job, .key = k->picture.key, .why = why};
    struct pictures *p = control->pictures;
    int error = begin_making(p, &m);
    if (!error)
        error = making_fetch(&m);
    if (!error)
        error = room_take(p, job, k, making_room(&m), making_slot(&m));
    if (!error)
        error = making_charge(&m, k->room, &k->charge);
    if (!error)
        error = k->frame ? frame_resize(k->frame, k->room) : frame_create(k->room, &k->frame);
    if (!error)
        error = making_decode(&m, k->frame, took);
    if (!error) {
        charge_keep(&k->charge);
        k->picture.bytes = k->frame->bytes;
        k->picture.length = k->left = making_length(&m);
    }
    making_fini(&m);
    return error;
}

/* Pictures that are made at once, and other requests, may together need more memory than there is: one that found too
 * little gives all of its own back, and begins again when another is made. */
static int make_in_turn(struct control *control, struct request_job *job, struct kept *k, uint64_t *took,
                        struct str *why)
{
    struct pictures *p = control->pictures;
    uint64_t until = clock_now() + MEMORY_PATIENCE * SECOND;
    int error;
    while ((error = make_picture(control, job, k, took, why)) == -EAGAIN && clock_now() < until) {
        if (job_gave_up(job))
            return -EINTR;
        str_clear(why);
        memory_free(k);
        pthread_mutex_lock(&p->lock);
        room_give(p, k);
        cond_wait_until(&p->changed, &p->lock, clock_now() + LOOK_EVERY_MS * MILLISECOND);
        pthread_mutex_unlock(&p->lock);
    }
    return error == -EAGAIN ? -ENOMEM : error;
}

/* With the lock. */
static void kept_made(struct pictures *p, struct kept *k, int error, uint64_t took, struct kept_list *gone)
{
    pthread_cond_broadcast(&p->changed);
    if (error) {
        p->stats.failed += error != -EINTR;
        kept_leave(p, k, gone);
        return;
    }
    p->stats.kept -= k->slot;
    k->slot = 0;
    k->ready = true;
    k->used = k->made = clock_now();
    p->stats.decoded++;
    p->stats.nanoseconds += took;
}

/* --- asking for one --- */

/* A reference to one that is ready; NULL and `*error` 0: the caller makes it and has entered `*made`. */
static struct kept *kept_get(struct pictures *p, struct request_job *job, struct picture_key key, struct kept **made,
                             int *error)
{
    struct kept *k;
    *error = 0;
    while ((k = kept_find(p, key)) && !k->ready) {
        if (cond_wait_until(&p->changed, &p->lock, clock_now() + LOOK_EVERY_MS * MILLISECOND))
            continue;
        pthread_mutex_unlock(&p->lock);
        bool gone = job_gave_up(job);
        pthread_mutex_lock(&p->lock);
        if (gone) {
            *error = -EINTR;
            return NULL;
        }
    }
    if (k) {
        kept_use(p, k);
        return k;
    }
    *made = kept_enter(p, key);
    *error = *made ? 0 : -ENOMEM;
    return NULL;
}

int pictures_get(struct control *control, struct request_job *job, struct picture_key key,
                 struct decoded_picture **picture, struct str *why)
{
    struct kept_list gone = TAILQ_HEAD_INITIALIZER(gone);
    struct pictures *p = control->pictures;
    struct kept *made = NULL;
    uint64_t took = 0;
    int error;
    pthread_mutex_lock(&p->lock);
    struct kept *k = kept_get(p, job, key, &made, &error);
    pthread_mutex_unlock(&p->lock);
    if (made) {
        error = make_in_turn(control, job, made, &took, why);
        pthread_mutex_lock(&p->lock);
        kept_made(p, made, error, took, &gone);
        pthread_mutex_unlock(&p->lock);
        kept_destroy(&gone);
        k = made;
    }
    if (!error)
        *picture = &k->picture;
    return error;
}

struct decoded_picture *pictures_kept(struct pictures *p, struct picture_key key)
{
    pthread_mutex_lock(&p->lock);
    struct kept *k = kept_find(p, key);
    if (k && !k->ready)
        k = NULL;
    if (k)
        kept_use(p, k);
    pthread_mutex_unlock(&p->lock);
    return k ? &k->picture : NULL;
}

void pictures_put(struct pictures *p, struct decoded_picture *picture, size_t read, pid_t reader)
{
    struct kept *k = (struct kept *)(void *)picture;
    pthread_mutex_lock(&p->lock);
    k->references--;
    k->left -= read < k->left ? read : k->left;
    k->reader = reader;
    k->used = clock_now();
    if (!TAILQ_EMPTY(&p->waiting))
        pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

bool pictures_known(struct pictures *p, struct picture_key key, uint64_t *length)
{
    struct picture_making m = {.key = key};
    pthread_mutex_lock(&p->lock);
    const struct picture_look *look = look_of(p, key.file);
    bool known = look->known && look->file == key.file;
    m.info = look->info;
    pthread_mutex_unlock(&p->lock);
    if (known)
        *length = making_expect(&m);
    return known;
}

void pictures_stats(struct pictures *p, struct picture_stats *stats)
{
    pthread_mutex_lock(&p->lock);
    *stats = p->stats;
    pthread_mutex_unlock(&p->lock);
}
