/* `metrics`: the numbers of `status`, and times of READs, in Prometheus' text format 0.0.4.
 *
 * A table maps each metric to its field of `status`, so that the two cannot differ. */
#include "fs/control/texts.h"

#include "fs/control/control-private.h"

#include "fs/base/clock.h"
#include "fs/base/json.h"
#include "fs/base/utf8.h"
#include "fs/base/version.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Values of a label; each replaces `$` in the path of the field. */
static const struct metric_label {
    const char *name;
    struct {
        const char *value, *part;
    } of[7];
} from = {"from", {{"ram", "ram"}, {"ssd", "ssd"}, {"peer", "peer"}, {"source", "source"}}},
  tier = {"tier", {{"ram", "ram"}, {"ssd", "ssd"}}},
  world_state = {"state", {{"alone", ""}, {"joined", ""}, {"degraded", ""}}},
  moved = {"of",
           {{"all", ""},
            {"come", "come_"},
            {"refused", "refused_"},
            {"sent", "sent_"},
            {"dropped", "dropped_"},
            {"rewritten", "rewritten_"}}},
  condition = {"condition", {{"good", ""}, {"degraded", ""}, {"fault", ""}}}, none = {NULL, {{"", ""}}};

enum metric_kind {
    COUNTER, /* the field is a number */
    GAUGE,
    FLAG,  /* 1: the field is neither 0, false nor null */
    STATE, /* 1: the field equals the label's value */
    OPEN,  /* 1: the field is "open" */
};

/* A missing field counts as 0. If the first object of the path is missing, the metric is left out. */
static const struct metric {
    const char *name;
    enum metric_kind kind;
    const char *path; /* in `status`; `#` is the number of this node */
    const struct metric_label *label;
    const char *help;
} metrics[] = {
    {"nodes", GAUGE, "nodes", &none, "Nodes of this node's world, or of its last one."},
    {"nodes_gone", GAUGE, "lost.nodes", &none, "Nodes of this world that cannot be reached."},
    {"state", STATE, "state", &world_state, "1 for the current state of this node."},
    {"condition", STATE, "condition", &condition, "1 for the current condition; `status` has the reasons."},
    {"lost_bytes", GAUGE, "lost.bytes", &none, "Bytes that these nodes own, now read from the source."},
    {"peer_timeouts_total", COUNTER, "peers.timeouts", &none,
     "Values requested from other nodes that did not arrive in time."},
    {"peer_bad_replies_total", COUNTER, "peers.bad", &none, "Replies of other nodes with a wrong checksum."},
    {"turn", GAUGE, "turn.number", &none, "Turns: how often the world has changed its layout."},
    {"moving", FLAG, "world.#.moving", &none, "1: samples are still moving to this node."},
    {"move_bytes", GAUGE, "world.#.move.$bytes", &moved, "Bytes that the last turn moves to this node, by outcome."},
    {"catalog_files", GAUGE, "catalog.files", &none, "Files of the dataset."},
    {"catalog_bytes", GAUGE, "catalog.bytes", &none, "Bytes of the dataset."},
    {"uptime_seconds", GAUGE, "uptime", &none, "Age of this server."},
    {"server_starts_total", COUNTER, "generation", &none, "Servers of this mount so far, including this one."},
    {"memory_bytes", GAUGE, "memory", &none, "Anonymous memory of the server."},
    {"refused_requests_total", COUNTER, "refused", &none, "Control requests that were rejected or abandoned."},
    {"plans_total", COUNTER, "plans.made", &none, "Plans made."},
    {"plan_steps", GAUGE, "plans.newest.steps", &none, "Steps of the last plan."},
    {"plan_samples", GAUGE, "plans.newest.samples", &none, "Samples of the last plan, including echoes."},
    {"plan_fresh_samples", GAUGE, "plans.newest.fresh", &none, "Samples of the last plan, without echoes."},
    {"plan_fresh_bytes", GAUGE, "plans.newest.fresh_bytes", &none, "Bytes of the last plan, without echoes."},
    {"images_remade_total", COUNTER, "resize.remade", &none, "Images resized again since the mount."},
    {"images_failed_total", COUNTER, "resize.failed", &none, "Images that could not be resized again: reads failed."},
    {"reads_total", COUNTER, "reads.$", &from, "READs answered, by the place of their bytes."},
    {"read_bytes_total", COUNTER, "bytes.$", &from, "Bytes of answered READs, by place."},
    {"source_samples_total", COUNTER, "source.samples", &none, "Files opened at the source."},
    {"source_bytes_total", COUNTER, "source.bytes", &none, "Bytes read from the source."},
    {"held_bytes", GAUGE, "$.held", &tier, "Bytes in the tier, as counted against its capacity."},
    {"capacity_bytes", GAUGE, "$.capacity", &tier, "Capacity of the tier in bytes."},
    {"bad_values_total", COUNTER, "$.bad_values", &tier, "Stored values that failed their checksum and were dropped."},
    {"tier_open", OPEN, "$.state", &tier,
     "1: the tier is open and accepts data; 0: absent, closed by an error, or not open."},
    {"fed_reads_total", COUNTER, "fed.reads.$", &from, "The feeder's answered READs, by the place of their bytes."},
    {"fed_bytes_total", COUNTER, "fed.bytes.$", &from, "Bytes of the feeder's answered READs, by place."},
    {"fed_errors_total", COUNTER, "fed.errors", &none, "The feeder's READs that failed."},
    {"parked_reads", GAUGE, "parked", &none, "READs that are waiting for a load now."},
    {"timeouts_total", COUNTER, "errors.ETIMEDOUT", &none, "READs that failed because no answer came in time."},
    {"feed_running", FLAG, "feed.feeder", &none, "1: a feeder runs."},
    {"feed_off", FLAG, "feed.off", &none, "1: feeders died repeatedly, and none runs for a while."},
    {"feed_deaths_total", COUNTER, "feed.deaths", &none, "Feeders that died."},
    {"feed_window_bytes", GAUGE, "feed.window", &none,
     "The feeder's window: the maximum of bytes ahead of the loaders."},
    {"feed_ahead_bytes", GAUGE, "feed.ahead", &none, "Bytes that the feeder is ahead of the loaders."},
    {"feed_waiting_reads", GAUGE, "feed.waiting", &none, "The feeder's READs in progress."},
};

static void add_head(struct str *out, const char *name, const char *type, const char *help)
{
    str_addf(out, "# HELP dealfs_%s %s\n# TYPE dealfs_%s %s\n", name, help, name, type);
}

/* The format is UTF-8, and a single invalid byte would spoil all metrics: such a byte becomes the text \xHH. */
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
    add_head(out, "info", "gauge", "Labels of this mount; always 1.");
    str_adds(out, "dealfs_info{");
    add_label_value(out, "version", version_text);
    str_adds(out, ",");
    add_label_value(out, "id", control->config.mount->id);
    str_adds(out, ",");
    add_label_value(out, "mountpoint", control->config.mount->mountpoint);
    str_adds(out, "} 1\n");
}

static void add_value(struct str *out, const struct metric *m, const char *label, const struct str *status,
                      const char *path)
{
    const char *text = "0", *word = m->kind == STATE ? label : "open";
    long n = json_find(status->data, status->length, path, &text);
    if (m->kind == FLAG)
        str_adds(out, strchr("0fn", *text) ? " 0\n" : " 1\n");
    else if (m->kind == STATE || m->kind == OPEN)
        str_adds(out, n > 2 && strncmp(text + 1, word, (size_t)n - 2) == 0 ? " 1\n" : " 0\n");
    else
        str_addf(out, " %.*s\n", n > 0 ? (int)n : 1, text);
}

static void write_path(struct str *path, const char *pattern, const char *part, uint64_t node)
{
    for (str_clear(path); *pattern; pattern++)
        if (*pattern == '$')
            str_adds(path, part);
        else if (*pattern == '#')
            str_addf(path, "%" PRIu64, node);
        else
            str_add(path, pattern, 1);
}

static void add_metric(struct str *out, const struct metric *m, const struct str *status, uint64_t node)
{
    CLEANUP_STR struct str path = STR_INIT;
    const char *text;
    str_add(&path, m->path, strcspn(m->path, ".$"));
    if (path.failed || json_find(status->data, status->length, path.data, &text) < 0)
        return;
    add_head(out, m->name, m->kind == COUNTER ? "counter" : "gauge", m->help);
    for (int i = 0; m->label->of[i].value; i++) {
        str_addf(out, "dealfs_%s", m->name);
        if (m->label->name)
            str_addf(out, "{%s=\"%s\"}", m->label->name, m->label->of[i].value);
        write_path(&path, m->path, m->label->of[i].part, node);
        add_value(out, m, m->label->of[i].value, status, path.failed ? "-" : path.data);
    }
}

static void add_errors(struct str *out, const uint64_t errors[STORE_ERRNOS])
{
    add_head(out, "errors_total", "counter", "Failed READs by errno.");
    for (int i = 0; i < STORE_ERRNOS; i++)
        if (errors[i] > 0)
            str_addf(out, "dealfs_errors_total{errno=\"%s\"} %" PRIu64 "\n",
                     strerrorname_np(i) ? strerrorname_np(i) : "other", errors[i]);
}

/* Buckets are powers of two of a microsecond; the store's last bucket has no upper bound. */
static void add_times(struct str *out, const char *place, const uint64_t latency[STORE_BUCKETS], uint64_t sum)
{
    uint64_t count = 0;
    for (int i = 0; i < STORE_BUCKETS; i++) {
        count += latency[i];
        if (i < STORE_BUCKETS - 1)
            str_addf(out, "dealfs_read_seconds_bucket{from=\"%s\",le=\"%u.%06u\"} %" PRIu64 "\n", place,
                     (1u << i) / 1000000, (1u << i) % 1000000, count);
    }
    str_addf(out, "dealfs_read_seconds_bucket{from=\"%s\",le=\"+Inf\"} %" PRIu64 "\n", place, count);
    str_addf(out, "dealfs_read_seconds_sum{from=\"%s\"} %" PRIu64 ".%09" PRIu64 "\n", place, sum / SECOND,
             sum % SECOND);
    str_addf(out, "dealfs_read_seconds_count{from=\"%s\"} %" PRIu64 "\n", place, count);
}

int control_metrics(struct control *control, struct str *out)
{
    CLEANUP_STR struct str status = STR_INIT;
    struct store_stats stats;
    uint64_t node = 0;
    if (control_status(control, &status) < 0)
        return -ENOMEM;
    json_find_uint(status.data, status.length, "node", &node);
    control_stats(control, &stats);
    add_info(out, control);
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++)
        add_metric(out, &metrics[i], &status, node);
    add_errors(out, stats.errors);
    add_head(out, "read_seconds", "histogram", "Time from a READ to its answer, by the place of its bytes.");
    for (int i = 0; i < PLACES; i++)
        add_times(out, place_names[i], stats.latency[i], stats.latency_sum[i]);
    return out->failed ? -ENOMEM : 0;
}
