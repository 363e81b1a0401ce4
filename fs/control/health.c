/* What is not as it should be, a sentence each. */
#include "fs/control/health.h"

#include "fs/control/control-private.h"

#include "fs/base/clock.h"
#include "fs/base/json.h"
#include "fs/base/size.h"
#include "fs/catalog/derived.h"
#include "fs/wire/feed.h"
#include "fs/wire/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

enum { WAIT_S = 5 };               /* longer is worth a sentence */
#define SOURCE_NEWS (600 * SECOND) /* for so long it is said that the source was lost */

__attribute__((format(printf, 2, 3))) static void add_sentence(struct json *j, const char *format, ...)
{
    CLEANUP_STR struct str text = STR_INIT;
    va_list args;
    va_start(args, format);
    str_addv(&text, format, args);
    va_end(args);
    json_string(j, NULL, text.failed ? "out of memory" : text.data);
}

/* --- the world --- */

static void add_degraded(struct json *j, const struct control *control, const struct world_view *view)
{
    CLEANUP_STR struct str rejoin = STR_INIT;
    uint64_t share = world_view_lost_share(control, view);
    char size[SIZE_TEXT];
    world_view_add_rejoin(control, view, &rejoin);
    add_sentence(j,
                 "%u of %u nodes cannot be asked: what they own, %s (%" PRIu64 ".%" PRIu64
                 "%% of the dataset), is read "
                 "from the source; to form a world again: %s",
                 world_view_gone(view), view->nodes, size_format(view->lost_bytes, size, sizeof size), share / 10,
                 share % 10, rejoin.failed ? "" : rejoin.data);
}

static void add_turn_health(struct json *j, const struct control *control, const struct world_view *view)
{
    const struct turn_outcome *failed = &view->failed;
    if (failed->status && failed->node < view->nodes)
        add_sentence(j, "the last change of owners (%s) failed because of node %u: %s",
                     turn_names[failed->record.turn.cause], failed->node, strerror(-failed->status));
    else if (failed->status)
        add_sentence(j, "the last change of owners (%s) took too long; `turn` shows whether it came all the same",
                     turn_names[failed->record.turn.cause]);
    if (view->unsaved)
        add_sentence(j,
                     "the world cannot be saved in %s: %s; it goes on without that, and the next server gets it from "
                     "other processes",
                     control->config.mount->state, strerror(-view->unsaved));
}

static void add_world_health(struct json *j, const struct control *control, const struct world_view *view)
{
    if (!control_filled(control))
        add_sentence(j, CONTROL_NOT_FILLED);
    if (view->lost)
        add_sentence(j, CONTROL_LAYOUT_LOST);
    if (view->state == WORLD_DEGRADED)
        add_degraded(j, control, view);
    add_turn_health(j, control, view);
    for (uint32_t i = 0; i < view->nodes && view->state == WORLD_JOINED && view->peer; i++) {
        CLEANUP_STR struct str host = STR_INIT;
        if (view->peer[i].state != PEER_SUSPECT)
            continue;
        str_add_printable(&host, view->peer[i].node.host, strlen(view->peer[i].node.host));
        add_sentence(j, "node %u (%s) did not answer in time: for a while what it owns is read from the source", i,
                     host.failed ? "" : host.data);
    }
}

/* --- servers, and what waits --- */

static uint64_t seconds_since(uint64_t then, uint64_t now)
{
    return now > then ? (now - then) / SECOND : 0;
}

static void add_endings(struct json *j, const struct endings *endings)
{
    unsigned lately = endings_lately(endings, ENDINGS_LATELY_S * SECOND);
    struct ending last;
    char cause[128];
    if (lately == 0 || endings_get(endings, 0, &last) < 0)
        return;
    ending_describe(&last, cause, sizeof cause);
    add_sentence(
        j, "%u%s server%s of this mount ended in the last %d minutes; the last one, %" PRIu64 " s ago, %s%s", lately,
        lately == ENDINGS_KEPT ? " or more" : "", lately == 1 ? "" : "s", ENDINGS_LATELY_S / 60,
        seconds_since(last.at, clock_realtime()), cause,
        last.how == ENDING_SIGNAL && last.number == SIGKILL
            ? ": if nobody did that, memory ran out (see dmesg): give the job more, or the mount a smaller ram="
            : "");
}

static void add_level(struct json *j, const struct handover *h)
{
    static const char *const without[] = {
        [LEVEL_NO_TIERS] = "its tiers: reads are answered by other nodes and the source",
        [LEVEL_NO_PEERS] = "its tiers and without other nodes: all reads are answered by the source",
    };
    uint32_t level = atomic_load(&h->level), lingering = handover_lingering(h);
    uint64_t stranded = atomic_load(&h->stranded);
    if (level == LEVEL_NO_TIERS || level == LEVEL_NO_PEERS)
        add_sentence(
            j,
            "servers of this mount died again and again, or hung, so this one works without %s, until a minute "
            "without a death, or ten after one that hung%s",
            without[level], level == LEVEL_NO_PEERS ? "; then run `dealfs join` if the world is gone" : "");
    if (lingering > 0)
        add_sentence(j, "%u killed server%s cannot end: a disk or the source hangs", lingering,
                     lingering == 1 ? "" : "s");
    if (stranded > 0)
        add_sentence(j,
                     "%" PRIu64 " request%s failed with EIO while no server could live, the last one %" PRIu64 " s ago",
                     stranded, stranded == 1 ? "" : "s", seconds_since(atomic_load(&h->stranded_at), clock_realtime()));
}

static void add_feeder(struct json *j, const struct feed *feed)
{
    uint64_t again = feed ? atomic_load(&feed->again) : 0;
    if (!feed || !atomic_load(&feed->off))
        return;
    if (again)
        add_sentence(
            j,
            "the feeder died again and again, %u times so far: nothing is read ahead of loaders; it is started "
            "again in %" PRIu64 " s",
            atomic_load(&feed->deaths), seconds_since(clock_now(), again));
    else
        add_sentence(j, "dealfs-feeder is not installed: nothing is read ahead of loaders");
}

/* The store knows what its reads wait for; what else waits, does so for a first join, or in its reader's hands. */
static void add_waits(struct json *j, const struct control *control, const struct store_stats *stats)
{
    static const char *const whom[PLACES] = {"memory", "the SSD", "other nodes", "the source"};
    uint64_t oldest = atomic_load(&control->config.handover->pulse.oldest), now = clock_now();
    uint64_t longest = oldest ? seconds_since(oldest, now) : 0;
    uint64_t waits[PLACES] = {0};
    enum place most = PLACE_SOURCE;
    for (int place = 0; place < PLACES; place++) {
        waits[place] = stats->waits[place] + stats->fed.waits[place]; /* a loader may wait for what is fed */
        if (waits[place] > waits[most])
            most = place;
    }
    if (longest < WAIT_S)
        return;
    if (!control_filled(control))
        add_sentence(j, "requests wait for the first join, the longest for %" PRIu64 " s", longest);
    else if (waits[most] > 0)
        add_sentence(j, "%" PRIu64 " read%s for %s, the longest for %" PRIu64 " s", waits[most],
                     waits[most] == 1 ? " waits" : "s wait", whom[most], longest);
    else
        add_sentence(j, "a request has been in hand for %" PRIu64 " s", longest);
}

/* --- tiers, directories, the source --- */

const char *health_tier_error(const struct tier_status *tier)
{
    return tier->reason ? tier->reason : tier->error ? control_error_text(tier->error) : NULL;
}

static void add_tier_health(struct json *j, const char *name, const struct tier_status *tier, bool shut)
{
    if (tier->state == TIER_LOCKED && !shut)
        add_sentence(j, "the %s tier is not open yet: the server before this one still has it", name);
    if (tier->state == TIER_CLOSED)
        add_sentence(j, "the %s tier takes nothing more: %s; what it holds is served", name, health_tier_error(tier));
    if (tier->state == TIER_FAILED)
        add_sentence(j, "the %s tier is not used until the next mount: %s; its files are left as they are", name,
                     health_tier_error(tier));
    if (tier->bad_values > 0)
        add_sentence(j, "the %s tier returned %" PRIu64 " damaged values; they were dropped and fetched afresh", name,
                     tier->bad_values);
}

/* Cleaners of temporary directories, people, disks: the mount needs none of it, who comes after it does. */
static void add_state_health(struct json *j, const struct control *control)
{
    static const char *const names[] = {"lock", "config", "catalog"};
    const char *state = control->config.mount->state;
    struct stat st;
    if (!control->config.state || !control_filled(control))
        return;
    if (fstat(control->config.state, &st) == 0 && st.st_nlink == 0) {
        add_sentence(
            j,
            "the state directory %s was removed: the mount goes on, but no courier finds it, uploaded sample lists "
            "end with this server, and the next mount scans anew",
            state);
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (faccessat(control->config.state, names[i], F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT) {
            add_sentence(j, "%s was removed from the state directory %s: the mount goes on without it", names[i],
                         state);
            return;
        }
}

static void add_source_health(struct json *j, const struct control *control, const struct root_state *root)
{
    const char *path = control->config.mount->source;
    if (root->lost && root->refused == EXDEV)
        add_sentence(j, "the source is lost: %s; what is at %s by now is another directory: it is not read",
                     control_error_text(root->lost), path);
    else if (root->lost)
        add_sentence(j, "the source is lost: %s; it is opened again when it is back at %s",
                     control_error_text(root->lost), path);
    else if (root->opened > 0 && clock_now() - root->last < SOURCE_NEWS)
        add_sentence(j, "the source was lost and is back: opened again %u times", root->opened);
}

void health_add_status(struct json *j, const struct control *control, const struct world_view *view,
                       const struct store_stats *stats)
{
    int metrics = atomic_load(&control->writer_error);
    bool shut = control->config.handover && atomic_load(&control->config.handover->level) >= LEVEL_NO_TIERS;
    struct stage_progress stage = {0};
    json_begin_array(j, "health");
    add_world_health(j, control, view);
    add_state_health(j, control);
    if (control->config.handover) {
        add_endings(j, &control->config.handover->endings);
        add_level(j, control->config.handover);
        add_feeder(j, control->config.feed);
        add_waits(j, control, stats);
    }
    for (int i = 0; i < TIERS; i++)
        add_tier_health(j, tier_names[i], &stats->tier[i], shut);
    add_source_health(j, control, &stats->root);
    for (int i = 1; i < STORE_ERRNOS; i++)
        if (stats->errors[i] > 0)
            add_sentence(j, "%" PRIu64 " reads failed: %s", stats->errors[i], strerror(i));
    if (control_filled(control) && control->config.store)
        store_stage_progress(control->config.store, &stage);
    if (stage.failed > 0)
        add_sentence(j, "%" PRIu64 " files could not be staged, the first: %s", stage.failed,
                     control_error_text(stage.error));
    if (control_filled(control) && control->config.derived && atomic_load(&control->config.remade->failed) > 0)
        add_sentence(j, "%" PRIu64 " images could not be resized again, and reads of them failed: the log says why",
                     atomic_load(&control->config.remade->failed));
    if (metrics)
        add_sentence(j, "the metrics file cannot be written: %s", control_error_text(metrics));
    json_end_array(j);
}
