/* `dealfs status`: what a mount is, keeps, and has answered from where. */
#include "cli/base/command.h"

#include "cli/base/progress.h"
#include "cli/live/client.h"
#include "cli/live/reports.h"
#include "fs/base/json.h"
#include "fs/base/size.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

enum { BAR = 20 };

struct status_show {
    bool json;
    bool epochs; /* reports of epochs instead: */
    struct reports_wish wish;
    int shown;
    int status; /* the worst so far */
};

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

/* A line a node, of a world that has or had others. */
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

/* Returns whether it is whole. */
static bool add_status(struct str *out, const struct live *live, const struct str *status)
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

static void worsen_status(struct status_show *show, int status)
{
    if (status == COMMAND_FAILED || show->status == COMMAND_DONE)
        show->status = status;
}

static void print_json(struct status_show *show, const struct str *status, bool list)
{
    CLEANUP_STR struct str shown = STR_INIT;
    size_t length = status->length;

    while (length > 0 && status->data[length - 1] == '\n')
        length--;
    if (list)
        fputs(show->shown > 0 ? ",\n" : "[", stdout);
    str_add_shown(&shown, status->data, length); /* a server of another user may say anything */
    if (shown.length > 0)
        fwrite(shown.data, 1, shown.length, stdout);
    if (!list)
        fputs("\n", stdout);
}

/* A mount that gives no status is an object, too, in the list of all. */
static void show_unreachable(struct status_show *show, const struct live *live)
{
    CLEANUP_STR struct str text = STR_INIT, health = STR_INIT;

    live_say_health(live, &health);
    if (show->json) {
        struct json j = {.out = &text};
        json_begin_object(&j, NULL);
        json_string(&j, "mountpoint", live->mountpoint);
        json_string(&j, "source", live->source);
        json_string(&j, "state", live->health == LIVE_ELSEWHERE ? "elsewhere" : "dead");
        json_begin_array(&j, "health");
        json_string(&j, NULL, health.failed ? "?" : health.data);
        json_end_array(&j);
        json_end_object(&j);
        print_json(show, &text, true);
    } else {
        str_add_printable(&text, live->mountpoint, strlen(live->mountpoint));
        printf("%s   %s\n", text.failed ? "?" : text.data, health.failed ? "?" : health.data);
    }
    if (live->health != LIVE_ELSEWHERE)
        worsen_status(show, COMMAND_DEGRADED);
}

static void print_status(struct status_show *show, const struct live *live, const struct str *status, bool list)
{
    CLEANUP_STR struct str text = STR_INIT;

    if (!add_status(&text, live, status))
        worsen_status(show, COMMAND_DEGRADED);
    if (show->json)
        print_json(show, status, list);
    else if (text.failed)
        show->status = command_fail("%s: out of memory", live->mountpoint);
    else
        printf("%s%s", show->shown > 0 ? "\n" : "", text.data);
}

/* ---- reports of epochs ---- */

static void print_reports(struct status_show *show, const struct live *live, const struct str *reports, bool list)
{
    CLEANUP_STR struct str words = STR_INIT;
    bool incomplete = reports_add_words(live->mountpoint, reports, &words);

    if (show->json && list) {
        CLEANUP_STR struct str object = STR_INIT;
        struct json j = {.out = &object};
        json_begin_object(&j, NULL);
        json_string(&j, "mountpoint", live->mountpoint);
        json_end_object(&j);
        object.length -= object.length > 0; /* the reports stand before its end */
        str_adds(&object, ",\"epochs\":");
        str_add(&object, reports->data, reports->length);
        str_adds(&object, "}");
        print_json(show, &object, true);
    } else if (show->json) {
        print_json(show, reports, false);
    } else {
        printf("%s%s", show->shown > 0 ? "\n" : "", words.failed ? "?" : words.data);
    }
    if (incomplete)
        worsen_status(show, COMMAND_DEGRADED);
    show->shown++;
}

static int get_reports(const struct status_show *show, const struct live *live, struct str *reports)
{
    CLEANUP_STR struct str text = STR_INIT;
    int error = live->control ? client_file(live, "epochs", &text) : -ENOENT;

    return error ? error : reports_select(&text, &show->wish, reports);
}

static int show_epochs_of(struct status_show *show, const char *mountpoint)
{
    CLEANUP_STR struct str reports = STR_INIT;
    struct live live;

    if (client_find(mountpoint, LIVE_HUNG, &live))
        return COMMAND_FAILED;
    int count = get_reports(show, &live, &reports);
    if (count < 0)
        command_fail("%s: %s", mountpoint, strerror(-count));
    else if (count > 0 || show->json)
        print_reports(show, &live, &reports, false);
    else if (show->wish.latest)
        command_fail("%s: no list of a plan was requested with feed=yes yet", mountpoint);
    else
        command_fail("%s: there is no report of epoch %" PRIu64, mountpoint, show->wish.epoch);
    live_fini(&live);
    return count < 0 || (count == 0 && !show->json) ? COMMAND_FAILED : show->status;
}

static int show_epochs_each(void *user, const struct live *live)
{
    struct status_show *show = user;
    CLEANUP_STR struct str reports = STR_INIT;

    if (get_reports(show, live, &reports) > 0)
        print_reports(show, live, &reports, true);
    return 0;
}

/* ---- all that there is ---- */

static int show_each(void *user, const struct live *live)
{
    struct status_show *show = user;
    CLEANUP_STR struct str status = STR_INIT;

    if (live->control && client_file(live, "status", &status) == 0)
        print_status(show, live, &status, true);
    else
        show_unreachable(show, live);
    show->shown++;
    return 0;
}

static int show_all(struct status_show *show)
{
    int error = live_each(show->epochs ? show_epochs_each : show_each, show);

    if (error)
        return command_fail("list the mounts: %s", strerror(-error));
    if (show->json)
        printf("%s]\n", show->shown > 0 ? "" : "[");
    else if (show->shown == 0)
        command_note(stderr, show->epochs ? "no mount has such a report" : "no mount is up");
    return show->status;
}

static int show_one(struct status_show *show, const char *mountpoint)
{
    CLEANUP_STR struct str status = STR_INIT, health = STR_INIT;
    struct live live;

    if (client_find(mountpoint, LIVE_DEAD, &live))
        return COMMAND_FAILED;
    int error = live.control ? client_file(&live, "status", &status) : -ENOENT;
    if (error) {
        live_say_health(&live, &health);
        command_fail("%s: %s", mountpoint, live.health == LIVE_UP || health.failed ? strerror(-error) : health.data);
    } else {
        print_status(show, &live, &status, false);
    }
    live_fini(&live);
    return error ? COMMAND_FAILED : show->status;
}

/* `--epoch=N`, `--epoch N` or `--epoch`: a mountpoint of digits alone is written with its path. */
static int take_epoch(struct status_show *show, int argc, char **argv)
{
    const char *text = optarg;

    if (!text && optind < argc && argv[optind][0] && strspn(argv[optind], "0123456789") == strlen(argv[optind]))
        text = argv[optind++];
    show->epochs = true;
    show->wish.latest = !text;
    return text ? number_parse(text, 0, UINT64_MAX, &show->wish.epoch) : 0;
}

static int status_command(int argc, char **argv)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'}, {"epoch", optional_argument, NULL, 'e'}, {0}};
    struct status_show show = {0};
    int option;

    while ((option = getopt_long(argc, argv, ":j", options, NULL)) != -1) {
        if (option == 'j')
            show.json = true;
        else if (option != 'e')
            return command_bad_option(&command_status, option, argv);
        else if (take_epoch(&show, argc, argv))
            return command_usage(&command_status, "--epoch takes the number of an epoch");
    }
    if (argc - optind > 1)
        return command_usage(&command_status, "more than one MOUNTPOINT");
    if (argc == optind)
        return show_all(&show);
    return show.epochs ? show_epochs_of(&show, argv[optind]) : show_one(&show, argv[optind]);
}

const struct command command_status = {
    .name = "status",
    .arguments = "[--json] [--epoch [N]] [MOUNTPOINT]",
    .summary = "show what mounts keep and have answered from where",
    .help =
        "  --json        the mount's status as it is; without MOUNTPOINT, a list of all of them\n"
        "  --epoch [N]   what was read of the lists of epoch N, or of the epoch that was requested last (feed=yes)\n"
        "  The exit status is 3 when a mount is degraded, or a loader has ended its list and left samples unread.\n",
    .run = status_command,
};
