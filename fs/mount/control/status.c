/* `status`: what this node is, keeps and has answered, as JSON. */
#include "fs/mount/control/world.h"

#include "fs/base/file.h"
#include "fs/base/json.h"
#include "fs/mount/control/pretty.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static const char *const tier_state_names[] = {
    [TIER_ABSENT] = "absent", [TIER_LOCKED] = "locked", [TIER_OPEN] = "open",
    [TIER_CLOSED] = "closed", [TIER_FAILED] = "failed",
};

static void add_pids(struct json *j, const struct control *control, const struct world_view *view)
{
    json_begin_object(j, "pids");
    json_uint(j, "keeper", control_keeper(control));
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
    json_uint(j, "files", catalog_files(c));
    json_uint(j, "directories", catalog_directories(c));
    json_uint(j, "links", catalog_links(c));
    json_uint(j, "bytes", catalog_bytes(c));
    json_string(j, "digest", digest_format(catalog_digest(c), digest));
    json_uint(j, "age", now > scanned ? (now - scanned) / 1000000000 : 0);
    json_uint(j, "memory", catalog_memory(c));
    json_begin_object(j, "notes");
    json_uint(j, "specials", notes->specials);
    json_uint(j, "links_to_files", notes->links_to_files);
    json_uint(j, "hidden", notes->hidden);
    json_uint(j, "unreadable", notes->unreadable);
    json_end_object(j);
    json_end_object(j);
}

static const char *error_text(int error)
{
    return strerror(error < 0 ? -error : error);
}

static void add_tier(struct json *j, const char *name, const struct tier_status *tier)
{
    json_begin_object(j, name);
    json_uint(j, "capacity", tier->capacity);
    json_uint(j, "held", tier->held);
    json_string(j, "state", tier_state_names[tier->state]);
    json_string(j, "error", tier->error ? error_text(tier->error) : NULL);
    json_uint(j, "parts", tier->parts);
    json_uint(j, "segments", tier->segments);
    json_uint(j, "dead", tier->dead);
    json_uint(j, "bad_values", tier->bad_values);
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
    if (control_filled(control) && samples_table_names(control->samples, &names) == 0)
        for (size_t at = 0; at < names.length; at += strlen(names.data + at) + 1)
            json_string(j, NULL, names.data + at);
    json_end_array(j);
}

static void add_sentence(struct json *j, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_sentence(struct json *j, const char *format, ...)
{
    CLEANUP_STR struct str text = STR_INIT;
    va_list args;

    va_start(args, format);
    str_addv(&text, format, args);
    va_end(args);
    json_string(j, NULL, text.failed ? "out of memory" : text.data);
}

static void add_tier_health(struct json *j, const char *name, const struct tier_status *tier)
{
    if (tier->state == TIER_LOCKED)
        add_sentence(j, "the %s tier is not open yet: the server before this one still has it", name);
    if (tier->state == TIER_CLOSED)
        add_sentence(j, "the %s tier takes nothing more: %s; what it holds is served", name, error_text(tier->error));
    if (tier->state == TIER_FAILED)
        add_sentence(j, "the %s tier could not be opened: %s; it holds nothing", name, error_text(tier->error));
    if (tier->bad_values > 0)
        add_sentence(j, "the %s tier returned %" PRIu64 " damaged values; they were dropped and fetched afresh", name,
                     tier->bad_values);
}

static void add_health(struct json *j, struct control *control, const struct world_view *view,
                       const struct store_stats *stats)
{
    int metrics = atomic_load(&control->writer_error);
    struct stage_progress stage = {0};

    json_begin_array(j, "health");
    control_add_world_health(j, control, view);
    for (int i = 0; i < TIERS; i++)
        add_tier_health(j, tier_names[i], &stats->tier[i]);
    for (int i = 1; i < STORE_ERRNOS; i++)
        if (stats->errors[i] > 0)
            add_sentence(j, "%" PRIu64 " reads failed: %s", stats->errors[i], strerror(i));
    if (control_filled(control) && control->config.store)
        store_stage_progress(control->config.store, &stage);
    if (stage.failed > 0)
        add_sentence(j, "%" PRIu64 " files could not be staged, the first: %s", stage.failed, error_text(stage.error));
    if (metrics)
        add_sentence(j, "the metrics file cannot be written: %s", error_text(metrics));
    json_end_array(j);
}

static void add_node(struct json *j, struct control *control, const struct world_view *view)
{
    const struct mount_config *mount = control->config.mount;
    char digest[DIGEST_TEXT];

    json_string(j, "version", control_version());
    json_uint(j, "node", view->me);
    json_string(j, "id", mount->id);
    json_string(j, "host", control->host);
    json_uint(j, "nodes", view->nodes);
    json_uint(j, "groups", view->groups);
    json_string(j, "state", world_state_names[view->state]);
    json_string(j, "directory", view->known ? digest_format(&view->directory, digest) : NULL);
    add_pids(j, control, view);
    json_uint(j, "generation", control->config.generation);
    json_uint(j, "uptime", (clock_now() - control->began) / 1000000000);
    json_uint(j, "memory", control_memory());
    json_string(j, "source_path", mount->source);
    json_string(j, "mountpoint", mount->mountpoint);
}

static void add_store(struct json *j, const struct store_stats *stats)
{
    for (int i = 0; i < TIERS; i++)
        add_tier(j, tier_names[i], &stats->tier[i]);
    control_add_places(j, "reads", stats->reads);
    control_add_places(j, "bytes", stats->bytes);
    json_uint(j, "parked", stats->parked);
    json_begin_object(j, "source");
    json_uint(j, "samples", stats->source_samples);
    json_uint(j, "bytes", stats->source_bytes);
    json_end_object(j);
    add_errors(j, stats->errors);
}

int control_status(struct control *control, struct str *out)
{
    CLEANUP_STR struct str text = STR_INIT;
    struct json json = {.out = &text};
    struct store_stats stats;
    struct world_view view;

    control_stats(control, &stats);
    control_view(control, &view);
    json_begin_object(&json, NULL);
    add_node(&json, control, &view);
    if (control_filled(control))
        add_catalog(&json, control->config.catalog);
    add_store(&json, &stats);
    control_add_world(&json, control, &view, &stats);
    control_add_stage(control, &json, "stage");
    control_add_plans(&json, control);
    add_samples(&json, control);
    add_health(&json, control, &view, &stats);
    json_end_object(&json);
    control_view_release(&view);
    if (text.failed)
        return -ENOMEM;
    pretty_json(text.data, text.length, out);
    return out->failed ? -ENOMEM : 0;
}
