/* A status as text, for people. */
#include "cli/live/status-text.h"

#include "cli/base/command.h"
#include "cli/base/progress.h"
#include "cli/live/figures.h"
#include "fs/base/json.h"
#include "fs/base/size.h"

#include <string.h>

enum { BAR = 20 };

/* The sentences of `health`, one per line; none: all is well. */
static int status_of(const struct str *status)
{
    return figures_is(status, "condition", "fault")      ? COMMAND_FAULT
           : figures_is(status, "condition", "degraded") ? COMMAND_DEGRADED
                                                         : COMMAND_DONE;
}

static void add_health(struct str *out, const struct str *status)
{
    struct figures_list sentences = figures_list_of(status, "health");
    struct str sentence;
    int count = 0;
    for (; figures_next(&sentences, &sentence); count++)
        figures_add(out, status, "%s{health.%d text}\n", count == 0 ? "  health    " : "            ", count);
    if (count == 0)
        str_adds(out, "  health    good\n");
}

static void add_tier(struct str *out, const struct str *status, const char *tier)
{
    uint64_t held = figures_number(status, "%s.held", tier), room = figures_number(status, "%s.capacity", tier);
    double share = room ? (double)held / (double)room : 0;
    str_addf(out, "  %-8s  ", tier);
    if (room == 0) {
        str_adds(out, "none\n");
        return;
    }
    progress_add_bar(out, share, BAR);
    figures_add(out, status, " %3d%%  {%s.held size} of {%s.capacity size}\n", (int)(share * 100), tier, tier);
}

/* Reads of the feeder; only if there were any. */
static void add_fed(struct str *out, const struct str *status)
{
    uint64_t reads = 0, bytes = 0;
    for (int i = 0; i < FIGURES_PLACES; i++) {
        reads += figures_number(status, "fed.reads.%s", figures_places[i]);
        bytes += figures_number(status, "fed.bytes.%s", figures_places[i]);
    }
    if (reads == 0)
        return;
    str_addf(out, "  fed       ahead  %14s %12s  ", count_text(reads), size_text(bytes));
    for (int i = 0; i < FIGURES_PLACES; i++)
        if (figures_number(status, "fed.reads.%s", figures_places[i]) > 0)
            figures_add(out, status, " %s {fed.bytes.%s size}", figures_places[i], figures_places[i]);
    str_adds(out, "\n");
}

static void add_reads(struct str *out, const struct str *status)
{
    uint64_t all = 0;
    for (int i = 0; i < FIGURES_PLACES; i++)
        all += figures_number(status, "bytes.%s", figures_places[i]);
    str_adds(out, "  answered  from            reads        bytes   share\n");
    for (int i = 0; i < FIGURES_PLACES; i++) {
        const char *place = figures_places[i];
        double bytes = (double)figures_number(status, "bytes.%s", place);
        figures_add(out, status, "            %-6s {reads.%s count 14} {bytes.%s size 12}  %5.1f%%\n", place, place,
                    place, all ? 100 * bytes / (double)all : 0.0);
    }
    add_fed(out, status);
}

/* Only if something is read ahead, or should have been. */
static void add_feed(struct str *out, const struct str *status)
{
    const char *value;
    bool sampler = json_find(status->data, status->length, "feed.sampler", &value) > 0;
    if (figures_number(status, "feed.plans.0.number") == 0 && !sampler)
        return;
    figures_add(out, status, "  feed      {feed.ahead size} ahead of loaders, window {feed.window size}");
    if (figures_is(status, "feed.off", "true"))
        str_adds(out, "; off, because feeders died repeatedly");
    if (figures_is(status, "feed.sampler.state", "following"))
        figures_add(out, status, "; loaders read epoch {feed.sampler.epoch} of the sampler");
    else if (figures_is(status, "feed.sampler.state", "lost"))
        str_adds(out, "; the loaders' reads match no epoch of the sampler");
    else if (sampler)
        str_adds(out, "; the epoch of the sampler that loaders read is not known yet");
    str_adds(out, "\n");
}

static void add_catalog(struct str *out, const struct str *status)
{
    uint64_t seconds = figures_number(status, "catalog.age");
    figures_add(out, status,
                "  source    {source_path text}   {source.samples count} files opened, {source.bytes size} read");
    if (figures_number(status, "source.rate"))
        figures_add(out, status, ", at most {source.rate size}/s");
    figures_add(out, status, "\n  catalog   {catalog.files count} files, {catalog.bytes size}, %s%s\n",
                seconds ? duration_text(seconds * 1000000000) : "new", seconds ? " old" : "");
    if (figures_number(status, "resize.pixels"))
        figures_add(out, status,
                    "  images    {resize.images count} resized to {resize.pixels} pixels, {resize.before size} -> "
                    "{resize.after size}; {resize.remade count} of them made again since the mount\n");
}

/* One line per node, if the world has or had other nodes. */
static void add_world(struct str *out, const struct str *status)
{
    struct figures_list nodes = figures_list_of(status, "world");
    struct str node;
    if (figures_number(status, "nodes") < 2)
        return;
    str_adds(out,
             "  world     node  host             state          held of capacity     reads: ram         ssd        peer"
             "      source\n");
    while (figures_next(&nodes, &node))
        figures_add(
            out, &node,
            "            {node number 4}  {host text -16} {state text -8} {held size 10} of {capacity size -10} "
            "{reads.ram count 11} {reads.ssd count 11} {reads.peer count 11} {reads.source count 11}\n");
}

/* While samples move. */
static void add_move(struct str *out, const struct str *status)
{
    uint64_t come = figures_number(status, "move.come_bytes"), all = figures_number(status, "move.bytes");
    double share = all ? (double)come / (double)all : 0;
    if (!figures_is(status, "move.state", "moving"))
        return;
    str_adds(out, "  move      ");
    progress_add_bar(out, share, BAR);
    figures_add(
        out, status,
        " %3d%%  {move.come_bytes size} of {move.bytes size} of {move.samples count} samples for {turn.cause text}",
        (int)(share * 100));
    if (figures_is(status, "turn.cause", "exchange"))
        figures_add(out, status, " of epoch {turn.epoch}");
    str_adds(out, "\n");
}

int status_add_text(struct str *out, const struct live *live, const struct str *status)
{
    str_add_printable(out, live->mountpoint, strlen(live->mountpoint));
    figures_add(
        out, status,
        "   {state text}   node {node} of {nodes}   dealfs {version text}, server {pids.server}, keeper {pids.keeper}");
    if (figures_number(status, "pids.courier"))
        figures_add(out, status, ", courier {pids.courier}");
    str_adds(out, "\n");
    add_catalog(out, status);
    add_tier(out, status, "ram");
    add_tier(out, status, "ssd");
    add_reads(out, status);
    add_feed(out, status);
    add_world(out, status);
    add_move(out, status);
    add_health(out, status);
    return status_of(status);
}

static void add_room(struct str *out, const struct str *status, const char *tier)
{
    if (figures_number(status, "%s.capacity", tier))
        figures_add(out, status, "   %s {%s.held size} of {%s.capacity size}", tier, tier, tier);
}

int status_add_line(struct str *out, const struct live *live, const struct str *status)
{
    struct figures_list sentences = figures_list_of(status, "health");
    struct str sentence;
    int count = 0;
    while (figures_next(&sentences, &sentence))
        count++;
    str_add_printable(out, live->mountpoint, strlen(live->mountpoint));
    figures_add(out, status, "   {state text}   node {node} of {nodes}");
    add_room(out, status, "ram");
    add_room(out, status, "ssd");
    figures_add(out, status, count ? "   {health.0 text}" : "   good");
    if (count > 1)
        str_addf(out, " (and %d more)", count - 1);
    str_adds(out, "\n");
    return status_of(status);
}
