/* The problems of a mount, one sentence per problem, and how bad the worst is:
 *
 *   good       there is none
 *   degraded   the mount works with less than it was given, or had a problem in the last hour
 *   fault      reads fail, wait, or lack a tier or the source now */
#include "fs/control/health.h"

#include "fs/control/control-private.h"
#include "fs/control/pictures.h"
#include "fs/control/plan-files.h"

#include "fs/base/clock.h"
#include "fs/base/json.h"
#include "fs/base/size.h"
#include "fs/base/version.h"
#include "fs/catalog/derived.h"
#include "fs/wire/feed.h"
#include "fs/wire/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

enum { WAIT_S = 5 }; /* longer waits get a sentence */
/* a failure counts as a fault for a minute, and is reported for an hour */
enum { NOW_S = 60, NEWS_S = ENDINGS_LATELY_S };

enum condition { GOOD, DEGRADED, FAULT };

struct sentences {
    struct json *json;
    enum condition worst;
};

__attribute__((format(printf, 3, 4))) static void add_sentence(struct sentences *s, enum condition condition,
                                                               const char *format, ...)
{
    CLEANUP_STR struct str text = STR_INIT;
    va_list args;
    va_start(args, format);
    str_addv(&text, format, args);
    va_end(args);
    json_string(s->json, NULL, text.failed ? "out of memory" : text.data);
    s->worst = condition > s->worst ? condition : s->worst;
}

/* --- the world --- */

static void add_degraded(struct sentences *s, const struct control *control, const struct world_view *view)
{
    CLEANUP_STR struct str rejoin = STR_INIT;
    uint64_t share = world_view_lost_share(control, view);
    char size[SIZE_TEXT];
    world_view_add_rejoin(control, view, &rejoin);
    add_sentence(s, DEGRADED,
                 "%u of %u nodes cannot be asked: what they own, %s (%" PRIu64 ".%" PRIu64
                 "%% of the dataset), is read from the source. To form a world again: %s",
                 world_view_gone(view), view->nodes, size_format(view->lost_bytes, size, sizeof size), share / 10,
                 share % 10, rejoin.failed ? "" : rejoin.data);
}

static void add_turn_health(struct sentences *s, const struct control *control, const struct world_view *view)
{
    const struct turn_outcome *failed = &view->failed;
    if (failed->status && failed->node < view->nodes)
        add_sentence(s, DEGRADED, "the last change of owners (%s) failed because of node %u: %s",
                     turn_names[failed->record.turn.cause], failed->node, strerror(-failed->status));
    else if (failed->status)
        add_sentence(s, DEGRADED, "the last change of owners (%s) took too long; `turn` shows whether it happened",
                     turn_names[failed->record.turn.cause]);
    if (view->unsaved)
        add_sentence(
            s, DEGRADED,
            "the world cannot be saved in %s: %s; it continues, and the next server gets it from other processes",
            control->config.mount->state, strerror(-view->unsaved));
}

enum { LOCAL_PERCENT = 50 }; /* a lower local share of an epoch gets a sentence */

/* How much a node can read of its own data if it reads an even share of an epoch, chosen by locality. */
static double local_part(const struct layout *owners, uint32_t node, double share)
{
    double owned = (double)layout_owned(owners, node);
    return owned < share ? owned : share;
}

static void add_roomless(struct str *text, const struct world_view *view, double share)
{
    enum { NAMED = 8 };
    uint32_t count = 0;
    for (uint32_t i = 0; i < view->nodes; i++)
        if (local_part(view->owners, i, share) < share / 10 && count++ < NAMED)
            str_addf(text, "%s %u", count == 1 ? ": the tiers of node" : ",", i);
    if (count > NAMED)
        str_addf(text, " and %u more", count - NAMED);
    if (count > 0)
        str_adds(text, " have almost no room");
}

static void add_locality(struct sentences *s, const struct control *control, const struct world_view *view)
{
    CLEANUP_STR struct str roomless = STR_INIT;
    double whole = control_filled(control) ? (double)catalog_bytes(control->config.catalog) : 0, local = 0;
    double share = whole / view->nodes;
    if (view->state != WORLD_JOINED || view->nodes < 2 || !view->owners || whole < 1)
        return;
    for (uint32_t i = 0; i < view->nodes; i++)
        local += local_part(view->owners, i, share);
    if (local * 100 >= whole * LOCAL_PERCENT)
        return;
    add_roomless(&roomless, view, share);
    add_sentence(s, DEGRADED,
                 "at most %d %% of an epoch is local%s. Give nodes more ram= or an ssd=", (int)(100 * local / whole),
                 roomless.length ? roomless.data : "");
}

static void add_world_health(struct sentences *s, const struct control *control, const struct world_view *view)
{
    if (!control_filled(control))
        add_sentence(s, DEGRADED, CONTROL_NOT_FILLED);
    if (view->lost)
        add_sentence(s, DEGRADED, CONTROL_LAYOUT_LOST);
    if (view->state == WORLD_DEGRADED)
        add_degraded(s, control, view);
    add_turn_health(s, control, view);
    add_locality(s, control, view);
    for (uint32_t i = 0; i < view->nodes && view->state == WORLD_JOINED && view->peer; i++) {
        CLEANUP_STR struct str host = STR_INIT;
        if (view->peer[i].state != PEER_SUSPECT)
            continue;
        str_add_printable(&host, view->peer[i].node.host, strlen(view->peer[i].node.host));
        add_sentence(s, DEGRADED,
                     "node %u (%s) did not answer in time: for a while what it owns is read from the source", i,
                     host.failed ? "" : host.data);
    }
}

/* --- servers, and what waits --- */

static uint64_t seconds_since(uint64_t then, uint64_t now)
{
    return now > then ? (now - then) / SECOND : 0;
}

static void add_endings(struct sentences *s, const struct endings *endings)
{
    unsigned lately = endings_lately(endings, ENDINGS_LATELY_S * SECOND);
    struct ending last;
    char cause[128];
    if (lately == 0 || endings_get(endings, 0, &last) < 0)
        return;
    ending_describe(&last, cause, sizeof cause);
    add_sentence(
        s, DEGRADED, "%u%s server%s of this mount ended in the last hour; the last one, %" PRIu64 " s ago, %s%s",
        lately, lately == ENDINGS_KEPT ? " or more" : "", lately == 1 ? "" : "s",
        seconds_since(last.at, clock_realtime()), cause,
        last.how == ENDING_SIGNAL && last.number == SIGKILL
            ? ". If nobody did that, memory ran out (see dmesg): give the job more memory, or the mount a smaller ram="
            : "");
}

static void add_level(struct sentences *s, const struct handover *h)
{
    static const char *const without[] = {
        [LEVEL_NO_TIERS] = "its tiers: reads are answered by other nodes and the source",
        [LEVEL_NO_PEERS] = "its tiers and without other nodes: all reads are answered by the source",
    };
    uint32_t level = atomic_load(&h->level), lingering = handover_lingering(h);
    uint64_t stranded = atomic_load(&h->stranded);
    if (level == LEVEL_NO_TIERS || level == LEVEL_NO_PEERS)
        add_sentence(s, FAULT,
                     "servers of this mount died repeatedly, or hung, so this one works without %s. This ends after a "
                     "minute without a death, or ten minutes after a server hung%s",
                     without[level], level == LEVEL_NO_PEERS ? "; then run `dealfs join` if the world has ended" : "");
    if (lingering > 0)
        add_sentence(s, FAULT, "%u killed server%s cannot end: a disk or the source hangs", lingering,
                     lingering == 1 ? "" : "s");
    if (stranded > 0)
        add_sentence(s, DEGRADED,
                     "%" PRIu64 " request%s failed with EIO while no server could run, the last one %" PRIu64 " s ago",
                     stranded, stranded == 1 ? "" : "s", seconds_since(atomic_load(&h->stranded_at), clock_realtime()));
}

static void add_program(struct sentences *s, const struct handover *h)
{
    uint32_t program = atomic_load(&h->program);
    if (program == PROGRAM_PREVIOUS)
        add_sentence(
            s, DEGRADED,
            "a server of the installed program died or hung, so dealfs %s still runs: see `dealfs log`, install "
            "a version that works, and run `dealfs upgrade`",
            version_text);
    if (program == PROGRAM_REFUSED)
        add_sentence(s, DEGRADED,
                     "the installed dealfs-server is missing, or other users may write it, so dealfs %s still runs: "
                     "install it again, and run `dealfs upgrade`",
                     version_text);
}

static void add_sampler(struct sentences *s, const struct mount_config *mount, const struct feed *feed)
{
    uint32_t ranks = feed ? atomic_load(&feed->fitting_ranks) : 0, batch = feed ? atomic_load(&feed->fitting_batch) : 0;
    char fitting[64] = "";
    if (mount->sampler_ranks == 0 || !feed)
        return;
    if (ranks > 0)
        snprintf(fitting, sizeof fitting, "; they match ranks=%" PRIu32, ranks);
    if (atomic_load(&feed->unmatched))
        add_sentence(s, DEGRADED,
                     "sampler=torch: the loaders' reads match no epoch of ranks=%d, batch=%d, seed=%" PRIu64
                     ", so nothing is read ahead%s. Compare these options with the training script",
                     mount->sampler_ranks, mount->sampler_batch, mount->sampler_seed, fitting);
    else if (batch > 0)
        add_sentence(s, DEGRADED,
                     "sampler=torch: loaders do not read batches of batch=%d samples, but of %" PRIu32
                     " or a divisor of it. Mount again with the training script's batch size per rank",
                     mount->sampler_batch, batch);
}

static void add_feeder(struct sentences *s, const struct feed *feed)
{
    uint64_t again = feed ? atomic_load(&feed->again) : 0;
    if (!feed || !atomic_load(&feed->off))
        return;
    if (again)
        add_sentence(s, DEGRADED,
                     "the feeder died repeatedly, %u times so far: nothing is read ahead of loaders; it is started "
                     "again in %" PRIu64 " s",
                     atomic_load(&feed->deaths), seconds_since(clock_now(), again));
    else
        add_sentence(s, DEGRADED, "dealfs-feeder is not installed: nothing is read ahead of loaders");
}

/* The store knows what its reads wait for. Other requests wait for a first join, or in a worker. */
static void add_waits(struct sentences *s, const struct control *control, const struct store_stats *stats)
{
    static const char *const whom[PLACES] = {"memory", "the SSD", "other nodes", "the source"};
    uint64_t oldest = atomic_load(&control->config.handover->pulse.oldest), now = clock_now();
    uint64_t longest = oldest ? seconds_since(oldest, now) : 0;
    uint64_t waits[PLACES] = {0};
    enum place most = PLACE_SOURCE;
    for (int place = 0; place < PLACES; place++) {
        /* a loader may wait for what the feeder reads */
        waits[place] = stats->waits[place] + stats->fed.waits[place];
        if (waits[place] > waits[most])
            most = place;
    }
    if (longest < WAIT_S)
        return;
    if (!control_filled(control))
        add_sentence(s, FAULT, "requests wait for the first join, the longest for %" PRIu64 " s", longest);
    else if (waits[most] > 0)
        add_sentence(s, FAULT, "%" PRIu64 " read%s for %s, the longest for %" PRIu64 " s", waits[most],
                     waits[most] == 1 ? " waits" : "s wait", whom[most], longest);
    else
        add_sentence(s, FAULT, "a request has been in progress for %" PRIu64 " s", longest);
}

/* --- tiers, directories, the source --- */

const char *health_tier_error(const struct tier_status *tier)
{
    return tier->reason ? tier->reason : tier->error ? control_error_text(tier->error) : NULL;
}

static void add_tier_health(struct sentences *s, const char *name, const struct tier_status *tier, bool shut)
{
    if (tier->state == TIER_LOCKED && !shut)
        add_sentence(s, DEGRADED, "the %s tier is not open yet: the previous server still uses it", name);
    if (tier->state == TIER_CLOSED)
        add_sentence(s, FAULT, "the %s tier accepts no more data: %s; its cached data is still used", name,
                     health_tier_error(tier));
    if (tier->state == TIER_FAILED)
        add_sentence(s, FAULT, "the %s tier is not used until the next mount: %s; its files are not changed", name,
                     health_tier_error(tier));
    if (tier->bad_values > 0)
        add_sentence(s, DEGRADED,
                     "the %s tier returned %" PRIu64 " damaged values; they were dropped and fetched again", name,
                     tier->bad_values);
}

/* The mount itself does not need the directory, but the next mount would. Cleaners of temporary directories, people, or
 * disks may remove it. */
static void add_state_health(struct sentences *s, const struct control *control)
{
    static const char *const names[] = {"lock", "config", "catalog"};
    const char *state = control->config.mount->state;
    struct stat st;
    if (!control->config.state || !control_filled(control))
        return;
    if (fstat(control->config.state, &st) == 0 && st.st_nlink == 0) {
        add_sentence(s, DEGRADED,
                     "the state directory %s was removed: the mount works, but no courier finds it, uploaded sample "
                     "lists end with this server, and the next mount scans the whole source",
                     state);
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (faccessat(control->config.state, names[i], F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT) {
            add_sentence(s, DEGRADED, "%s was removed from the state directory %s: the mount works without it",
                         names[i], state);
            return;
        }
}

static void add_source_health(struct sentences *s, const struct control *control, const struct root_state *root)
{
    const char *path = control->config.mount->source;
    if (root->lost && root->refused == EXDEV)
        add_sentence(s, FAULT, "the source is lost: %s; %s is now another directory, which is not read",
                     control_error_text(root->lost), path);
    else if (root->lost)
        add_sentence(s, FAULT, "the source is lost: %s; it is opened again when it is back at %s",
                     control_error_text(root->lost), path);
    else if (root->opened > 0 && clock_now() - root->last < NEWS_S * SECOND)
        add_sentence(s, DEGRADED, "the source was lost and is back: opened again %u times", root->opened);
}

/* Not a problem, but other users keep a right so long at most. */
static void add_round(struct sentences *s, uint64_t seconds)
{
    enum { LONG_S = 60 };
    if (seconds > LONG_S)
        add_sentence(s, GOOD,
                     "a directory's mode that is reduced in the source takes effect within %" PRIu64
                     " s: each directory is looked at that often",
                     seconds);
}

/* Of a long path only its end. */
static void add_lacking(struct sentences *s, const struct control *control)
{
    enum { SHOWN = 200 };
    char path[CATALOG_PATH_MAX];
    CLEANUP_STR struct str name = STR_INIT;
    uint64_t first = 0, count = control_filled(control) ? catalog_lacking(control->config.catalog, &first) : 0;
    if (count == 0)
        return;
    if (control_inode_shown(control, first, path)) {
        size_t length = strlen(path), skipped = length > SHOWN ? length - SHOWN : 0;
        str_adds(&name, skipped ? ", first ..." : length ? ", first " : ", first the root");
        str_add_printable(&name, path + skipped, length - skipped);
    }
    add_sentence(s, DEGRADED,
                 "%" PRIu64 " director%s some entries, which could not be read or whose paths are longer than %d "
                 "bytes%s: mend the source, then mount again",
                 count, count == 1 ? "y lacks" : "ies lack", CATALOG_PATH_MAX - 1, name.length ? name.data : "");
}

/* --- reads that failed --- */

static const char *remedy(int error)
{
    switch (error) {
    case ESTALE:
        return ". The file changed in the source: mount again to take the change in. (If only its ctime changes, see "
               "identity=mtime in dealfs-mount(1))";
    case EACCES:
    case EPERM:
        return ". The user of the mount may not read it in the source: change its mode or owner there";
    case EIO:
        return ". The source's storage returned it: the log and dmesg of this machine say more";
    case ENOMEM:
        return ". Give the job more memory, or the mount a smaller ram=";
    case ETIMEDOUT:
    case ENOTCONN:
        return ". The source does not answer: check its server and network";
    default:
        return "";
    }
}

static void add_first_failed(struct str *text, const struct control *control, uint64_t file)
{
    char path[CATALOG_PATH_MAX];
    if (file == 0 || !control_path_shown(control, file - 1, path))
        return;
    str_adds(text, ", first ");
    str_add_printable(text, path, strlen(path));
}

static void add_failed_reads(struct sentences *s, const struct control *control, const struct store_stats *stats)
{
    uint64_t now = clock_realtime();
    for (int i = 1; i < STORE_ERRNOS; i++) {
        CLEANUP_STR struct str first = STR_INIT;
        uint64_t age = seconds_since(stats->failed_at[i], now);
        if (stats->errors[i] == 0 || age >= NEWS_S)
            continue;
        add_first_failed(&first, control, stats->first_failed[i]);
        add_sentence(s, age < NOW_S ? FAULT : DEGRADED, "%" PRIu64 " read%s failed: %s%s, last %" PRIu64 " s ago%s",
                     stats->errors[i], stats->errors[i] == 1 ? "" : "s", strerror(i), first.length ? first.data : "",
                     age, remedy(i));
    }
}

/* Their items are dropped although they are in use, and must be made again. */
static void add_full_caches(struct sentences *s, const struct control *control)
{
    struct kept *files = plan_files_kept(control->files);
    unsigned places;
    if (kept_crowded(files))
        add_sentence(s, DEGRADED,
                     "more than %u files below plan/ are read at the same time, so some are made repeatedly. Read "
                     "fewer: for example, with fewer workers per rank",
                     files->places);
    if (pictures_crowded(control->pictures, &places))
        add_sentence(s, DEGRADED,
                     "more than %u images below decoded/ are read at the same time, so some are decoded repeatedly. "
                     "Read fewer, or mount with a higher limit of open files (ulimit -n)",
                     places);
}

/* --- all of it --- */

static void add_sentences(struct sentences *s, const struct control *control, const struct world_view *view,
                          const struct store_stats *stats)
{
    int metrics = atomic_load(&control->writer_error);
    bool shut = control->config.handover && atomic_load(&control->config.handover->level) >= LEVEL_NO_TIERS;
    struct stage_progress stage = {0};
    add_world_health(s, control, view);
    add_state_health(s, control);
    if (control->config.handover) {
        add_endings(s, &control->config.handover->endings);
        add_level(s, control->config.handover);
        add_program(s, control->config.handover);
        add_feeder(s, control->config.feed);
        add_sampler(s, control->config.mount, control->config.feed);
        add_waits(s, control, stats);
    }
    for (int i = 0; i < TIERS; i++)
        add_tier_health(s, tier_names[i], &stats->tier[i], shut);
    add_source_health(s, control, &stats->root);
    add_round(s, stats->round_seconds);
    add_lacking(s, control);
    add_failed_reads(s, control, stats);
    add_full_caches(s, control);
    if (control_filled(control) && control->config.store)
        store_stage_progress(control->config.store, &stage);
    if (stage.failed > 0)
        add_sentence(s, DEGRADED, "%" PRIu64 " files could not be staged, the first: %s", stage.failed,
                     control_error_text(stage.error));
    if (control_filled(control) && control->config.derived && atomic_load(&control->config.remade->failed) > 0)
        add_sentence(s, DEGRADED,
                     "%" PRIu64 " images could not be resized again, and reads of them failed: the log has the reasons",
                     atomic_load(&control->config.remade->failed));
    if (metrics)
        add_sentence(s, DEGRADED, "the metrics file cannot be written: %s", control_error_text(metrics));
}

void health_add_status(struct json *j, const struct control *control, const struct world_view *view,
                       const struct store_stats *stats)
{
    static const char *const names[] = {[GOOD] = "good", [DEGRADED] = "degraded", [FAULT] = "fault"};
    struct sentences sentences = {.json = j};
    json_begin_array(j, "health");
    add_sentences(&sentences, control, view, stats);
    json_end_array(j);
    json_string(j, "condition", names[sentences.worst]);
}
