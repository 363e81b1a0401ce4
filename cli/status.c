/* `dealfs status`: shows what a mount is, what it has cached, and where reads were answered from. */
#include "cli/base/options.h"

#include "cli/live/client.h"
#include "cli/live/reports.h"
#include "cli/live/status-text.h"
#include "fs/base/cleanup.h"
#include "fs/base/json.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct status_show {
    bool json;
    struct option_latest epoch; /* if given, show reports of epochs instead */
    int shown;
    int status; /* the worst so far */
};

static void worsen_status(struct status_show *show, int status)
{
    if (status == COMMAND_FAILED || (show->status != COMMAND_FAILED && status > show->status))
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
    str_add_shown(&shown, status->data, length); /* another user's server may send anything */
    if (command_print("status", &shown))
        show->status = COMMAND_FAILED;
    if (!list)
        fputs("\n", stdout);
}

/* The list of all mounts also has an object for a mount without a status. */
static void show_unreachable(struct status_show *show, const struct live *live)
{
    CLEANUP_STR struct str text = STR_INIT, health = STR_INIT;
    live_say_health(live, &health);
    if (show->json) {
        struct json j = {.out = &text};
        json_begin_object(&j, NULL);
        json_string(&j, "mountpoint", live->mountpoint);
        json_string(&j, "source", live->source);
        json_string(&j, "state",
                    live->health == LIVE_ELSEWHERE ? "elsewhere"
                    : live->health == LIVE_UNKNOWN ? "unknown"
                                                   : "dead");
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
        worsen_status(show, COMMAND_FAULT);
}

static void print_status(struct status_show *show, const struct live *live, const struct str *status, bool list)
{
    CLEANUP_STR struct str text = STR_INIT;
    worsen_status(show, (list ? status_add_line : status_add_text)(&text, live, status));
    if (show->json)
        print_json(show, status, list);
    else if (command_print(live->mountpoint, &text))
        show->status = COMMAND_FAILED;
}

/* --- reports of epochs --- */

static void print_reports(struct status_show *show, const struct live *live, const struct str *reports, bool list)
{
    CLEANUP_STR struct str words = STR_INIT;
    bool incomplete = reports_add_words(live->mountpoint, reports, &words);
    if (show->json && list) {
        CLEANUP_STR struct str object = STR_INIT;
        struct json j = {.out = &object};
        json_begin_object(&j, NULL);
        json_string(&j, "mountpoint", live->mountpoint);
        str_adds(&object, ",\"epochs\":");
        str_add(&object, reports->data, reports->length);
        json_end_object(&j);
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

static int get_reports(const struct status_show *show, const struct client_answer *answer, struct str *reports)
{
    const struct reports_wish wish = {show->epoch.latest, show->epoch.number};
    return answer->error ? answer->error : reports_select(&answer->text, &wish, reports);
}

static int show_epochs_of(struct status_show *show, const char *mountpoint)
{
    CLEANUP_STR struct str reports = STR_INIT;
    CLEANUP_LIVE struct live live = {0};
    if (client_find(mountpoint, LIVE_HUNG, &live))
        return COMMAND_FAILED;
    struct client_answer answer;
    client_files(&live, 1, "epochs", &answer);
    int count = get_reports(show, &answer, &reports);
    str_fini(&answer.text);
    if (count < 0)
        command_fail("%s: %s", mountpoint, strerror(-count));
    else if (count > 0 || show->json)
        print_reports(show, &live, &reports, false);
    else if (show->epoch.latest)
        command_fail("%s: no list of a plan was requested with feed=yes yet", mountpoint);
    else
        command_fail("%s: there is no report of epoch %" PRIu64, mountpoint, show->epoch.number);
    return count < 0 || (count == 0 && !show->json) ? COMMAND_FAILED : show->status;
}

static void show_epochs_each(struct status_show *show, const struct live *live, const struct client_answer *answer)
{
    CLEANUP_STR struct str reports = STR_INIT;
    if (get_reports(show, answer, &reports) > 0)
        print_reports(show, live, &reports, true);
}

/* --- all mounts --- */

static void show_each(struct status_show *show, const struct live *live, const struct client_answer *answer)
{
    if (answer->error)
        show_unreachable(show, live);
    else
        print_status(show, live, &answer->text, true);
    show->shown++;
}

static int ask_all(struct status_show *show)
{
    struct live *list;
    size_t count;
    int error = live_list(&list, &count);
    if (error)
        return error;
    CLEANUP_FREE struct client_answer *answers = calloc(count + 1, sizeof *answers);
    if (answers)
        client_files(list, count, show->epoch.given ? "epochs" : "status", answers);
    for (size_t i = 0; answers && i < count; i++) {
        (show->epoch.given ? show_epochs_each : show_each)(show, &list[i], &answers[i]);
        str_fini(&answers[i].text);
    }
    live_list_free(list, count);
    return answers ? 0 : -ENOMEM;
}

static int show_all(struct status_show *show)
{
    int error = ask_all(show);
    if (error)
        return command_fail("list the mounts: %s", strerror(-error));
    if (show->json)
        printf("%s]\n", show->shown > 0 ? "" : "[");
    else if (show->shown == 0)
        command_note(stderr, show->epoch.given ? "no mount has such a report" : "no mount is up");
    return show->status;
}

static int show_one(struct status_show *show, const char *mountpoint)
{
    CLEANUP_STR struct str status = STR_INIT, health = STR_INIT;
    CLEANUP_LIVE struct live live = {0};
    if (client_find(mountpoint, LIVE_DEAD, &live))
        return COMMAND_FAILED;
    int error = live.control ? client_file(&live, "status", &status) : -ENOENT;
    if (error) {
        live_say_health(&live, &health);
        command_fail("%s: %s", mountpoint, live.health == LIVE_UP || health.failed ? strerror(-error) : health.data);
        show->status = live.health == LIVE_ELSEWHERE || error == -EACCES ? COMMAND_FAILED : COMMAND_FAULT;
    } else {
        print_status(show, &live, &status, false);
    }
    return show->status;
}

static int status_command(int argc, char **argv)
{
    struct status_show show = {0};
    int status = command_options(&command_status, &show, argc, argv);
    if (status)
        return status;
    if (argc - optind > 1)
        return command_usage(&command_status, "more than one MOUNTPOINT");
    if (argc == optind)
        return show_all(&show);
    return show.epoch.given ? show_epochs_of(&show, argv[optind]) : show_one(&show, argv[optind]);
}

#define AT(member) .place = offsetof(struct status_show, member)
static const struct command_option status_options[] = {
    {"json", 0, OPTION_FLAG, NULL, "the status as JSON; without MOUNTPOINT, a list of all mounts", AT(json)},
    {"epoch", 0, OPTION_LATEST, "[N]", "coverage of the lists of epoch N, default the latest (of plans with feed=yes)",
     AT(epoch)},
    {0},
};

const struct command command_status = {
    .name = "status",
    .arguments = "[--json] [--epoch [N]] [MOUNTPOINT]",
    .summary = "show the state of mounts: health, caches, where reads were answered",
    .options = status_options,
    .help = "Exit status: 0 good; 3 degraded now or within the hour, or (--epoch) samples were left unread;\n"
            "4 fault: reads fail or wait, a tier or the source is lost, or the mount does not answer.\n",
    .run = status_command,
};
