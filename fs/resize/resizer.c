/* dealfs-resizer: resizes the images of a source before it is mounted.
 *
 *   dealfs-resizer SIDE QUALITY RAM-FOLDER RAM-BYTES SSD-FOLDER SSD-BYTES [COURIER [NOTES]]
 *   dealfs-resizer --worker    see crew.h
 *
 * Descriptor 3 is the state directory with the source's catalog, 4 the source. COURIER is the descriptor of a socket to
 * this node's courier (-1: none): then several nodes work together, each on its part. NOTES is the descriptor of memory
 * from which a successor resumes if this process dies (notes.h). Results go into segments of the tiers (0 bytes: none),
 * where the server finds them as after a remount, and their records into the file `resized` of the state directory.
 * Lines on stdout show the progress:
 *
 *   p DONE ALL BEFORE AFTER      files, and bytes of the results; with several nodes: once, at the end, for all
 *   e REASON                     it has failed
 *
 * Threads: those of the pass; the main thread prints the progress. SIGTERM, or the end of the courier, ends it early
 * with what is done by then: the next one resumes from there. */
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/ready.h"
#include "fs/base/size.h"
#include "fs/catalog/derived.h"
#include "fs/image/crew.h"
#include "fs/resize/notes.h"
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

enum { FD_OF_STATE = 3, FD_OF_SOURCE = 4, TICK_MS = 50, LOCKED_S = 30, END_S = 60 };

struct resizer {
    struct derived *derived;
    void *bytes; /* the derived catalog, as far as it is known */
    struct catalog *catalog;
    struct shard *shard[TIERS];
    struct layer *source;
    struct crew *crew;
    uint64_t room;
    struct notes *notes;
    uint32_t *file; /* files to be made here, and their number; part of the notes */
    uint32_t files;
    bool goes_on;              /* resumes the list of one that has died, */
    struct pass_state earlier; /* which had done this much */
    struct resizing_progress last;
};

static int courier = -1;
static volatile sig_atomic_t ended;
static char refused[512]; /* why it has ended by itself */

/* The courier's end comes as a signal or as the end of its connection. There may still be much to store, but storing
 * may hang, like a source. */
static void note_end(int signal)
{
    (void)signal;
    ended = 1;
    if (courier >= 0)
        alarm(END_S);
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
                                      .known = r->notes->known,
                                      .needed = now->needed,
                                      .estimated = now->estimated,
                                      .unstored = now->unstored};
}

static void note_courier(int error)
{
    if (!error || ended)
        return;
    log_warning("talk to the courier: %s: the resizer saves its finished images and ends", strerror(-error));
    note_end(0);
}

static void say_progress(const struct resizer *r, const struct pass_state *now)
{
    const struct resizing_progress progress = progress_of(r, now);
    if (courier >= 0) {
        note_courier(partners_left(courier) ? -ECONNRESET : partners_tell(courier, &progress, false));
        return;
    }
    printf("p %u %u %" PRIu64 " %" PRIu64 "\n", now->done, r->files, r->notes->before + now->before,
           r->notes->after + now->after);
    fflush(stdout);
}

static void refuse_room(const struct resizer *r, uint64_t needed)
{
    char need[SIZE_TEXT], room[SIZE_TEXT], line[512];
    snprintf(line, sizeof line,
             "the resized images take about %s, but the tiers have room for only %s: use larger tiers (ram=, ssd=, "
             "ssd_size=), or a smaller resize=",
             size_format(needed, need, sizeof need), size_format(r->room, room, sizeof room));
    fail_with(line);
}

/* What was made so far is worth storing. */
static void refuse_crashes(void)
{
    snprintf(refused, sizeof refused,
             "%d images have stopped or killed the process that resizes them: the log names them. Remove or repair "
             "them, then mount again to resume",
             PASS_CRASHES_MOST);
    ended = 1;
}

/* With several nodes, their couriers compare the total room. */
static bool is_too_much(const struct resizer *r, const struct pass_state *now)
{
    return courier < 0 && ((now->estimated && r->notes->known + now->needed > r->room) || now->full);
}

/* Includes what an earlier one has done. */
static void look(const struct resizer *r, struct pass_state *now)
{
    now->done += r->earlier.done;
    now->before += r->earlier.before;
    now->after += r->earlier.after;
    now->needed += now->estimated ? r->earlier.needed : 0;
}

static void run_pass(struct resizer *r, const uint32_t *todo, uint32_t count)
{
    const struct pass_config config = {
        .derived = r->derived,
        .bytes = r->bytes,
        .shard = {r->shard[TIER_RAM], r->shard[TIER_SSD]},
        .source = r->source,
        .crew = r->crew,
        .file = todo,
        .files = count,
        .passes_full = courier >= 0,
    };
    struct pass *pass;
    struct pass_state now;
    int error = pass_start(&config, &pass);
    if (error)
        fail("start threads", error);
    for (;;) {
        pass_look(pass, &now);
        look(r, &now);
        if (now.done >= r->files || now.crashes >= PASS_CRASHES_MOST || now.error || ended || is_too_much(r, &now))
            break;
        say_progress(r, &now);
        clock_sleep(TICK_MS * MILLISECOND);
    }
    uint64_t needed = now.estimated && is_too_much(r, &now) ? r->notes->known + now.needed : 0;
    if (now.done < r->files)
        pass_stop(pass, ended);
    pass_end(pass, &now);
    look(r, &now);
    if (now.error)
        fail("start threads", now.error);
    if (now.crashes >= PASS_CRASHES_MOST)
        refuse_crashes();
    say_progress(r, &now);
    if (courier < 0 && (now.full || needed > r->room))
        refuse_room(r, needed > r->room ? needed : r->room + 1);
    r->last = progress_of(r, &now);
}

/* --- before and after --- */

/* A locked tier admits nothing, which is not lack of room. */
static void await_lock(struct shard *shard, const char *folder)
{
    uint64_t until = clock_now() + clock_bound("DEALFS_TIER_PATIENCE", LOCKED_S);
    while (shard_is_locked(shard) && !ended) {
        if (clock_now() >= until) {
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
    shard_reclaim(r->shard[tier]); /* this looks at the whole catalog, and nothing is dropped from here on */
}

static void close_tiers(struct resizer *r)
{
    for (int i = 0; i < TIERS; i++) {
        int error = r->shard[i] ? shard_flush(r->shard[i]) : 0;
        if (error)
            fail("store the resized images", error);
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
        derived_open(fd, &old); /* damaged results are made again */
    derived_adopt(r->derived, old, OUTCOME_LASTING);
    derived_close(old);
}

static void open_notes(struct resizer *r, int fd)
{
    int error = notes_open(fd, r->derived, &r->notes);
    if (error)
        fail("share memory", error);
    r->goes_on = r->notes->stage != NOTES_EMPTY;
    if (r->goes_on)
        log_warning("the previous dealfs-resizer died: this one resumes its work");
    r->file = notes_list(r->notes);
}

/* This node's part of the files that no node has a record of. */
static void list_files(struct resizer *r, const struct resizing_part *part)
{
    struct notes *n = r->notes;
    for (uint32_t file = 0; file < r->derived->files; file++) {
        const struct derived_record *record = &r->derived->record[file];
        if (record->outcome == DERIVED_UNKNOWN && resizing_is_in(part, n->unknown++))
            r->file[n->listed++] = file;
        if (record->outcome != DERIVED_MADE)
            continue;
        n->before += catalog_file(r->derived->original, file).size;
        n->after += record->size;
        n->known += pass_cost(record);
    }
    notes_reach(n, NOTES_LISTED);
}

/* What was not in the file of a segment is lost: make it again. */
static void forget_lost(struct resizer *r)
{
    for (uint32_t i = 0; i < r->files; i++) {
        struct derived_record *record = &r->derived->record[r->file[i]];
        const struct span all = {.file = r->file[i], .length = record->size};
        bool held = record->outcome != DERIVED_MADE || record->size > PIECE_BYTES;
        for (int tier = 0; tier < TIERS && !held; tier++)
            held = r->shard[tier] && shard_holds(r->shard[tier], &all);
        if (held)
            continue;
        *record = (struct derived_record){.key = record->key};
        derived_put(r->derived, r->file[i], r->bytes);
    }
}

static void count_earlier(struct resizer *r)
{
    forget_lost(r);
    for (uint32_t i = 0; i < r->files; i++) {
        const struct derived_record *record = &r->derived->record[r->file[i]];
        r->earlier.done += record->outcome != DERIVED_UNKNOWN;
        r->earlier.needed += pass_cost(record);
        if (record->outcome != DERIVED_MADE)
            continue;
        r->earlier.before += catalog_file(r->derived->original, r->file[i]).size;
        r->earlier.after += record->size;
    }
    log_warning("%u of %u files are done already", r->earlier.done, r->files);
}

static void make_listed(struct resizer *r)
{
    CLEANUP_FREE uint32_t *todo = malloc(((size_t)r->files + 1) * sizeof *todo);
    uint32_t count = 0;
    if (!todo)
        fail("list files", -ENOMEM);
    if (r->goes_on)
        count_earlier(r);
    for (uint32_t i = 0; i < r->files; i++)
        if (r->derived->record[r->file[i]].outcome == DERIVED_UNKNOWN)
            todo[count++] = r->file[i];
    run_pass(r, todo, count);
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
    crew_allow(r->crew, CREW_SHRINK_MEMORY);
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

/* The courier sends nothing until all nodes have completed their parts. */
static void share_made(struct resizer *r)
{
    struct pollfd spoken = {.fd = courier, .events = POLLIN | POLLRDHUP};
    if (!ended && r->notes->stage < NOTES_TOLD) {
        note_courier(partners_tell(courier, &r->last, true));
        notes_reach(r->notes, NOTES_TOLD);
    }
    while (!ended && ready_wait(&spoken, 1, TICK_MS) <= 0)
        ;
    if (!ended) {
        notes_reach(r->notes, NOTES_SHARING);
        note_courier(partners_end(courier, r->derived, r->file, r->files));
    }
}

static void resize_here(struct resizer *r, char **tiers)
{
    const uint64_t ram = strtoull(tiers[1], NULL, 10), ssd = strtoull(tiers[3], NULL, 10);
    struct resizing_part part = {0, UINT64_C(1) << 32};
    r->room = (ram ? shard_room(ram) : 0) + (ssd ? shard_room(ssd) : 0);
    int error = courier >= 0 && !r->goes_on ? partners_begin(courier, r->derived, r->room, &part) : 0;
    if (error && error != -ECONNRESET)
        fail("agree with other nodes", error);
    note_courier(error);
    if (ended)
        return;
    if (!r->goes_on)
        list_files(r, &part);
    else if (r->notes->stage == NOTES_SHARING)
        fail_with("dealfs-resizer died while the nodes exchanged their results");
    r->files = r->notes->listed;
    if (r->files > 0 && r->notes->stage < NOTES_TOLD) {
        prepare_pass(r);
        open_tier(r, TIER_RAM, tiers[0], ram);
        open_tier(r, TIER_SSD, tiers[2], ssd);
        make_listed(r);
        end_pass(r);
    } else {
        r->last = progress_of(r, &(struct pass_state){.estimated = true});
    }
    if (courier >= 0)
        share_made(r);
    if (!ended && count_known(r->derived) < r->derived->files)
        fail("agree with other nodes", -EPROTO);
    if (courier >= 0)
        printf("p %u %u 0 0\n", r->notes->unknown, r->notes->unknown);
}

int main(int argc, char **argv)
{
    static struct resizer resizer;
    if (argc > 1 && strcmp(argv[1], "--worker") == 0)
        return crew_work();
    if (argc < 7 || argc > 9) {
        fprintf(stderr,
                "usage: dealfs-resizer SIDE QUALITY RAM RAM-BYTES SSD SSD-BYTES [COURIER [NOTES]] (dealfs mount "
                "starts it)\n");
        return 2;
    }
    if (argc > 7)
        courier = (int)strtol(argv[7], NULL, 10);
    log_open("dealfs-resizer", STDERR_FILENO, false);
    signal(SIGTERM, note_end);
    signal(SIGINT, SIG_IGN);
    load_catalog(&resizer, argv[1], argv[2]);
    load_old(&resizer);
    open_notes(&resizer, argc > 8 ? (int)strtol(argv[8], NULL, 10) : -1);
    resize_here(&resizer, argv + 3);
    int error = !ended || count_known(resizer.derived) > 0 ? derived_write(resizer.derived, FD_OF_STATE, "resized") : 0;
    if (error)
        fail("write the list of resized images into the state directory", error);
    derived_close(resizer.derived);
    if (refused[0])
        fail_with(refused);
    if (ended)
        fail("resize", -EINTR);
    return 0;
}
