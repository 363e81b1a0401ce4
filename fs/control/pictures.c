/* A cache of images by file and size: kept.h, with its own rule for removal.
 *
 * An image in state READY may be removed when all of it was read, when its reader has asked for another image, or when
 * nobody has asked for it for a while. Otherwise it stays: if it were removed halfway, its next part would need
 * decoding again. So a worker that makes an image waits for room, in order of arrival; it reuses the memory of a
 * removed image. An image that is larger than all room is made when there is no other.
 *
 * Threads: any number of workers. The cache's lock also guards the room and its waiters; it is released while an image
 * is fetched or decoded. */
#include "fs/control/pictures.h"

#include "fs/control/control-private.h"
#include "fs/control/jobs.h"
#include "fs/control/picture-make.h"
#include "fs/control/protocol.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/thread.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
    LOOKS = 8192, /* number of cached headers */
    LOOK_EVERY_MS = 50,
    MEMORY_PATIENCE = 30, /* seconds to wait for memory of other requests */
    READING_MS = 1000,    /* a reader that has not asked for this long has finished; */
    READING_MOST = 10,    /* so has one that has had the image for this many seconds */
    PLACES_MOST = 4096,   /* number of images, or */
    PLACES_PART = 4,      /* this part of the open files that the process may have, */
    PLACES_LEAST = 64,    /* but more than there are workers */
};

/* While it is being made, the item's bytes are its room and the memory shared with the decoding process; then its
 * room. */
struct made_picture {
    struct decoded_picture picture; /* first */
    struct image_frame *frame;
    size_t room;
    size_t left;   /* bytes that were not read yet */
    pid_t reader;  /* the last reader, */
    uint64_t read; /* and when it read */
    uint64_t made; /* when it was made */
    struct charge charge;
};

struct room_waiter {
    TAILQ_ENTRY(room_waiter) next;
};

/* The contents of an image header. */
struct picture_look {
    bool known;
    uint32_t file;
    struct image_info info;
};

struct pictures {
    uint64_t most;
    unsigned places;
    struct crew *crew;
    struct kept kept;
    /* guarded by kept.lock: */
    TAILQ_HEAD(, room_waiter) waiting;
    struct picture_look look[LOOKS];
    struct picture_stats stats; /* except `hits` and `kept` */
};

static struct made_picture *made_of(struct kept_item *item)
{
    return (struct made_picture *)(void *)item;
}

static struct kept_item *item_of(struct made_picture *k)
{
    return &k->picture.item;
}

static void memory_free(struct kept_item *item)
{
    struct made_picture *k = made_of(item);
    frame_destroy(steal_pointer(k->frame));
    charge_fini(&k->charge);
}

static unsigned choose_places(void)
{
    struct rlimit limit;
    rlim_t places = getrlimit(RLIMIT_NOFILE, &limit) < 0 ? 0 : limit.rlim_cur / PLACES_PART;
    return places > PLACES_MOST ? PLACES_MOST : places < PLACES_LEAST ? PLACES_LEAST : (unsigned)places;
}

int pictures_create(uint64_t most, const char *program, struct pictures **pictures)
{
    struct pictures *p = calloc(1, sizeof *p);
    int error = p ? crew_create(program, &p->crew) : -ENOMEM;
    if (error) {
        free(p);
        return error;
    }
    p->most = most;
    p->places = choose_places();
    kept_init(&p->kept, sizeof(struct made_picture), memory_free, UINT_MAX, UINT64_MAX);
    TAILQ_INIT(&p->waiting);
    *pictures = p;
    return 0;
}

void pictures_destroy(struct pictures *p)
{
    if (!p)
        return;
    kept_fini(&p->kept);
    crew_destroy(p->crew);
    free(p);
}

void pictures_rest(struct pictures *p)
{
    crew_rest(p->crew);
}

static struct picture_look *look_of(struct pictures *p, uint32_t file)
{
    return &p->look[file % LOOKS];
}

/* --- room --- */

static bool may_go(struct kept_item *item, pid_t asker, uint64_t now)
{
    const struct made_picture *k = made_of(item);
    return item->ready && item->references == 0 &&
           (k->left == 0 || (asker && k->reader == asker) || now - k->read >= READING_MS * MILLISECOND ||
            now - k->made >= READING_MOST * SECOND);
}

/* Make room for `k`: `room` bytes, and a slot of `slot` bytes. The caller holds the lock. */
static bool room_make(struct pictures *p, struct made_picture *k, size_t room, size_t slot, pid_t asker,
                      struct kept_items *gone)
{
    uint64_t now = clock_now(), most = p->most > room + slot ? p->most - room - slot : 0, going = 0;
    unsigned leaving = 0;
    struct kept_item *old, *next;
    TAILQ_FOREACH(old, &p->kept.order, by_use) {
        going += may_go(old, asker, now) ? old->bytes : 0;
        leaving += may_go(old, asker, now);
    }
    if (p->kept.bytes - going > most || p->kept.count - leaving > p->places)
        return false;
    for (old = TAILQ_FIRST(&p->kept.order); old && (p->kept.bytes > most || p->kept.count > p->places); old = next) {
        next = TAILQ_NEXT(old, by_use);
        if (!may_go(old, asker, now))
            continue;
        struct image_frame *frame = k->frame;
        if (!frame || made_of(old)->frame->size > frame->size) {
            k->frame = made_of(old)->frame;
            made_of(old)->frame = frame;
        }
        if (p->kept.count > p->places && made_of(old)->left > 0)
            kept_crowd(&p->kept, old);
        kept_remove(&p->kept, old, gone);
    }
    /* A frame that is only slightly too large is not shrunk: allocating again, for the next image, takes longer. */
    if (k->frame && k->frame->size > room && k->frame->size <= room + room / 2 &&
        p->kept.bytes + k->frame->size + slot <= p->most)
        room = k->frame->size;
    k->room = room;
    kept_charge(&p->kept, item_of(k), room + slot);
    return true;
}

/* Take room, and perhaps a frame of any size. */
static int room_take(struct pictures *p, struct request_job *job, struct made_picture *k, size_t room, size_t slot)
{
    const struct asker asker = {.gave_up = job_gave_up, .user = job};
    pid_t reader = fuse_req_ctx(job->req)->pid;
    struct kept_items gone = TAILQ_HEAD_INITIALIZER(gone);
    struct room_waiter me;
    uint64_t until = clock_now() + LOOK_EVERY_MS * MILLISECOND;
    bool given_up = false;
    pthread_mutex_lock(&p->kept.lock);
    TAILQ_INSERT_TAIL(&p->waiting, &me, next);
    while (!given_up && (TAILQ_FIRST(&p->waiting) != &me || !room_make(p, k, room, slot, reader, &gone)))
        given_up = kept_wait(&p->kept, &asker, &until);
    TAILQ_REMOVE(&p->waiting, &me, next);
    pthread_cond_broadcast(&p->kept.changed);
    pthread_mutex_unlock(&p->kept.lock);
    kept_free(&p->kept, &gone);
    return given_up ? -EINTR : 0;
}

bool pictures_drop(struct pictures *p)
{
    return kept_drop(&p->kept);
}

/* --- making one --- */

static int begin_making(struct pictures *p, struct picture_making *m)
{
    pthread_mutex_lock(&p->kept.lock);
    struct picture_look *look = look_of(p, m->key.file);
    if (look->known && look->file == m->key.file)
        m->info = look->info;
    pthread_mutex_unlock(&p->kept.lock);
    m->crew = p->crew;
    int error = making_begin(m);
    if (error)
        return error;
    pthread_mutex_lock(&p->kept.lock);
    *look = (struct picture_look){true, m->key.file, m->info};
    pthread_mutex_unlock(&p->kept.lock);
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

static int make_picture(struct control *control, struct request_job *job, struct made_picture *k, uint64_t *took,
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

/* Images in progress and other requests may together need more memory than there is. An image that finds too little
 * returns all its memory, and starts again when another image is done. */
static int make_in_turn(struct control *control, struct request_job *job, struct made_picture *k, uint64_t *took,
                        struct str *why)
{
    struct pictures *p = control->pictures;
    uint64_t until = clock_now() + MEMORY_PATIENCE * SECOND;
    int error;
    while ((error = make_picture(control, job, k, took, why)) == -EAGAIN && clock_now() < until) {
        if (job_gave_up(job))
            return -EINTR;
        str_clear(why);
        memory_free(item_of(k));
        pthread_mutex_lock(&p->kept.lock);
        kept_charge(&p->kept, item_of(k), 0);
        pthread_cond_broadcast(&p->kept.changed);
        cond_wait_until(&p->kept.changed, &p->kept.lock, clock_now() + LOOK_EVERY_MS * MILLISECOND);
        pthread_mutex_unlock(&p->kept.lock);
    }
    return error == -EAGAIN ? -ENOMEM : error;
}

static void picture_made(struct pictures *p, struct made_picture *k, int error, uint64_t took)
{
    pthread_mutex_lock(&p->kept.lock);
    p->stats.failed += error && error != -EINTR;
    p->stats.decoded += !error;
    p->stats.nanoseconds += error ? 0 : took;
    k->read = k->made = clock_now();
    pthread_mutex_unlock(&p->kept.lock);
    if (error)
        kept_fail(&p->kept, item_of(k));
    else
        kept_done(&p->kept, item_of(k), k->room);
}

/* --- asking for one --- */

static struct digest digest_of(struct picture_key key)
{
    struct digest digest = {{0}};
    memcpy(digest.byte, &key, sizeof key);
    return digest;
}

int pictures_get(struct control *control, struct request_job *job, struct picture_key key,
                 struct decoded_picture **picture, struct str *why)
{
    const struct asker asker = {.gave_up = job_gave_up, .user = job};
    const struct digest digest = digest_of(key);
    struct pictures *p = control->pictures;
    struct kept_item *item;
    uint64_t took = 0;
    int error = kept_get(&p->kept, &digest, &asker, &item);
    if (error == 1) {
        made_of(item)->picture.key = key;
        error = make_in_turn(control, job, made_of(item), &took, why);
        picture_made(p, made_of(item), error, took);
    }
    if (!error)
        *picture = &made_of(item)->picture;
    return error;
}

struct decoded_picture *pictures_kept(struct pictures *p, struct picture_key key)
{
    const struct digest digest = digest_of(key);
    struct kept_item *item = kept_find(&p->kept, &digest);
    return item ? &made_of(item)->picture : NULL;
}

void pictures_put(struct pictures *p, struct decoded_picture *picture, size_t read, pid_t reader)
{
    struct made_picture *k = (struct made_picture *)(void *)picture;
    pthread_mutex_lock(&p->kept.lock);
    k->left -= read < k->left ? read : k->left;
    k->reader = reader;
    k->read = clock_now();
    pthread_mutex_unlock(&p->kept.lock);
    kept_put(&p->kept, &picture->item);
}

bool pictures_known(struct pictures *p, struct picture_key key, uint64_t *length)
{
    struct picture_making m = {.key = key};
    pthread_mutex_lock(&p->kept.lock);
    const struct picture_look *look = look_of(p, key.file);
    bool known = look->known && look->file == key.file;
    m.info = look->info;
    pthread_mutex_unlock(&p->kept.lock);
    if (known)
        *length = making_expect(&m);
    return known;
}

bool pictures_crowded(struct pictures *p, unsigned *places)
{
    *places = p->places;
    return kept_crowded(&p->kept);
}

void pictures_stats(struct pictures *p, struct picture_stats *stats)
{
    LOCK_SCOPE(&p->kept.lock);
    *stats = p->stats;
    stats->hits = p->kept.hits;
    stats->kept = p->kept.bytes;
}
