/* `status`: this node's state, cached data and answered reads, as JSON. */
#include "fs/control/texts.h"

#include "fs/control/control-private.h"
#include "fs/control/decoded.h"
#include "fs/control/feed-view.h"
#include "fs/control/health.h"
#include "fs/control/verbs.h"
#include "fs/control/world-view.h"

#include "fs/base/clock.h"
#include "fs/base/json.h"
#include "fs/base/version.h"
#include "fs/wire/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const tier_state_names[] = {
    [TIER_ABSENT] = "absent", [TIER_LOCKED] = "locked", [TIER_OPEN] = "open",
    [TIER_CLOSED] = "closed", [TIER_FAILED] = "failed",
};

static void add_pids(struct json *j, const struct control *control, const struct world_view *view)
{
    json_begin_object(j, "pids");
    json_uint(j, "keeper", control->config.keeper ? __atomic_load_n(control->config.keeper, __ATOMIC_RELAXED) : 0);
    json_int(j, "server", getpid());
    if (view->courier)
        json_uint(j, "courier", view->courier);
    else
        json_string(j, "courier", NULL);
    json_end_object(j);
}

static void add_catalog(struct json *j, const struct catalog *c)
{
    const struct catalog_notes *notes = catalog_notes(c);
    uint64_t now = clock_realtime(), scanned = catalog_scanned(c);
    char digest[DIGEST_TEXT];
    json_begin_object(j, "catalog");
    json_uints(j, {"files", catalog_files(c)}, {"directories", catalog_directories(c)}, {"links", catalog_links(c)},
               {"bytes", catalog_bytes(c)});
    json_string(j, "digest", digest_format(catalog_digest(c), digest));
    json_uints(j, {"age", now > scanned ? (now - scanned) / SECOND : 0}, {"memory", catalog_memory(c)});
    json_begin_object(j, "notes");
    json_uints(j, {"specials", notes->specials}, {"links_to_files", notes->links_to_files}, {"hidden", notes->hidden},
               {"unreadable", notes->unreadable});
    json_end_object(j);
    json_end_object(j);
}

/* Which images were scaled down, and why others were not. */
static void add_resize(struct json *j, const struct control *control)
{
    const struct derived_terms *terms = &control->config.derived->terms;
    const struct outcome_counts *resized = &control->resized;
    char text[DIGEST_TEXT];
    json_begin_object(j, "resize");
    json_uints(j, {"pixels", terms->side}, {"quality", terms->quality});
    json_string(j, "library", terms->library);
    json_string(j, "digest", digest_format(&resized->digest, text));
    json_uints(j, {"images", resized->files[DERIVED_MADE]}, {"before", resized->before}, {"after", resized->after});
    json_begin_object(j, "passed");
    for (uint32_t outcome = OUTCOME_PASSES; outcome < OUTCOMES; outcome++)
        if (resized->files[outcome] > 0)
            json_uint(j, outcome_name(outcome), resized->files[outcome]);
    json_end_object(j);
    json_uints(j, {"remade", atomic_load(&control->config.remade->remade)},
               {"failed", atomic_load(&control->config.remade->failed)});
    json_end_object(j);
}

static void add_tier(struct json *j, const char *name, const struct tier_status *tier)
{
    json_begin_object(j, name);
    json_uints(j, {"capacity", tier->capacity}, {"held", tier->held});
    json_string(j, "state", tier_state_names[tier->state]);
    json_string(j, "error", health_tier_error(tier));
    json_uints(j, {"parts", tier->parts}, {"segments", tier->segments}, {"dead", tier->dead},
               {"bad_values", tier->bad_values});
    if (tier->scrub.rate) {
        json_begin_object(j, "scrub");
        json_uints(j, {"rate", tier->scrub.rate}, {"bytes", tier->scrub.bytes}, {"rounds", tier->scrub.rounds});
        json_end_object(j);
    }
    json_end_object(j);
}

static void add_errors(struct json *j, const uint64_t errors[STORE_ERRNOS])
{
    json_begin_object(j, "errors");
    for (int i = 0; i < STORE_ERRNOS; i++)
        if (errors[i] > 0)
            json_uint(j, strerrorname_np(i) ? strerrorname_np(i) : "other", errors[i]);
    json_end_object(j);
}

static void add_samples(struct json *j, struct control *control)
{
    CLEANUP_STR struct str names = STR_INIT;
    json_begin_array(j, "samples");
    if (control_filled(control) && samples_table_names(control->samples, false, &names) == 0)
        for (size_t at = 0; at < names.length; at += strlen(names.data + at) + 1)
            json_string(j, NULL, names.data + at);
    json_end_array(j);
}

enum { ENDINGS_SHOWN = 8 };

static const char *const program_names[] = {"installed", "asked", "trial", "previous", "refused"};
enum { PROGRAMS = sizeof program_names / sizeof *program_names };

static void add_restarts(struct json *j, const struct handover *handover)
{
    const struct endings *endings = &handover->endings;
    uint64_t now = clock_realtime();
    struct ending ending;
    json_begin_object(j, "restarts");
    json_uint(j, "count", atomic_load(&endings->count));
    json_begin_array(j, "last");
    for (unsigned i = 0; i < ENDINGS_SHOWN && endings_get(endings, i, &ending) == 0; i++) {
        char cause[128];
        ending_describe(&ending, cause, sizeof cause);
        json_begin_object(j, NULL);
        json_uint(j, "age", now > ending.at ? (now - ending.at) / SECOND : 0);
        json_string(j, "cause", cause);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}

static void add_log(struct json *j)
{
    char link[32], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", FD_LOG);
    ssize_t n = handover_has(FD_LOG) ? readlink(link, path, sizeof path - 1) : -1;
    path[n > 0 ? n : 0] = '\0';
    json_string(j, "log", path[0] == '/' ? path : NULL);
}

static void add_node(struct json *j, struct control *control, const struct world_view *view)
{
    const struct mount_config *mount = control->config.mount;
    char digest[DIGEST_TEXT];
    json_string(j, "version", version_text);
    json_uint(j, "node", view->me);
    json_string(j, "id", mount->id);
    json_string(j, "host", control->host);
    json_uints(j, {"nodes", view->nodes}, {"groups", view->groups});
    json_string(j, "state", world_state_names[view->state]);
    json_string(j, "layout", view->known ? digest_format(&view->layout, digest) : NULL);
    add_pids(j, control, view);
    json_uint(j, "generation", control->config.generation);
    if (control->config.handover) {
        json_string(j, "program", program_names[atomic_load(&control->config.handover->program) % PROGRAMS]);
        add_restarts(j, control->config.handover);
    }
    json_uints(j, {"uptime", (clock_now() - control->began) / SECOND}, {"memory", control_memory()},
               {"refused", refusals_count(&control->refusals)});
    json_string(j, "source_path", mount->source);
    json_string(j, "mountpoint", mount->mountpoint);
    add_log(j);
}

static void add_fed(struct json *j, const struct store_stats *stats)
{
    json_begin_object(j, "fed");
    world_view_add_places(j, "reads", stats->fed.reads);
    world_view_add_places(j, "bytes", stats->fed.bytes);
    world_view_add_places(j, "waits", stats->fed.waits);
    json_uint(j, "errors", stats->fed.errors);
    json_end_object(j);
}

static void add_slowest(struct json *j, const struct control *control, const struct slowest_read *slowest)
{
    char path[CATALOG_PATH_MAX];
    if (slowest->answered == 0)
        return;
    json_begin_object(j, "slowest");
    json_string(j, "path", control_path_shown(control, slowest->file, path) ? path : NULL);
    json_string(j, "from", place_names[slowest->place]);
    json_uints(j, {"us", slowest->us}, {"age", (clock_now() - slowest->answered) / SECOND});
    json_end_object(j);
}

static void add_store(struct json *j, const struct control *control, const struct store_stats *stats)
{
    for (int i = 0; i < TIERS; i++)
        add_tier(j, tier_names[i], &stats->tier[i]);
    world_view_add_places(j, "reads", stats->reads);
    world_view_add_places(j, "bytes", stats->bytes);
    add_slowest(j, control, &stats->slowest);
    json_uint(j, "parked", stats->parked);
    add_fed(j, stats);
    json_begin_object(j, "source");
    json_uints(j, {"samples", stats->source_samples}, {"bytes", stats->source_bytes},
               {"rate", control->config.mount->source_rate});
    json_end_object(j);
    add_errors(j, stats->errors);
}

int control_status(struct control *control, struct str *out)
{
    struct json json = {.out = out, .indent = true};
    struct store_stats stats;
    CLEANUP_WORLD_VIEW struct world_view view = world_view_get(control);
    control_stats(control, &stats);
    json_begin_object(&json, NULL);
    add_node(&json, control, &view);
    if (control_filled(control)) {
        add_catalog(&json, control->config.catalog);
        if (control->config.derived)
            add_resize(&json, control);
    }
    add_store(&json, control, &stats);
    world_view_add_status(&json, control, &view, &stats);
    verb_stage_add_status(&json, control);
    verb_plan_add_status(&json, control);
    decoded_add_status(&json, control, &stats);
    feed_view_add_status(&json, control);
    add_samples(&json, control);
    health_add_status(&json, control, &view, &stats);
    json_end_object(&json);
    str_adds(out, "\n");
    return out->failed ? -ENOMEM : 0;
}
