/* A table of pictures by file and size, the least recently used one first in `order`.
 *
 *   state    who asks                                  becomes
 *   MAKING   waits for `changed`                       READY; or gone, where it failed, and one of those who wait tries
 *   READY    gets it                                   gone when there is no room and nobody reads it
 *
 * Threads: workers, any number at once. `lock` guards the table and each picture's state; it is not held while one is
 * fetched or decoded. */
#include "fs/control/pictures.h"

#include "fs/control/control-private.h"
#include "fs/control/jobs.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/thread.h"
#include "fs/image/image.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum {
    BUCKETS = 4096,
    HEAD_FIRST = 64 << 10, /* bytes of a file that are looked at for its header; then four times as many */
    NPY_ALIGN = 64,
    COEFFICIENTS = 8, /* bytes that a picture of several scans takes for a pixel, at most */
    LOOK_EVERY_MS = 50,
    MEMORY_PATIENCE = 30, /* seconds that memory in others' hands is waited for */
};

struct kept {
    struct decoded_picture picture; /* first */
    bool ready;
    unsigned references;
    struct charge charge;
    LIST_ENTRY(kept) same_bucket;
    TAILQ_ENTRY(kept) by_use;
};

struct pictures {
    uint64_t most;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    LIST_HEAD(, kept) bucket[BUCKETS];
    TAILQ_HEAD(, kept) order;
    struct picture_stats stats;
};

void (*pictures_fault)(const char *name);

struct pictures *pictures_create(uint64_t most)
{
    struct pictures *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->most = most;
    pthread_mutex_init(&p->lock, NULL);
    cond_init(&p->changed);
    TAILQ_INIT(&p->order);
    return p;
}

/* With the lock. */
static void kept_free(struct pictures *p, struct kept *k)
{
    LIST_REMOVE(k, same_bucket);
    TAILQ_REMOVE(&p->order, k, by_use);
    p->stats.kept -= k->picture.length;
    free(k->picture.bytes);
    charge_fini(&k->charge);
    free(k);
}

void pictures_destroy(struct pictures *p)
{
    if (!p)
        return;
    for (struct kept *k; (k = TAILQ_FIRST(&p->order));)
        kept_free(p, k);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

/* --- from the store --- */

struct picture_fetch {
    struct store_read read;
    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t ended;
    bool over;
    int error;
};

static void fetch_done(struct store_read *read, int error)
{
    struct picture_fetch *f = (struct picture_fetch *)(void *)((char *)read - offsetof(struct picture_fetch, read));

    pthread_mutex_lock(&f->lock);
    f->over = true;
    f->error = error;
    pthread_cond_signal(&f->ended);
    pthread_mutex_unlock(&f->lock);
}

static int fetch_wait(struct picture_fetch *f, struct store *store, struct request_job *job)
{
    pthread_mutex_lock(&f->lock);
    while (!f->over) {
        if (cond_wait_until(&f->ended, &f->lock, clock_now() + LOOK_EVERY_MS * MILLISECOND) || f->over)
            continue;
        pthread_mutex_unlock(&f->lock);
        if (job_gave_up(job) && store_cancel(store, &f->read))
            return -EINTR;
        pthread_mutex_lock(&f->lock);
    }
    pthread_mutex_unlock(&f->lock);
    return f->error;
}

static void copy_answer(const struct answer *answer, char *to)
{
    for (int i = 0; i < answer->pieces; i++) {
        memcpy(to, answer->piece[i].iov_base, answer->piece[i].iov_len);
        to += answer->piece[i].iov_len;
    }
}

static int fetch_span(struct store *store, struct request_job *job, const struct span *span, char *to)
{
    CLEANUP_FREE struct picture_fetch *f = calloc(1, sizeof *f);

    if (!f)
        return -ENOMEM;
    pthread_mutex_init(&f->lock, NULL);
    cond_init(&f->ended);
    f->read = (struct store_read){.span = *span, .done = fetch_done};
    int error = store_read(store, &f->read);
    if (error == -EINPROGRESS)
        error = fetch_wait(f, store, job);
    if (!error)
        copy_answer(&f->read.answer, to);
    answer_release(&f->read.answer);
    pthread_cond_destroy(&f->ended);
    pthread_mutex_destroy(&f->lock);
    return error;
}

static int fetch_bytes(struct store *store, struct request_job *job, uint32_t file, uint64_t from, uint64_t to,
                       char *bytes)
{
    int error = 0;

    while (from < to && !error) {
        uint64_t left = to - from;
        const struct span span = {
            .file = file, .offset = from, .length = left < SPAN_BYTES ? (uint32_t)left : SPAN_BYTES};
        error = fetch_span(store, job, &span, bytes + from);
        from += span.length;
    }
    return error;
}

/* --- what it is --- */

/* One picture in the making. */
struct picture_making {
    struct control *control;
    struct request_job *job;
    struct picture_key key;
    uint64_t size; /* of the file */
    char *bytes;   /* of it, `have` of them */
    uint64_t have;
    struct image_info info;
    struct image_wish wish;
    struct image_pixels scaled, shown; /* as decoded, and as wanted */
    char head[256];                    /* of the .npy file */
    size_t head_length;
    struct charge charge;
    uint64_t needed; /* memory, in all; 0: not yet known */
    struct str *why;
};

static void making_fini(struct picture_making *m)
{
    free(m->bytes);
    charge_fini(&m->charge);
}

static int fetch_up_to(struct picture_making *m, uint64_t wanted)
{
    wanted = wanted < m->size ? wanted : m->size;
    int error = charge_add(&m->charge, wanted - m->have, m->why);
    char *bytes = error ? NULL : realloc(m->bytes, wanted + 1);

    if (!bytes)
        return -ENOMEM;
    m->bytes = bytes;
    error = fetch_bytes(m->control->config.store, m->job, m->key.file, m->have, wanted, bytes);
    m->have = error ? m->have : wanted;
    return error;
}

static int say_verdict(struct picture_making *m, enum image_verdict verdict, const struct image_reason *reason)
{
    str_addf(m->why, "%s: ", image_verdict_name(verdict));
    str_adds(m->why, reason->text[0] ? reason->text : "cannot be shown");
    return verdict == IMAGE_NO_MEMORY ? -ENOMEM : -EIO;
}

/* Its header may be long: a profile, a preview. */
static int look_at_header(struct picture_making *m)
{
    struct image_reason reason;
    enum image_verdict verdict = IMAGE_TRUNCATED;
    int error = 0;

    for (uint64_t most = HEAD_FIRST; !error; most *= 4) {
        if (m->have < most)
            error = fetch_up_to(m, most);
        if (error)
            return error;
        verdict = image_probe(m->bytes, m->have, NULL, &m->info, &reason);
        if (verdict != IMAGE_TRUNCATED || m->have == m->size)
            break;
    }
    return verdict == IMAGE_FINE ? 0 : say_verdict(m, verdict, &reason);
}

/* Version 1.0 of the format: magic, length, a Python literal filled up with blanks so that the array is aligned. */
static void write_head(struct picture_making *m)
{
    enum { BEFORE = 10 };
    int n = snprintf(m->head + BEFORE, sizeof m->head - BEFORE,
                     "{'descr': '|u1', 'fortran_order': False, 'shape': (%" PRIu32 ", %" PRIu32 ", 3), }",
                     m->shown.height, m->shown.width);

    m->head_length = ((size_t)n + BEFORE + 1 + NPY_ALIGN - 1) / NPY_ALIGN * NPY_ALIGN;
    memset(m->head + BEFORE + n, ' ', m->head_length - BEFORE - (size_t)n - 1);
    m->head[m->head_length - 1] = '\n';
    memcpy(m->head, "\x93NUMPY\x01\0", 8);
    m->head[8] = (char)((m->head_length - BEFORE) & 0xff);
    m->head[9] = (char)((m->head_length - BEFORE) >> 8);
}

static void choose_sizes(struct picture_making *m)
{
    const struct image_wish whole = {.channels = 3, .upright = true};

    m->wish = whole;
    m->shown = m->scaled = image_decoded(&m->info, &whole);
    if (m->key.side && image_fit(m->key.side, &m->shown.width, &m->shown.height)) {
        m->wish.side = 2 * m->key.side;
        m->scaled = image_decoded(&m->info, &m->wish);
    }
    m->wish.lenient = true;
    write_head(m);
}

static int making_begin(struct picture_making *m)
{
    m->size = catalog_file(m->control->config.catalog, m->key.file).size;
    m->charge = control_charge(m->control, fuse_req_ctx(m->job->req)->uid);
    int error = look_at_header(m);
    if (!error)
        choose_sizes(m);
    return error;
}

static uint64_t making_length(const struct picture_making *m)
{
    return m->head_length + image_pixels_size(&m->shown);
}

int pictures_length(struct control *control, struct request_job *job, struct picture_key key, uint64_t *length,
                    struct str *why)
{
    struct picture_making m = {.control = control, .job = job, .key = key, .why = why};
    int error = making_begin(&m);

    *length = error ? 0 : making_length(&m);
    making_fini(&m);
    return error;
}

/* --- its pixels --- */

static bool is_scaled(const struct picture_making *m)
{
    return m->scaled.width != m->shown.width || m->scaled.height != m->shown.height;
}

static int decode_into(struct picture_making *m, char *array)
{
    struct image_reason reason = {""};
    CLEANUP_FREE uint8_t *between = is_scaled(m) ? malloc(image_pixels_size(&m->scaled)) : NULL;
    size_t name_length;

    m->shown.data = (uint8_t *)array;
    m->scaled.data = is_scaled(m) ? between : m->shown.data;
    if (!m->scaled.data)
        return -ENOMEM;
    if (pictures_fault)
        pictures_fault(catalog_name(m->control->config.catalog,
                                    catalog_file_ino(m->control->config.catalog, m->key.file), &name_length));
    enum image_verdict verdict = image_decode(m->bytes, m->size, &m->wish, &m->scaled, &reason);
    if (verdict != IMAGE_FINE)
        return say_verdict(m, verdict, &reason);
    return is_scaled(m) && !image_resize(&m->scaled, &m->shown) ? -ENOMEM : 0;
}

/* What it takes while it is decoded, beyond the array. */
static uint64_t working_memory(struct picture_making *m)
{
    uint64_t pixels = (uint64_t)m->info.width * m->info.height;
    uint64_t coefficients = m->info.scans ? pixels * COEFFICIENTS : 0;

    m->wish.limits = image_limits_usual;
    m->wish.limits.memory = coefficients + (16 << 20);
    return coefficients + (is_scaled(m) ? image_pixels_size(&m->scaled) : 0);
}

static int make_array(struct picture_making *m, struct kept *k, uint64_t *took)
{
    uint64_t length = making_length(m);
    struct charge array = charge_like(&m->charge);
    int error = charge_add(&m->charge, working_memory(m), m->why);

    if (!error)
        error = charge_add(&array, length, m->why);
    char *bytes = error ? NULL : malloc(length);
    if (!error && !bytes)
        error = str_no_memory(m->why);
    if (!error) {
        memcpy(bytes, m->head, m->head_length);
        uint64_t began = clock_now();
        error = decode_into(m, bytes + m->head_length);
        *took = clock_now() - began;
    }
    if (error) {
        free(bytes);
        charge_fini(&array);
        return error;
    }
    charge_keep(&array);
    k->picture.bytes = bytes;
    k->picture.length = length;
    k->charge = array;
    return 0;
}

static int make_picture(struct control *control, struct request_job *job, struct kept *k, uint64_t *took,
                        uint64_t *needed, struct str *why)
{
    struct picture_making m = {.control = control, .job = job, .key = k->picture.key, .why = why};
    int error = making_begin(&m);

    if (!error) {
        m.needed = m.size + working_memory(&m) + making_length(&m);
        error = fetch_up_to(&m, m.size);
    }
    if (!error)
        error = make_array(&m, k, took);
    *needed = m.needed;
    making_fini(&m);
    return error;
}

/* Pictures that are made at once may together need more memory than there is: one that found too little gives all of
 * its own back, and begins again when another is made. */
static int make_in_turn(struct control *control, struct request_job *job, struct kept *k, uint64_t *took,
                        struct str *why)
{
    struct pictures *p = control->pictures;
    uint64_t until = clock_now() + MEMORY_PATIENCE * SECOND, needed;
    int error;

    while ((error = make_picture(control, job, k, took, &needed, why)) == -ENOMEM && clock_now() < until &&
           needed <= control->config.mount->request_memory) {
        if (job_gave_up(job))
            return -EINTR;
        str_clear(why);
        pthread_mutex_lock(&p->lock);
        cond_wait_until(&p->changed, &p->lock, clock_now() + LOOK_EVERY_MS * MILLISECOND);
        pthread_mutex_unlock(&p->lock);
    }
    return error;
}

/* --- the table; with the lock --- */

static unsigned bucket_of(struct picture_key key)
{
    return (key.file * 2654435761u + key.side) % BUCKETS;
}

static struct kept *kept_find(struct pictures *p, struct picture_key key)
{
    struct kept *k;

    LIST_FOREACH(k, &p->bucket[bucket_of(key)], same_bucket)
    if (k->picture.key.file == key.file && k->picture.key.side == key.side)
        return k;
    return NULL;
}

static bool drop_oldest(struct pictures *p, const struct kept *but)
{
    struct kept *k;

    TAILQ_FOREACH(k, &p->order, by_use)
        if (k->ready && k->references == 0 && k != but) {
            kept_free(p, k);
            return true;
        }
    return false;
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

static void kept_made(struct pictures *p, struct kept *k, int error, uint64_t took)
{
    pthread_cond_broadcast(&p->changed);
    if (error) {
        p->stats.failed += error != -EINTR;
        kept_free(p, k);
        return;
    }
    k->ready = true;
    p->stats.decoded++;
    p->stats.nanoseconds += took;
    p->stats.kept += k->picture.length;
    while (p->stats.kept > p->most && drop_oldest(p, k))
        ;
}

static void kept_use(struct pictures *p, struct kept *k)
{
    k->references++;
    p->stats.hits++;
    TAILQ_REMOVE(&p->order, k, by_use);
    TAILQ_INSERT_TAIL(&p->order, k, by_use);
}

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
        kept_made(p, made, error, took);
        pthread_mutex_unlock(&p->lock);
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

void pictures_put(struct pictures *p, struct decoded_picture *picture)
{
    struct kept *k = (struct kept *)(void *)picture;

    pthread_mutex_lock(&p->lock);
    k->references--;
    pthread_mutex_unlock(&p->lock);
}

bool pictures_drop(struct pictures *p)
{
    pthread_mutex_lock(&p->lock);
    bool dropped = drop_oldest(p, NULL);
    pthread_mutex_unlock(&p->lock);
    return dropped;
}

void pictures_stats(struct pictures *p, struct picture_stats *stats)
{
    pthread_mutex_lock(&p->lock);
    *stats = p->stats;
    pthread_mutex_unlock(&p->lock);
}
