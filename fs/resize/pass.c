/* Implements pass.h.
 *
 * Threads: one per processor; each takes file after file, by a counter. The caller watches the counter. */
#include "fs/resize/pass.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/thread.h"
#include "fs/resize/originals.h"

#include <stdatomic.h>
#include <string.h>

enum { SAMPLES = 1000, THREADS_MOST = 256, TICK_MS = 50, NAMED_MOST = 1000 };

struct pass {
    struct pass_config config;
    pthread_t thread[THREADS_MOST];
    int threads;
    atomic_bool *taken; /* by place in the list */
    _Atomic uint64_t next;
    _Atomic uint32_t done, named, crashes;
    _Atomic uint32_t sampled;       /* number of sampled files that are done */
    _Atomic uint64_t sample, spent; /* bytes that these take in a tier; bytes of all that is done */
    _Atomic uint64_t before, after, unstored;
    atomic_int lost; /* threads that could not start */
    atomic_bool stop, full;
};

/* --- one file --- */

static void name_outcome(struct pass *p, uint32_t file, uint32_t outcome, const char *why)
{
    CLEANUP_STR struct str name = STR_INIT;
    char path[CATALOG_PATH_MAX];
    const struct catalog *c = p->config.derived->original;
    long n = catalog_path(c, catalog_file_ino(c, file), path, sizeof path);
    uint32_t named = atomic_fetch_add(&p->named, 1);
    str_add_printable(&name, path, n < 0 ? 0 : (size_t)n);
    if (named < NAMED_MOST)
        log_warning("%s is not resized: %s: %s. Its original is served", name.data ? name.data : "?",
                    outcome_name(outcome), why);
    else if (named == NAMED_MOST)
        log_warning("further files that are not resized are counted, but not named here");
}

static bool pass_put(struct shard *shard, struct value_codec_state *codec, uint32_t file, const struct str *made)
{
    struct room room;
    size_t at = 0;
    if (!shard || shard_reserve(shard, file, 0, (uint32_t)made->length, &room) < 0)
        return false;
    for (int i = 0; i < room.values; at += room.value[i++].iov_len)
        memcpy(room.value[i].iov_base, made->data + at, room.value[i].iov_len);
    shard_commit(codec, &room);
    return true;
}

/* A tier took nothing: is it full, or slow, or pausing? */
static bool has_room(struct shard *shard, enum tier_name tier, uint64_t bytes)
{
    struct tier_status status;
    if (!shard)
        return false;
    shard_status(shard, tier, &status);
    return status.state == TIER_OPEN && status.held + bytes + SEGMENT_COST + VALUE_BYTES <= status.capacity;
}

static void pass_store(struct pass *p, struct value_codec_state *codec, uint32_t file, const struct str *made)
{
    struct shard *const *shard = p->config.shard;
    while (!pass_put(shard[TIER_SSD], codec, file, made) && !pass_put(shard[TIER_RAM], codec, file, made)) {
        if (atomic_load(&p->stop))
            return;
        if (!has_room(shard[TIER_SSD], TIER_SSD, made->length) && !has_room(shard[TIER_RAM], TIER_RAM, made->length)) {
            atomic_fetch_add(&p->unstored, made->length);
            atomic_store(&p->full, true);
            return;
        }
        clock_sleep(TICK_MS * MILLISECOND);
    }
}

static void pass_made(struct pass *p, struct value_codec_state *codec, uint32_t file, const struct str *made)
{
    struct derived *d = p->config.derived;
    struct derived_record *record = &d->record[file];
    record->size = (uint32_t)made->length;
    record->hash = hash64(made->data, made->length, 0);
    atomic_thread_fence(memory_order_release); /* a successor sees either all of it or nothing */
    record->outcome = DERIVED_MADE;
    if (made->length <= PIECE_BYTES) { /* larger results are left to the server */
        derived_put(d, file, p->config.bytes);
        pass_store(p, codec, file, made);
    }
    atomic_fetch_add(&p->before, catalog_file(d->original, file).size);
    atomic_fetch_add(&p->after, made->length);
}

static void pass_file(struct pass *p, struct value_codec_state *codec, uint32_t file, struct str *original,
                      struct str *made)
{
    const struct derived *d = p->config.derived;
    const struct image_shrinking wanted = {.side = d->terms.side, .quality = d->terms.quality};
    struct image_reason reason = {.text = "it is too large"};
    str_clear(original);
    str_clear(made);
    int error = original_read_picture(p->config.source, d->original, file, original);
    if (error) {
        d->record[file].outcome = OUTCOME_UNREADABLE;
        name_outcome(p, file, OUTCOME_UNREADABLE, strerror(-error));
        return;
    }
    enum image_verdict verdict = IMAGE_NOT_JPEG;
    if (image_is_jpeg(original->data, original->length))
        verdict = original->length < catalog_file(d->original, file).size
                      ? IMAGE_LIMIT
                      : crew_shrink(p->config.crew, original->data, original->length, &wanted, made, &reason);
    if (verdict == IMAGE_FINE) {
        pass_made(p, codec, file, made);
        return;
    }
    if (verdict == IMAGE_CRASHED && atomic_load(&p->stop))
        return; /* we have ended it */
    d->record[file].outcome = OUTCOME_PASSES + verdict;
    if (verdict == IMAGE_CRASHED && atomic_fetch_add(&p->crashes, 1) + 1 >= PASS_CRASHES_MOST)
        pass_stop(p, true);
    if (verdict != IMAGE_NOT_JPEG && verdict != IMAGE_SMALL)
        name_outcome(p, file, OUTCOME_PASSES + verdict, reason.text);
}

/* --- all of them --- */

static uint32_t samples_of(const struct pass *p)
{
    return p->config.files < SAMPLES ? p->config.files : SAMPLES;
}

/* The next file that no thread has taken; false: there is none. */
static bool pass_take(struct pass *p, uint32_t *file, bool *sample)
{
    uint32_t samples = samples_of(p), files = p->config.files;
    while (!atomic_load(&p->stop) && (p->config.passes_full || !atomic_load(&p->full))) {
        uint64_t i = atomic_fetch_add(&p->next, 1);
        if (i >= (uint64_t)files + samples)
            return false;
        *sample = i < samples;
        uint64_t place = *sample ? i * files / samples : i - samples;
        *file = p->config.file[place];
        if (!atomic_exchange(&p->taken[place], true))
            return true;
    }
    return false;
}

uint64_t pass_cost(const struct derived_record *r)
{
    return r->outcome == DERIVED_MADE ? r->size + VALUE_COST * (1 + (uint64_t)r->size / VALUE_BYTES) : 0;
}

static void *pass_body(void *user)
{
    struct pass *p = user;
    struct value_codec_state *codec = value_codec_create(0);
    CLEANUP_STR struct str original = STR_INIT, made = STR_INIT;
    uint32_t file;
    bool sample;
    if (!codec) /* the other threads do all of it */
        atomic_fetch_add(&p->lost, 1);
    while (codec && pass_take(p, &file, &sample)) {
        pass_file(p, codec, file, &original, &made);
        uint64_t cost = pass_cost(&p->config.derived->record[file]);
        atomic_fetch_add(&p->spent, cost);
        if (sample) {
            atomic_fetch_add(&p->sample, cost);
            atomic_fetch_add(&p->sampled, 1);
        }
        atomic_fetch_add(&p->done, 1);
    }
    value_codec_destroy(codec);
    return NULL;
}

int pass_start(const struct pass_config *config, struct pass **pass)
{
    struct pass *p = calloc(1, sizeof *p);
    int wanted = (int)processors_count();
    if (p)
        p->taken = calloc((size_t)config->files + 1, sizeof *p->taken);
    if (!p || !p->taken) {
        free(p);
        return -ENOMEM;
    }
    p->config = *config;
    p->threads = threads_start(p->thread, wanted < THREADS_MOST ? wanted : THREADS_MOST, "resize", pass_body, p);
    if (p->threads == 0) {
        free(p->taken);
        free(p);
        return -EAGAIN;
    }
    *pass = p;
    return 0;
}

/* When the whole sample is taken, threads may still work on a few of its files: the estimate is published when they
 * have finished these. */
static void pass_estimate(struct pass *p, struct pass_state *now)
{
    uint32_t sampled = atomic_load(&p->sampled), files = p->config.files;
    bool all = now->done >= files;
    now->estimated = all || (sampled > 0 && atomic_load(&p->next) >= samples_of(p) + THREADS_MOST);
    now->needed = all              ? atomic_load(&p->spent)
                  : now->estimated ? (uint64_t)((double)atomic_load(&p->sample) * files / sampled)
                                   : 0;
}

void pass_look(struct pass *p, struct pass_state *now)
{
    *now = (struct pass_state){
        .done = atomic_load(&p->done), .full = atomic_load(&p->full), .crashes = atomic_load(&p->crashes)};
    now->before = atomic_load(&p->before);
    now->after = atomic_load(&p->after);
    now->unstored = atomic_load(&p->unstored);
    now->error = atomic_load(&p->lost) == p->threads ? -ENOMEM : 0;
    pass_estimate(p, now);
}

void pass_stop(struct pass *p, bool hard)
{
    atomic_store(&p->stop, true);
    if (hard)
        crew_stop(p->config.crew);
}

void pass_end(struct pass *p, struct pass_state *last)
{
    threads_join(p->thread, p->threads);
    pass_look(p, last);
    free(p->taken);
    free(p);
}
