/* dealfs-resizer: makes the pictures of a source smaller before it is mounted.
 *
 *   dealfs-resizer SIDE QUALITY RAM-FOLDER RAM-BYTES SSD-FOLDER SSD-BYTES [COURIER]
 *   dealfs-resizer --worker    see crew.h
 *
 * Descriptor 3 is the state directory with the source's catalog, 4 the source; COURIER is the number of one to this
 * node's courier, by which several nodes do it together, each its part. What is made goes into segments of the tiers (0
 * bytes: none), where the server finds it as after a remount, and what there is to know of it into the file `resized`
 * of the state directory. Lines on stdout tell how far it is:
 *
 *   p DONE ALL BEFORE AFTER      files, and the bytes of what was made; of several nodes: once, at the end, of all
 *   e REASON                     it has failed
 *
 * Threads: those of the pass; the main thread says how far they are. SIGTERM, or the end of the courier, ends it early,
 * with what there is by then: the next one goes on from there. */
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/size.h"
#include "fs/catalog/derived.h"
#include "fs/image/crew.h"
#include "fs/resize/originals.h"
#include "fs/resize/partners.h"
#include "fs/resize/pass.h"
#include "fs/store/shard.h"
#include "fs/store/source.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { FD_OF_STATE = 3, FD_OF_SOURCE = 4, TICK_MS = 50, LOCKED_MS = 30000, END_S = 60 };

struct resizer {
    struct derived *derived;
    void *bytes; /* the derived catalog as far as it is known */
    struct catalog *catalog;
    struct shard *shard[TIERS];
    struct layer *source;
    struct crew *crew;
    uint64_t room;
    uint32_t *file;          /* to be done: here */
    uint32_t files, unknown; /* unknown: to all nodes */
    uint64_t known;          /* what is made already takes so much in tiers */
    uint64_t before, after;  /* bytes of that */
};

static int courier = -1;
static volatile sig_atomic_t ended;

static void note_end(int signal)
{
    (void)signal;
    ended = 1;
}

static _Noreturn void fail_with(const char *line)
{
    printf("e %s\n", line);
    if (courier >= 0)
        partners_fail(courier, line);
    exit(1);
}

static _Noreturn void fail(const char *what, int error)
{
    char line[512];

    snprintf(line, sizeof line, "%s: %s", what, strerror(-error));
    fail_with(line);
}

/* --- the pass --- */

static struct resizing_progress progress_of(const struct resizer *r, const struct pass_state *now)
{
    return (struct resizing_progress){.done = now->done,
                                      .all = r->files,
                                      .before = now->before,
                                      .after = now->after,
                                      .known = r->known,
                                      .needed = now->needed,
                                      .estimated = now->estimated,
                                      .unstored = now->unstored};
}

/* A courier that has gone is no end of ours: there may be a lot to store before. But it may hang, as a source can. */
static void note_courier(int error)
{
    if (!error || ended)
        return;
    log_warning("the courier: %s: ended, with what was made by now", strerror(-error));
    ended = 1;
    alarm(END_S);
}

static void say_progress(const struct resizer *r, const struct pass_state *now)
{
    const struct resizing_progress progress = progress_of(r, now);

    if (courier >= 0) {
        note_courier(partners_left(courier) ? -ECONNRESET : partners_tell(courier, &progress, false));
        return;
    }
    printf("p %u %u %" PRIu64 " %" PRIu64 "\n", now->done, r->files, r->before + now->before, r->after + now->after);
    fflush(stdout);
}

static void refuse_room(const struct resizer *r, uint64_t needed)
{
    char need[SIZE_TEXT], room[SIZE_TEXT], line[512];

    snprintf(line, sizeof line,
             "the resized images take about %s, and the tiers have room for %s: ask for more (ram=, ssd=, ssd_size=), "
             "or for smaller images",
             size_format(needed, need, sizeof need), size_format(r->room, room, sizeof room));
    fail_with(line);
}

/* Several nodes have room together: their couriers judge. */
static bool is_too_much(const struct resizer *r, const struct pass_state *now)
{
    return courier < 0 && ((now->estimated && r->known + now->needed > r->room) || now->full);
}

static void run_pass(struct resizer *r)
{
    const struct pass_config config = {
        .derived = r->derived,
        .bytes = r->bytes,
        .shard = {r->shard[TIER_RAM], r->shard[TIER_SSD]},
        .source = r->source,
        .crew = r->crew,
        .file = r->file,
        .files = r->files,
        .passes_full = courier >= 0,
    };
    struct pass *pass;
    struct pass_state now;

    int error = pass_start(&config, &pass);
    if (error)
        fail("start threads", error);
    for (pass_look(pass, &now); now.done < r->files && !now.error && !ended && !is_too_much(r, &now);
         pass_look(pass, &now)) {
        say_progress(r, &now);
        clock_sleep(TICK_MS * MILLISECOND);
    }
    uint64_t needed = now.estimated && is_too_much(r, &now) ? r->known + now.needed : 0;
    if (now.done < r->files)
        pass_stop(pass, ended);
    pass_end(pass, &now);
    if (now.error)
        fail("start threads", now.error);
    say_progress(r, &now);
    if (courier < 0 && (now.full || needed > r->room))
        refuse_room(r, needed > r->room ? needed : r->room + 1);
    if (courier >= 0 && !ended) {
        const struct resizing_progress last = progress_of(r, &now);
        note_courier(partners_tell(courier, &last, true));
    }
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

static void open_tier(struct resizer *r, enum tier_name tier, const char *folder, uint64_t capacity)
{
    struct shard_config config = {.catalog = r->catalog};

    if (capacity == 0)
        return;
    config.tier[tier] = (struct tier_config){.directory = folder, .capacity = capacity};
    int error = shard_open(&config, &r->shard[tier]);
    if (error)
        fail("open a tier", error);
    await_lock(r->shard[tier], folder);
    shard_reclaim(r->shard[tier]); /* looks at all of the catalog, and nothing is dropped from here on */
}

static void close_tiers(struct resizer *r)
{
    for (int i = 0; i < TIERS; i++) {
        int error = r->shard[i] ? shard_flush(r->shard[i]) : 0;
        if (error)
            fail("store what was made", error);
        if (r->shard[i])
            shard_close(r->shard[i]);
    }
}

static void load_catalog(struct resizer *r, const char *side, const char *quality)
{
    CLEANUP_CLOSE int fd = openat(FD_OF_STATE, "catalog", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct derived_terms terms = {.side = (uint32_t)strtoul(side, NULL, 10),
                                  .quality = (uint32_t)strtoul(quality, NULL, 10)};

    snprintf(terms.library, sizeof terms.library, "%s", image_library());
    int error = fd < 0 ? -errno : derived_create(fd, &terms, &r->derived);
    if (error)
        fail("open the catalog", error);
}

static void load_old(struct resizer *r)
{
    CLEANUP_CLOSE int fd = openat(FD_OF_STATE, "resized", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct derived *old = NULL;

    if (fd >= 0)
        derived_open(fd, &old); /* what is damaged is made anew */
    derived_adopt(r->derived, old, OUTCOME_LASTING);
    derived_close(old);
}

/* What nobody knows, as far as it is this node's. */
static void list_files(struct resizer *r, const struct resizing_part *part)
{
    r->file = malloc(((size_t)r->derived->files + 1) * sizeof *r->file);
    if (!r->file)
        fail("list files", -ENOMEM);
    for (uint32_t file = 0; file < r->derived->files; file++) {
        const struct derived_record *record = &r->derived->record[file];
        if (record->outcome == DERIVED_UNKNOWN && resizing_is_in(part, r->unknown++))
            r->file[r->files++] = file;
        if (record->outcome != DERIVED_MADE)
            continue;
        r->before += catalog_file(r->derived->original, file).size;
        r->after += record->size;
        r->known += pass_cost(record);
    }
}

static void prepare_pass(struct resizer *r)
{
    char program[64];
    size_t length;

    int error = derived_catalog(r->derived, &r->bytes, &length);
    if (!error)
        error = catalog_open_memory(r->bytes, length, &r->catalog);
    if (!error)
        error = source_create(r->derived->original, FD_OF_SOURCE, NULL, NULL, &r->source);
    snprintf(program, sizeof program, "/proc/%d/exe", (int)getpid());
    if (!error)
        error = crew_create(program, &r->crew);
    if (error)
        fail("prepare", error);
}

static void end_pass(struct resizer *r)
{
    close_tiers(r);
    crew_destroy(r->crew);
    layer_destroy(r->source);
    catalog_close(r->catalog);
    free(r->bytes);
}

/* --- all of it --- */

static uint32_t count_known(const struct derived *d)
{
    uint32_t known = 0;

    for (uint32_t file = 0; file < d->files; file++)
        known += d->record[file].outcome != DERIVED_UNKNOWN;
    return known;
}

static void resize_here(struct resizer *r, char **tiers)
{
    const uint64_t ram = strtoull(tiers[1], NULL, 10), ssd = strtoull(tiers[3], NULL, 10);
    struct resizing_part part = {0, UINT64_C(1) << 32};

    r->room = (ram ? shard_room(ram) : 0) + (ssd ? shard_room(ssd) : 0);
    int error = courier >= 0 ? partners_begin(courier, r->derived, r->room, &part) : 0;
    if (error && error != -ECONNRESET)
        fail("agree with other nodes", error);
    note_courier(error);
    if (ended)
        return;
    list_files(r, &part);
    if (r->files > 0) {
        prepare_pass(r);
        open_tier(r, TIER_RAM, tiers[0], ram);
        open_tier(r, TIER_SSD, tiers[2], ssd);
        run_pass(r);
        end_pass(r);
    } else if (courier >= 0) {
        const struct pass_state nothing = {.estimated = true};
        const struct resizing_progress last = progress_of(r, &nothing);
        note_courier(partners_tell(courier, &last, true));
    }
    if (courier >= 0 && !ended)
        note_courier(partners_end(courier, r->derived, r->file, r->files));
    if (!ended && count_known(r->derived) < r->derived->files)
        fail("agree with other nodes", -EPROTO);
    if (courier >= 0)
        printf("p %u %u 0 0\n", r->unknown, r->unknown);
}

int main(int argc, char **argv)
{
    static struct resizer resizer;

    if (argc > 1 && strcmp(argv[1], "--worker") == 0)
        return crew_work();
    if (argc != 7 && argc != 8) {
        fprintf(stderr,
                "usage: dealfs-resizer SIDE QUALITY RAM RAM-BYTES SSD SSD-BYTES [COURIER] (dealfs mount starts it)\n");
        return 2;
    }
    if (argc == 8)
        courier = (int)strtol(argv[7], NULL, 10);
    log_open("dealfs-resizer", STDERR_FILENO, false);
    signal(SIGTERM, note_end);
    signal(SIGINT, SIG_IGN);
    load_catalog(&resizer, argv[1], argv[2]);
    load_old(&resizer);
    resize_here(&resizer, argv + 3);
    int error = !ended || count_known(resizer.derived) > 0 ? derived_write(resizer.derived, FD_OF_STATE, "resized") : 0;
    if (error)
        fail("write what was made into the state directory", error);
    derived_close(resizer.derived);
    free(resizer.file);
    if (ended)
        fail("resize", -EINTR);
    return 0;
}
