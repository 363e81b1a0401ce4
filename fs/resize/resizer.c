/* dealfs-resizer: makes the pictures of a source smaller before it is mounted.
 *
 *   dealfs-resizer SIDE QUALITY RAM-FOLDER RAM-BYTES SSD-FOLDER SSD-BYTES
 *   dealfs-resizer --worker [UID GID]    see crew.h
 *
 * Descriptor 3 is the state directory with the source's catalog, 4 the source. What is made goes into segments of the
 * tiers (0 bytes: none), where the server finds it as after a remount, and what there is to know of it into the file
 * `resized` of the state directory. Lines on stdout tell how far it is:
 *
 *   p DONE ALL BEFORE AFTER      files, and the bytes of what was made
 *   e REASON                     it has failed
 *
 * Threads: one a processor, each takes file after file: at first a sample from everywhere, which tells what all will
 * take, then what is left in its order. The main thread says how far they are. SIGTERM ends it early, with what there
 * is by then: the next one goes on from there. */
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/size.h"
#include "fs/base/thread.h"
#include "fs/catalog/derived.h"
#include "fs/image/crew.h"
#include "fs/resize/originals.h"
#include "fs/store/shard.h"
#include "fs/store/source.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    FD_OF_STATE = 3,
    FD_OF_SOURCE = 4,
    SAMPLES = 1000,
    THREADS_MOST = 256,
    TICK_MS = 50,
    LOCKED_MS = 30000,
    NAMED_MOST = 1000
};

struct pass {
    struct derived *derived;
    void *bytes; /* the derived catalog as far as it is known: sizes change under the shard's eyes */
    struct catalog *catalog;
    struct shard *shard[TIERS]; /* of one tier each: the SSD, which lasts, first; NULL: none */
    struct layer *source;
    struct crew *crew;
    uint64_t room;
    uint32_t unknown;
    uint64_t known;     /* bytes that were made earlier */
    atomic_bool *taken; /* by file: somebody makes it, or it is known */
    _Atomic uint64_t next;
    _Atomic uint32_t done, named;
    _Atomic uint32_t sampled;       /* of the sample, done */
    _Atomic uint64_t sample;        /* what these take in a tier */
    _Atomic uint64_t before, after; /* bytes of what is made, also earlier */
    atomic_bool stop, full;
};

static volatile sig_atomic_t ended;

static void note_end(int signal)
{
    (void)signal;
    ended = 1;
}

static _Noreturn void fail(const char *what, int error)
{
    printf("e %s: %s\n", what, strerror(-error));
    exit(1);
}

/* --- one file --- */

static void name_outcome(struct pass *p, uint32_t file, uint32_t outcome, const char *why)
{
    CLEANUP_STR struct str name = STR_INIT;
    char path[CATALOG_PATH_MAX];
    const struct catalog *c = p->derived->original;
    long n = catalog_path(c, catalog_file_ino(c, file), path, sizeof path);
    uint32_t named = atomic_fetch_add(&p->named, 1);

    str_add_printable(&name, path, n < 0 ? 0 : (size_t)n);
    if (named < NAMED_MOST)
        log_warning("%s is not resized and passes as it is: %s: %s", name.data ? name.data : "?", outcome_name(outcome),
                    why);
    else if (named == NAMED_MOST)
        log_warning("more files are not resized than are named here");
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

/* A tier took nothing: because it is slow, or rests? */
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
    while (!pass_put(p->shard[TIER_SSD], codec, file, made) && !pass_put(p->shard[TIER_RAM], codec, file, made)) {
        if (ended || atomic_load(&p->stop))
            return;
        if (!has_room(p->shard[TIER_SSD], TIER_SSD, made->length) &&
            !has_room(p->shard[TIER_RAM], TIER_RAM, made->length)) {
            atomic_store(&p->full, true);
            return;
        }
        clock_sleep(TICK_MS * MILLISECOND);
    }
}

static void pass_made(struct pass *p, struct value_codec_state *codec, uint32_t file, const struct str *made)
{
    struct derived_record *record = &p->derived->record[file];

    record->size = (uint32_t)made->length;
    record->hash = hash64(made->data, made->length, 0);
    record->outcome = DERIVED_MADE;
    if (made->length <= PIECE_BYTES) { /* else it is left to the server */
        derived_put(p->derived, file, p->bytes);
        pass_store(p, codec, file, made);
    }
    atomic_fetch_add(&p->before, catalog_file(p->derived->original, file).size);
    atomic_fetch_add(&p->after, made->length);
}

static void pass_file(struct pass *p, struct value_codec_state *codec, uint32_t file, struct str *original,
                      struct str *made)
{
    const struct derived *d = p->derived;
    const struct image_shrinking wanted = {.side = d->terms.side, .quality = d->terms.quality};
    struct image_reason reason = {.text = "it is too large"};

    str_clear(original);
    str_clear(made);
    int error = original_read_picture(p->source, d->original, file, original);
    if (error) {
        d->record[file].outcome = OUTCOME_UNREADABLE;
        name_outcome(p, file, OUTCOME_UNREADABLE, strerror(-error));
        return;
    }
    enum image_verdict verdict = IMAGE_NOT_JPEG;
    if (image_is_jpeg(original->data, original->length))
        verdict = original->length < catalog_file(d->original, file).size
                      ? IMAGE_LIMIT
                      : crew_shrink(p->crew, original->data, original->length, &wanted, made, &reason);
    if (verdict == IMAGE_FINE) {
        pass_made(p, codec, file, made);
        return;
    }
    d->record[file].outcome = OUTCOME_PASSES + verdict;
    if (verdict != IMAGE_NOT_JPEG && verdict != IMAGE_SMALL)
        name_outcome(p, file, OUTCOME_PASSES + verdict, reason.text);
}

/* --- all of them --- */

static uint32_t samples_of(const struct pass *p)
{
    return p->derived->files < SAMPLES ? p->derived->files : SAMPLES;
}

/* The next file that nobody has taken; false: there is none. */
static bool pass_take(struct pass *p, uint32_t *file, bool *sample)
{
    uint32_t samples = samples_of(p), files = p->derived->files;

    while (!atomic_load(&p->stop) && !atomic_load(&p->full)) {
        uint64_t i = atomic_fetch_add(&p->next, 1);
        if (i >= (uint64_t)files + samples)
            return false;
        *sample = i < samples;
        *file = (uint32_t)(*sample ? i * files / samples : i - samples);
        if (!atomic_exchange(&p->taken[*file], true))
            return true;
    }
    return false;
}

/* What a made file takes in a tier. */
static uint64_t cost_of(const struct derived_record *r)
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

    if (!codec)
        fail("start a thread", -ENOMEM);
    while (pass_take(p, &file, &sample)) {
        pass_file(p, codec, file, &original, &made);
        if (sample) {
            atomic_fetch_add(&p->sample, cost_of(&p->derived->record[file]));
            atomic_fetch_add(&p->sampled, 1);
        }
        atomic_fetch_add(&p->done, 1);
    }
    value_codec_destroy(codec);
    return NULL;
}

/* What all of it will take, once a sample is done; else 0. */
static uint64_t estimate(struct pass *p)
{
    uint32_t sampled = atomic_load(&p->sampled);

    if (sampled == 0 || (atomic_load(&p->next) < samples_of(p) + THREADS_MOST && atomic_load(&p->done) < p->unknown))
        return 0;
    return p->known + (uint64_t)((double)atomic_load(&p->sample) * p->unknown / sampled);
}

static void say_progress(const struct pass *p)
{
    printf("p %u %u %" PRIu64 " %" PRIu64 "\n", atomic_load(&p->done), p->unknown, atomic_load(&p->before),
           atomic_load(&p->after));
    fflush(stdout);
}

static void refuse_room(const struct pass *p, uint64_t needed)
{
    char need[SIZE_TEXT], room[SIZE_TEXT];

    printf(
        "e the resized images take about %s, and the tiers have room for %s: ask for more (ram=, ssd=, ssd_size=), or "
        "for smaller images\n",
        size_format(needed, need, sizeof need), size_format(p->room, room, sizeof room));
    exit(1);
}

static void pass_run(struct pass *p)
{
    pthread_t thread[THREADS_MOST];
    int wanted = (int)processors_count();
    uint64_t needed = 0;

    int count = threads_start(thread, wanted < THREADS_MOST ? wanted : THREADS_MOST, "resize", pass_body, p);
    if (count == 0)
        fail("start threads", -EAGAIN);
    while (atomic_load(&p->done) < p->unknown && !ended && !atomic_load(&p->full) && needed <= p->room) {
        say_progress(p);
        clock_sleep(TICK_MS * MILLISECOND);
        needed = needed ? needed : estimate(p);
    }
    atomic_store(&p->stop, ended || needed > p->room);
    if (ended)
        crew_stop(p->crew);
    threads_join(thread, count);
    say_progress(p);
    if (atomic_load(&p->full) || needed > p->room)
        refuse_room(p, needed > p->room ? needed : p->room + 1);
}

/* --- before and after --- */

/* While it is locked it takes nothing, which is no lack of room. */
static void await_lock(struct shard *shard, const char *folder)
{
    for (int waited = 0; shard_is_locked(shard) && !ended; waited += TICK_MS) {
        if (waited >= LOCKED_MS) {
            printf("e open the tier in %s: another process has locked it\n", folder);
            exit(1);
        }
        clock_sleep(TICK_MS * MILLISECOND);
    }
}

static void open_tier(struct pass *p, enum tier_name tier, const char *folder, const char *bytes)
{
    struct shard_config config = {.catalog = p->catalog};
    uint64_t capacity = strtoull(bytes, NULL, 10);

    if (capacity == 0)
        return;
    config.tier[tier] = (struct tier_config){.directory = folder, .capacity = capacity};
    int error = shard_open(&config, &p->shard[tier]);
    if (error)
        fail("open a tier", error);
    await_lock(p->shard[tier], folder);
    shard_reclaim(p->shard[tier]); /* looks at all of the catalog, and nothing is dropped from here on */
    p->room += shard_room(capacity);
}

static void close_tiers(struct pass *p)
{
    for (int i = 0; i < TIERS; i++) {
        int error = p->shard[i] ? shard_flush(p->shard[i]) : 0;
        if (error)
            fail("store what was made", error);
        if (p->shard[i])
            shard_close(p->shard[i]);
    }
}

static void load_old(struct pass *p)
{
    CLEANUP_CLOSE int fd = openat(FD_OF_STATE, "resized", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct derived *old = NULL;

    if (fd >= 0)
        derived_open(fd, &old); /* what is damaged is made anew */
    p->unknown = derived_adopt(p->derived, old, OUTCOME_LASTING);
    derived_close(old);
    for (uint32_t file = 0; file < p->derived->files; file++) {
        const struct derived_record *r = &p->derived->record[file];
        if (r->outcome != DERIVED_MADE)
            continue;
        p->before += catalog_file(p->derived->original, file).size;
        p->after += r->size;
        p->known += cost_of(r);
    }
}

static void load_catalog(struct pass *p, const char *side, const char *quality)
{
    CLEANUP_CLOSE int fd = openat(FD_OF_STATE, "catalog", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct derived_terms terms = {.side = (uint32_t)strtoul(side, NULL, 10),
                                  .quality = (uint32_t)strtoul(quality, NULL, 10)};

    snprintf(terms.library, sizeof terms.library, "%s", image_library());
    int error = fd < 0 ? -errno : derived_create(fd, &terms, &p->derived);
    if (error)
        fail("open the catalog", error);
    load_old(p);
}

static void pass_all(struct pass *p, char **argv)
{
    char program[64];
    size_t length;

    int error = derived_catalog(p->derived, &p->bytes, &length);
    if (!error)
        error = catalog_open_memory(p->bytes, length, &p->catalog);
    if (!error)
        error = source_create(p->derived->original, FD_OF_SOURCE, NULL, NULL, &p->source);
    snprintf(program, sizeof program, "/proc/%d/exe", (int)getpid());
    if (!error)
        error = crew_create(program, &p->crew);
    p->taken = calloc(p->derived->files + 1, sizeof *p->taken);
    if (error || !p->taken)
        fail("prepare", error ? error : -ENOMEM);
    for (uint32_t file = 0; file < p->derived->files; file++)
        p->taken[file] = p->derived->record[file].outcome != DERIVED_UNKNOWN;
    open_tier(p, TIER_RAM, argv[0], argv[1]);
    open_tier(p, TIER_SSD, argv[2], argv[3]);
    pass_run(p);
    close_tiers(p);
    crew_destroy(p->crew);
    layer_destroy(p->source);
    catalog_close(p->catalog);
    free(p->bytes);
    free(p->taken);
}

int main(int argc, char **argv)
{
    static struct pass pass;

    if (argc > 1 && strcmp(argv[1], "--worker") == 0)
        return crew_work(argv + 2);
    if (argc != 7) {
        fprintf(stderr, "usage: dealfs-resizer SIDE QUALITY RAM RAM-BYTES SSD SSD-BYTES (dealfs mount starts it)\n");
        return 2;
    }
    log_open("dealfs-resizer", STDERR_FILENO, false);
    signal(SIGTERM, note_end);
    signal(SIGINT, SIG_IGN);
    load_catalog(&pass, argv[1], argv[2]);
    if (pass.unknown)
        pass_all(&pass, argv + 3);
    int error = derived_write(pass.derived, FD_OF_STATE, "resized");
    if (error)
        fail("write what was made into the state directory", error);
    derived_close(pass.derived);
    if (ended)
        fail("resize", -EINTR);
    return 0;
}
