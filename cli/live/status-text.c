/* A status in words, for people. */
#include "cli/live/status-text.h"

#include "cli/base/progress.h"
#include "cli/live/client.h"
#include "fs/base/cleanup.h"
#include "fs/base/json.h"
#include "fs/base/size.h"

#include <inttypes.h>
#include <string.h>

enum { BAR = 20 };

static void add_text(struct str *out, const struct str *status, const char *path)
{
    CLEANUP_STR struct str text = STR_INIT;

    if (json_find_string(status->data, status->length, path, &text) == 0 && text.length > 0)
        str_add_printable(out, text.data, text.length);
    else
        str_adds(out, "-");
}

static bool is_text(const struct str *status, const char *path, const char *expected)
{
    CLEANUP_STR struct str text = STR_INIT;

    return json_find_string(status->data, status->length, path, &text) == 0 && !text.failed &&
           strcmp(text.data, expected) == 0;
}

/* The sentences of `health`, each on a line of its own; none: all is well. */
static int add_health(struct str *out, const struct str *status)
{
    int count = 0;

    for (;; count++) {
        CLEANUP_STR struct str sentence = STR_INIT;
        char path[32];
        snprintf(path, sizeof path, "health.%d", count);
        if (json_find_string(status->data, status->length, path, &sentence) < 0)
            break;
        str_adds(out, count == 0 ? "  health    " : "            ");
        str_add_printable(out, sentence.data, sentence.length);
        str_adds(out, "\n");
    }
    if (count == 0)
        str_adds(out, "  health    good\n");
    return count;
}

static void add_images(struct str *out, const struct str *status)
{
    char images[COUNT_TEXT], before[SIZE_TEXT], after[SIZE_TEXT], remade[COUNT_TEXT];
    uint64_t pixels = client_number(status, "resize.pixels");

    if (pixels == 0)
        return;
    str_addf(out, "  images    %s resized to %" PRIu64 " pixels, %s -> %s; %s of them made again since the mount\n",
             count_format(client_number(status, "resize.images"), images, sizeof images), pixels,
             size_format(client_number(status, "resize.before"), before, sizeof before),
             size_format(client_number(status, "resize.after"), after, sizeof after),
             count_format(client_number(status, "resize.remade"), remade, sizeof remade));
}

static void add_tier(struct str *out, const struct str *status, const char *tier)
{
    char path[32], held_text[SIZE_TEXT], capacity_text[SIZE_TEXT];

    snprintf(path, sizeof path, "%s.held", tier);
    uint64_t held = client_number(status, path);
    snprintf(path, sizeof path, "%s.capacity", tier);
    uint64_t capacity = client_number(status, path);
    double share = capacity ? (double)held / (double)capacity : 0;

    str_addf(out, "  %-8s  ", tier);
    if (capacity == 0) {
        str_adds(out, "none\n");
        return;
    }
    progress_add_bar(out, share, BAR);
    str_addf(out, " %3d%%  %s of %s\n", (int)(share * 100), size_format(held, held_text, sizeof held_text),
             size_format(capacity, capacity_text, sizeof capacity_text));
}

static void add_reads(struct str *out, const struct str *status)
{
    static const char *const places[] = {"ram", "ssd", "peer", "source"};
    uint64_t reads[4], bytes[4], all = 0;

    for (int i = 0; i < 4; i++) {
        char path[32];
        snprintf(path, sizeof path, "reads.%s", places[i]);
        reads[i] = client_number(status, path);
        snprintf(path, sizeof path, "bytes.%s", places[i]);
        bytes[i] = client_number(status, path);
        all += bytes[i];
    }
    str_adds(out, "  answered  from            reads        bytes   share\n");
    for (int i = 0; i < 4; i++) {
        char count[COUNT_TEXT], size[SIZE_TEXT];
        str_addf(out, "            %-6s %14s %12s  %5.1f%%\n", places[i], count_format(reads[i], count, sizeof count),
                 size_format(bytes[i], size, sizeof size), all ? 100.0 * (double)bytes[i] / (double)all : 0.0);
    }
}

/* Only where something is read ahead, or was to be. */
static void add_feed(struct str *out, const struct str *status)
{
    char window[SIZE_TEXT], ahead[SIZE_TEXT];
    uint64_t plans = client_number(status, "feed.plans.0.number");
    const char *value;
    bool sampler = json_find(status->data, status->length, "feed.sampler", &value) > 0;

    if (plans == 0 && !sampler)
        return;
    str_addf(out, "  feed      %s ahead of loaders, window %s",
             size_format(client_number(status, "feed.ahead"), ahead, sizeof ahead),
             size_format(client_number(status, "feed.window"), window, sizeof window));
    if (json_find(status->data, status->length, "feed.off", &value) == 4)
        str_adds(out, "; off, for feeders died over and over");
    if (is_text(status, "feed.sampler.state", "following"))
        str_addf(out, "; epoch %" PRIu64 " of the sampler is read", client_number(status, "feed.sampler.epoch"));
    else if (is_text(status, "feed.sampler.state", "lost"))
        str_adds(out, "; what is read is no epoch of the sampler");
    else if (sampler)
        str_adds(out, "; which epoch of the sampler is read is not known yet");
    str_adds(out, "\n");
}

static void add_catalog(struct str *out, const struct str *status)
{
    char files[COUNT_TEXT], bytes[SIZE_TEXT], age[SIZE_TEXT], opened[COUNT_TEXT], read[SIZE_TEXT];

    str_adds(out, "  source    ");
    add_text(out, status, "source_path");
    str_addf(out, "   %s files opened, %s read\n",
             count_format(client_number(status, "source.samples"), opened, sizeof opened),
             size_format(client_number(status, "source.bytes"), read, sizeof read));
    uint64_t seconds = client_number(status, "catalog.age");
    str_addf(out, "  catalog   %s files, %s, %s%s\n",
             count_format(client_number(status, "catalog.files"), files, sizeof files),
             size_format(client_number(status, "catalog.bytes"), bytes, sizeof bytes),
             seconds ? duration_format(seconds * 1000000000, age, sizeof age) : "new", seconds ? " old" : "");
}

static void add_node(struct str *out, const struct str *node)
{
    static const char *const places[] = {"reads.ram", "reads.ssd", "reads.peer", "reads.source"};
    CLEANUP_STR struct str host = STR_INIT, state = STR_INIT;
    char held[SIZE_TEXT], capacity[SIZE_TEXT], count[COUNT_TEXT];

    add_text(&host, node, "host");
    add_text(&state, node, "state");
    str_addf(out, "            %4" PRIu64 "  %-16s %-8s %10s of %-10s", client_number(node, "node"),
             host.failed ? "?" : host.data, state.failed ? "?" : state.data,
             size_format(client_number(node, "held"), held, sizeof held),
             size_format(client_number(node, "capacity"), capacity, sizeof capacity));
    for (int i = 0; i < 4; i++)
        str_addf(out, " %11s", count_format(client_number(node, places[i]), count, sizeof count));
    str_adds(out, "\n");
}

/* One line per node, of a world that has or had others. */
static void add_world(struct str *out, const struct str *status)
{
    const char *rest = NULL, *node;
    long n = json_find(status->data, status->length, "world", &rest);
    size_t left = n > 0 ? (size_t)n : 0;

    if (client_number(status, "nodes") < 2)
        return;
    str_adds(out,
             "  world     node  host             state          held of capacity     reads: ram         ssd        peer"
             "      source\n");
    while (left > 0 && (n = json_next(&rest, &left, &node)) > 0) {
        const struct str slice = {.data = (char *)node, .length = (size_t)n};
        add_node(out, &slice);
    }
}

/* While samples change their node. */
static void add_move(struct str *out, const struct str *status)
{
    uint64_t come = client_number(status, "move.come_bytes"), all = client_number(status, "move.bytes");
    double share = all ? (double)come / (double)all : 0;
    char count[COUNT_TEXT], come_text[SIZE_TEXT], all_text[SIZE_TEXT];

    if (!is_text(status, "move.state", "moving"))
        return;
    str_adds(out, "  move      ");
    progress_add_bar(out, share, BAR);
    str_addf(out, " %3d%%  %s of %s of %s samples for ", (int)(share * 100),
             size_format(come, come_text, sizeof come_text), size_format(all, all_text, sizeof all_text),
             count_format(client_number(status, "move.samples"), count, sizeof count));
    add_text(out, status, "turn.cause");
    if (is_text(status, "turn.cause", "exchange"))
        str_addf(out, " of epoch %" PRIu64, client_number(status, "turn.epoch"));
    str_adds(out, "\n");
}

bool status_add_text(struct str *out, const struct live *live, const struct str *status)
{
    str_add_printable(out, live->mountpoint, strlen(live->mountpoint));
    str_adds(out, "   ");
    add_text(out, status, "state");
    str_addf(out, "   node %" PRIu64 " of %" PRIu64 "   ", client_number(status, "node"),
             client_number(status, "nodes"));
    str_addf(out, "server %" PRIu64 ", keeper %" PRIu64, client_number(status, "pids.server"),
             client_number(status, "pids.keeper"));
    if (client_number(status, "pids.courier"))
        str_addf(out, ", courier %" PRIu64, client_number(status, "pids.courier"));
    str_adds(out, "\n");
    add_catalog(out, status);
    add_images(out, status);
    add_tier(out, status, "ram");
    add_tier(out, status, "ssd");
    add_reads(out, status);
    add_feed(out, status);
    add_world(out, status);
    add_move(out, status);
    return add_health(out, status) == 0 && !is_text(status, "state", "degraded");
}
