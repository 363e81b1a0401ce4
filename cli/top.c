/* `dealfs top`: shows what nodes and ranks currently read.
 *
 * Each second a child per mount reads its `status`, and another child lists the mounts. A mount that hangs only blocks
 * its child. */
#include "cli/base/options.h"

#include "cli/base/guard.h"
#include "cli/base/interrupt.h"
#include "cli/base/screen.h"
#include "cli/live/client.h"
#include "cli/live/gauges.h"
#include "fs/base/array.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/json.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    SECOND_MS = 1000,
    STEP_MS = 50,
    LOOK_S = 2,   /* between two lists of mounts */
    SILENT_S = 5, /* a child that has not answered by then is given up */
};

struct top_mount {
    struct live live; /* only what client_file needs; control NULL: dead */
    struct guard guard;
    uint64_t asked;           /* when; 0: it is not being asked */
    uint64_t answered, since; /* times of the last two answers; 0: none */
    struct str status, before;
    bool silent, listed;
};

struct top {
    const char *only; /* NULL: all mounts */
    bool once, json, terminal;
    enum gauge_order order;
    struct top_mount *mount;
    size_t count, room;
    struct guard look; /* the child that lists mounts */
    uint64_t looking, looked;
    bool known, gone; /* they were listed; `only` does not exist any more */
};

/* --- the list of mounts --- */

static int list_mount(void *user, const struct live *live)
{
    struct str *out = user;
    str_add(out, live->mountpoint, strlen(live->mountpoint) + 1);
    str_add(out, live->control ? live->control : "", live->control ? strlen(live->control) + 1 : 1);
    const struct live asked = {.keeper = live->keeper, .uid = live->uid, .gid = live->gid, .health = live->health};
    str_add(out, (const char *)&asked, sizeof asked);
    return 0;
}

static int look_for_mounts(void *user, struct str *out)
{
    const struct top *t = user;
    CLEANUP_STR struct str why = STR_INIT;
    CLEANUP_LIVE struct live live = {0};
    if (!t->only)
        return live_each(list_mount, out);
    int error = live_find(t->only, &live, &why);
    return error ? error : list_mount(out, &live);
}

static void forget_mount(struct top_mount *m)
{
    guard_end(&m->guard);
    free(m->live.mountpoint);
    free(m->live.control);
    str_fini(&m->status);
    str_fini(&m->before);
}

static void note_mount(struct top *t, const char *mountpoint, const char *control, const struct live *asked)
{
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->mount[i].live.mountpoint, mountpoint) == 0) {
            t->mount[i].listed = true;
            return;
        }
    if (array_reserve(t->mount, t->room, t->count + 1))
        return;
    struct top_mount *m = &t->mount[t->count];
    *m = (struct top_mount){.live = *asked, .guard = {.fd = -1}, .listed = true};
    m->live.mountpoint = strdup(mountpoint);
    m->live.control = control[0] ? strdup(control) : NULL;
    if (m->live.mountpoint)
        t->count++;
    else
        forget_mount(m);
}

static void take_list(struct top *t, const struct str *list)
{
    for (size_t i = 0; i < t->count; i++)
        t->mount[i].listed = false;
    for (size_t at = 0; at < list->length;) {
        const char *mountpoint = list->data + at, *control = mountpoint + strlen(mountpoint) + 1;
        const char *rest = control + strlen(control) + 1;
        struct live asked;
        memcpy(&asked, rest, sizeof asked);
        note_mount(t, mountpoint, control, &asked);
        at = (size_t)(rest - list->data) + sizeof asked;
    }
    for (size_t i = 0; i < t->count;)
        if (t->mount[i].listed) {
            i++;
        } else {
            forget_mount(&t->mount[i]);
            t->mount[i] = t->mount[--t->count];
        }
}

static void look_at_list(struct top *t, uint64_t now)
{
    CLEANUP_STR struct str list = STR_INIT;
    int error = 0;
    if (!t->looking && (!t->known || now - t->looked >= LOOK_S * SECOND) &&
        guard_start(look_for_mounts, t, &t->look) == 0)
        t->looking = now;
    if (!t->looking)
        return;
    if (guard_take(&t->look, &list, &error)) {
        t->looking = 0;
        t->looked = now;
        t->known = true;
        t->gone = t->only && error == -ENOENT;
        if (!error || t->gone)
            take_list(t, &list);
    } else if (now - t->looking >= live_patience() + SILENT_S * SECOND) {
        guard_end(&t->look);
        t->looking = 0;
        t->looked = now;
    }
}

/* --- their status --- */

static int read_status(void *user, struct str *out)
{
    const struct top_mount *m = user;
    return client_file(&m->live, "status", out);
}

static void take_status(struct top_mount *m, struct str *status, uint64_t now)
{
    str_fini(&m->before);
    m->before = m->status;
    m->status = *status;
    *status = (struct str)STR_INIT;
    m->since = m->answered;
    m->answered = now;
    m->silent = false;
}

static void look_at_mount(struct top_mount *m, uint64_t now, bool ask)
{
    CLEANUP_STR struct str status = STR_INIT;
    int error = 0;
    if (ask && !m->asked && m->live.control && guard_start(read_status, m, &m->guard) == 0)
        m->asked = now;
    if (!m->live.control)
        m->silent = true;
    if (!m->asked)
        return;
    if (guard_take(&m->guard, &status, &error)) {
        m->asked = 0;
        if (error)
            m->silent = true;
        else
            take_status(m, &status, now);
    } else if (now - m->asked >= (uint64_t)SILENT_S * SECOND) {
        guard_end(&m->guard);
        m->asked = 0;
        m->silent = true;
    }
}

/* Some mounts have not answered yet. */
static bool is_waiting(const struct top *t)
{
    for (size_t i = 0; i < t->count; i++)
        if (!t->mount[i].answered && !t->mount[i].silent)
            return true;
    return !t->known;
}

/* Has each mount that answers done so twice? Then there are rates. */
static bool has_rates(const struct top *t)
{
    for (size_t i = 0; i < t->count; i++)
        if (!t->mount[i].since && !t->mount[i].silent)
            return false;
    return t->known;
}

/* --- output --- */

static struct node_gauge *read_gauges(const struct top *t)
{
    struct node_gauge *gauges = calloc(t->count + 1, sizeof *gauges);
    const struct str nothing = STR_INIT;
    for (size_t i = 0; gauges && i < t->count; i++) {
        const struct top_mount *m = &t->mount[i];
        gauges[i].mountpoint = m->live.mountpoint;
        gauge_read(&m->before, m->silent ? &nothing : &m->status,
                   m->since ? (double)(m->answered - m->since) / (double)SECOND : 0, &gauges[i]);
    }
    if (gauges)
        gauges_sort(gauges, (unsigned)t->count, t->order);
    return gauges;
}

static void add_title(struct str *out, const struct top *t)
{
    char clock[32];
    time_t now = time(NULL);
    struct tm tm;
    strftime(clock, sizeof clock, "%H:%M:%S", localtime_r(&now, &tm));
    str_addf(out, "dealfs top   %s   %zu mount%s   by %s   s: sort   q: quit\n\n", clock, t->count,
             t->count == 1 ? "" : "s", gauge_order_names[t->order]);
}

static void show_top(const struct top *t)
{
    CLEANUP_STR struct str out = STR_INIT;
    CLEANUP_FREE struct node_gauge *gauges = read_gauges(t);
    if (!gauges)
        return;
    if (t->json) {
        gauges_add_json(&out, gauges, (unsigned)t->count);
    } else {
        if (t->terminal)
            add_title(&out, t);
        gauges_add_head(&out);
        for (size_t i = 0; i < t->count; i++)
            gauges_add_lines(&out, &gauges[i]);
        if (t->count == 0)
            str_adds(&out, "no mount is up\n");
    }
    if (out.failed)
        return;
    if (t->terminal) {
        screen_draw(&out);
    } else {
        fwrite(out.data, 1, out.length, stdout);
        if (!t->once && !t->json)
            fputs("\n", stdout);
        fflush(stdout);
    }
}

/* --- the loop --- */

static void wait_a_step(struct top *t, bool *quit, bool *changed)
{
    int key = 0;
    if (!t->terminal) {
        clock_sleep(STEP_MS * MILLISECOND);
        return;
    }
    key = screen_key(STEP_MS);
    if (key == 'q' || key == 'Q' || key < 0)
        *quit = true;
    else if (key == 's' || key == 'S')
        t->order = (t->order + 1) % GAUGE_ORDERS;
    else if (key == 'r' || key == 'R')
        t->order = GAUGE_BY_NAME;
    *changed = key > 0;
}

static int run_top(struct top *t)
{
    uint64_t shown = 0;
    bool quit = false, changed = false;
    while (!quit && !t->gone) {
        if (interrupted == SIGTSTP) {
            interrupted = 0;
            screen_stop();
        } else if (interrupted) {
            break;
        }
        uint64_t now = clock_now();
        bool tick = now - shown >= (uint64_t)SECOND_MS * MILLISECOND;
        struct screen_size size = screen_size();
        look_at_list(t, now);
        for (size_t i = 0; i < t->count; i++)
            look_at_mount(&t->mount[i], now, tick || !t->mount[i].answered);
        if (t->once ? has_rates(t) : ((tick || changed) && (shown || !is_waiting(t)))) {
            show_top(t);
            if (t->once)
                return COMMAND_DONE;
            shown = tick ? now : shown;
        } else if (tick && t->once) {
            shown = now;
        }
        wait_a_step(t, &quit, &changed);
        struct screen_size then = screen_size();
        changed |= then.columns != size.columns || then.rows != size.rows;
    }
    return COMMAND_DONE;
}

static int top_of(struct top *t)
{
    if (!t->once && !t->json)
        t->terminal = screen_begin() == 0;
    interrupt_catch(SIGINT, SIGTERM, SIGHUP);
    if (t->terminal)
        interrupt_catch(SIGTSTP);
    signal(SIGCHLD, SIG_IGN); /* a child that hangs is killed, and nobody waits for its end */
    int status = run_top(t);
    if (t->terminal)
        screen_end();
    if (t->gone)
        status = command_fail("%s: it is no longer mounted", t->only);
    guard_end(&t->look);
    for (size_t i = 0; i < t->count; i++)
        forget_mount(&t->mount[i]);
    free(t->mount);
    return status;
}

static int top_command(int argc, char **argv)
{
    struct top t = {.look = {.fd = -1}};
    CLEANUP_LIVE struct live live = {0};
    int status = command_options(&command_top, &t, argc, argv);
    if (status)
        return status;
    if (argc - optind > 1)
        return command_usage(&command_top, "more than one MOUNTPOINT");
    if (argc > optind) {
        t.only = argv[optind];
        if (client_find(t.only, LIVE_DEAD, &live))
            return COMMAND_FAILED;
    }
    return top_of(&t);
}

#define AT(member) .place = offsetof(struct top, member)
static const struct command_option top_options[] = {
    {"once", 0, OPTION_FLAG, NULL, "show it once, after a second, and end", AT(once)},
    {"json", 0, OPTION_FLAG, NULL, "a list of objects instead of lines, one list per second", AT(json)},
    {0},
};

const struct command command_top = {
    .name = "top",
    .arguments = "[--once] [--json] [MOUNTPOINT]",
    .summary = "show live what nodes and ranks read and wait for",
    .options = top_options,
    .help = "On a terminal: s sorts by another column, r by name again, q quits.\n",
    .run = top_command,
};
