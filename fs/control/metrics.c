/* `metrics`: the numbers of `status`, and the times of READs, in Prometheus' text format 0.0.4. */
#include "fs/control/texts.h"

#include "fs/control/control-private.h"
#include "fs/control/feed-view.h"
#include "fs/control/move-view.h"
#include "fs/control/world-view.h"

#include "fs/base/clock.h"
#include "fs/base/utf8.h"
#include "fs/catalog/derived.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static void add_head(struct str *out, const char *name, const char *type, const char *help)
{
    str_addf(out, "# HELP dealfs_%s %s\n# TYPE dealfs_%s %s\n", name, help, name, type);
}

static void add_number(struct str *out, const char *name, const char *type, const char *help, uint64_t value)
{
    add_head(out, name, type, help);
    str_addf(out, "dealfs_%s %" PRIu64 "\n", name, value);
}

/* The format is UTF-8, and one byte that is not would cost all of the metrics: such a byte becomes the text \xHH. */
static void add_label_value(struct str *out, const char *label, const char *value)
{
    size_t length;

    str_addf(out, "%s=\"", label);
    for (; *value; value += length ? length : 1) {
        length = utf8_length(value, strlen(value));
        if (*value == '\n')
            str_adds(out, "\\n");
        else if (*value == '"' || *value == '\\')
            str_addf(out, "\\%c", *value);
        else if (length)
            str_add(out, value, length);
        else
            str_addf(out, "\\\\x%02x", (unsigned char)*value);
    }
    str_adds(out, "\"");
}

static void add_info(struct str *out, const struct control *control)
{
    add_head(out, "info", "gauge", "What this mount is; always 1.");
    str_adds(out, "dealfs_info{");
    add_label_value(out, "version", control_version());
    str_adds(out, ",");
    add_label_value(out, "id", control->config.mount->id);
    str_adds(out, ",");
    add_label_value(out, "mountpoint", control->config.mount->mountpoint);
    str_adds(out, "} 1\n");
}

static void add_places(struct str *out, const char *name, const char *help, const uint64_t number[PLACES])
{
    add_head(out, name, "counter", help);
    for (int i = 0; i < PLACES; i++)
        str_addf(out, "dealfs_%s{from=\"%s\"} %" PRIu64 "\n", name, place_names[i], number[i]);
}

static void add_tiers(struct str *out, const char *name, const char *type, const char *help,
                      const struct store_stats *stats, size_t member)
{
    add_head(out, name, type, help);
    for (int i = 0; i < TIERS; i++)
        str_addf(out, "dealfs_%s{tier=\"%s\"} %" PRIu64 "\n", name, tier_names[i],
                 *(const uint64_t *)(const void *)((const char *)&stats->tier[i] + member));
}

static void add_admitting(struct str *out, const struct store_stats *stats)
{
    add_head(out, "tier_open", "gauge", "1: the tier holds and admits; 0: absent, closed by an error, or not open.");
    for (int i = 0; i < TIERS; i++)
        str_addf(out, "dealfs_tier_open{tier=\"%s\"} %d\n", tier_names[i], stats->tier[i].state == TIER_OPEN);
}

static void add_errors(struct str *out, const uint64_t errors[STORE_ERRNOS])
{
    add_head(out, "errors_total", "counter", "Failed READs by errno.");
    for (int i = 0; i < STORE_ERRNOS; i++)
        if (errors[i] > 0)
            str_addf(out, "dealfs_errors_total{errno=\"%s\"} %" PRIu64 "\n",
                     strerrorname_np(i) ? strerrorname_np(i) : "other", errors[i]);
}

/* Buckets are powers of two of a microsecond; the last one of the store has no upper bound. */
static void add_times(struct str *out, const char *from, const uint64_t latency[STORE_BUCKETS], uint64_t sum)
{
    uint64_t count = 0;

    for (int i = 0; i < STORE_BUCKETS; i++) {
        count += latency[i];
        if (i < STORE_BUCKETS - 1)
            str_addf(out, "dealfs_read_seconds_bucket{from=\"%s\",le=\"%u.%06u\"} %" PRIu64 "\n", from,
                     (1u << i) / 1000000, (1u << i) % 1000000, count);
    }
    str_addf(out, "dealfs_read_seconds_bucket{from=\"%s\",le=\"+Inf\"} %" PRIu64 "\n", from, count);
    str_addf(out, "dealfs_read_seconds_sum{from=\"%s\"} %" PRIu64 ".%09" PRIu64 "\n", from, sum / SECOND, sum % SECOND);
    str_addf(out, "dealfs_read_seconds_count{from=\"%s\"} %" PRIu64 "\n", from, count);
}

static void add_resize(struct str *out, struct derived_counts *counts)
{
    add_number(out, "images_remade_total", "counter", "Images resized again since the mount.",
               atomic_load(&counts->remade));
    add_number(out, "images_failed_total", "counter", "Images that could not be resized again: reads failed.",
               atomic_load(&counts->failed));
}

static void add_store(struct str *out, const struct store_stats *stats)
{
    add_places(out, "reads_total", "READs answered, by where their bytes were.", stats->reads);
    add_places(out, "read_bytes_total", "Bytes of READs answered, by where they were.", stats->bytes);
    add_number(out, "source_samples_total", "counter", "Files opened at the source.", stats->source_samples);
    add_number(out, "source_bytes_total", "counter", "Bytes read from the source.", stats->source_bytes);
    add_tiers(out, "held_bytes", "gauge", "Stored bytes, as budgeted.", stats, offsetof(struct tier_status, held));
    add_tiers(out, "capacity_bytes", "gauge", "Room for stored bytes.", stats, offsetof(struct tier_status, capacity));
    add_tiers(out, "bad_values_total", "counter", "Stored values that failed their checksum and were dropped.", stats,
              offsetof(struct tier_status, bad_values));
    add_admitting(out, stats);
    add_places(out, "fed_reads_total", "The feeder's READs answered, by where their bytes were.", stats->fed.reads);
    add_places(out, "fed_bytes_total", "Bytes of them.", stats->fed.bytes);
    add_number(out, "fed_errors_total", "counter", "The feeder's READs that failed.", stats->fed.errors);
    add_number(out, "parked_reads", "gauge", "READs that wait for a load now.", stats->parked);
    add_errors(out, stats->errors);
    add_number(out, "timeouts_total", "counter", "READs that failed because no answer came in time.",
               stats->errors[ETIMEDOUT]);
    add_head(out, "read_seconds", "histogram", "Time from a READ to its answer, by where the bytes were.");
    for (int i = 0; i < PLACES; i++)
        add_times(out, place_names[i], stats->latency[i], stats->latency_sum[i]);
}

static void add_catalog(struct str *out, const struct catalog *c)
{
    add_number(out, "catalog_files", "gauge", "Files of the dataset.", catalog_files(c));
    add_number(out, "catalog_bytes", "gauge", "Bytes of the dataset.", catalog_bytes(c));
}

static void add_states(struct str *out, const struct world_view *view)
{
    add_head(out, "state", "gauge", "1 for the state that this node is in.");
    for (int i = WORLD_ALONE; i <= WORLD_DEGRADED; i++)
        str_addf(out, "dealfs_state{state=\"%s\"} %d\n", world_state_names[i], (int)view->state == i);
}

static void add_world(struct str *out, struct control *control)
{
    struct world_view view;

    world_view_get(control, &view);
    add_number(out, "nodes", "gauge", "Nodes of this node's world, or of its last one.", view.nodes);
    add_number(out, "nodes_gone", "gauge", "Nodes of it that cannot be asked.", world_view_gone(&view));
    add_states(out, &view);
    add_number(out, "lost_bytes", "gauge", "Bytes that they own: read from the source.", view.lost_bytes);
    add_number(out, "peer_timeouts_total", "counter", "Values asked of other nodes that did not come in time.",
               view.timeouts);
    add_number(out, "peer_bad_replies_total", "counter", "Replies of other nodes that did not verify.", view.bad);
    move_view_add_metrics(out, &view);
    world_view_release(&view);
}

/* What an epoch takes: with echo more steps, and fewer fresh bytes for each. */
static void add_plans(struct str *out, struct plans *plans)
{
    pthread_mutex_lock(&plans->lock);
    const struct plan_summary last = plans->last;
    uint64_t made = plans->made;
    pthread_mutex_unlock(&plans->lock);
    add_number(out, "plans_total", "counter", "Plans made.", made);
    add_number(out, "plan_steps", "gauge", "Steps of the plan that was made last.", last.steps);
    add_number(out, "plan_samples", "gauge", "Samples of it, echoes among them.", last.samples);
    add_number(out, "plan_fresh_samples", "gauge", "Samples of it at their first use.", last.fresh);
    add_number(out, "plan_fresh_bytes", "gauge", "Bytes of these.", last.fresh_bytes);
}

int control_metrics(struct control *control, struct str *out)
{
    struct store_stats stats;

    control_stats(control, &stats);
    add_info(out, control);
    add_world(out, control);
    if (control_filled(control))
        add_catalog(out, control->config.catalog);
    add_number(out, "uptime_seconds", "gauge", "Age of this server.", (clock_now() - control->began) / SECOND);
    add_number(out, "server_starts_total", "counter", "Servers of this mount, this one included.",
               control->config.generation);
    add_number(out, "memory_bytes", "gauge", "Anonymous memory of the server.", control_memory());
    add_number(out, "refused_requests_total", "counter", "Control requests that came to nothing.",
               refusals_count(&control->refusals));
    add_plans(out, &control->plans);
    if (control_filled(control) && control->config.derived)
        add_resize(out, control->config.remade);
    add_store(out, &stats);
    feed_view_add_metrics(out, control);
    return out->failed ? -ENOMEM : 0;
}
