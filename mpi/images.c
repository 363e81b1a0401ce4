/* Nodes do not wait for individual nodes. Several times per second there is a round in which all nodes report their
 * progress, and all see the same. So all refuse together if their tiers are too small, and all end if one has
 * failed. */
#include "mpi/images.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/ready.h"
#include "fs/base/size.h"
#include "fs/wire/message.h"
#include "mpi/agree.h"
#include "mpi/signals.h"

#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>

enum { TICK_MS = 50, ROUND_MS = 200, NAMED = 8 };

struct round {
    uint64_t made, failed; /* 1: its part is made; it has failed */
    struct resizing_progress now;
};

void images_init(struct images *r, const struct members *members, struct courier_helper *helper)
{
    *r = (struct images){.members = members, .helper = helper, .socket = -1};
}

int images_open(struct images *r)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    r->socket = ends[0];
    return ends[1];
}

/* --- this node's resizer --- */

static int say(const struct images *r, enum resizing_kind kind, const void *payload, size_t n)
{
    return message_send(r->socket, (enum message_kind)kind, payload, n, NULL);
}

/* If a mount is being made, its error message explains best why it failed, so wait for it. */
static int lose_resizer(struct images *r, const void *words, size_t n, struct str *why)
{
    if (r->helper->begun)
        helper_end_mount(r->helper, why);
    if (!why->length && n > 0)
        str_add_printable(why, words, n);
    if (!why->length)
        str_adds(why, "dealfs-resizer died: see the log of the mount");
    return -EIO;
}

/* Read a frame of this kind, or of an earlier one. */
static int hear_frame(struct images *r, uint32_t *kind, void **payload, size_t *n, struct str *why)
{
    int error = message_receive(r->socket, kind, payload, n, NULL);
    if (error)
        return lose_resizer(r, NULL, 0, why);
    if (*kind != RESIZING_FAILED)
        return 0;
    error = lose_resizer(r, *payload, *n, why);
    free(*payload);
    *payload = NULL;
    return error;
}

/* 1: a frame can be read; 0: none within this time; -EIO and why: there will be none. */
static int await_frame(struct images *r, int milliseconds, struct str *why)
{
    struct pollfd ready = {.fd = r->socket, .events = POLLIN};
    int n = ready_wait(&ready, 1, milliseconds);
    signals_obey();
    if (n > 0)
        return 1;
    return r->helper->begun && helper_has_ended(r->helper) ? lose_resizer(r, NULL, 0, why) : 0;
}

static int hear_one(struct images *r, enum resizing_kind wanted, void **payload, size_t *n, struct str *why)
{
    uint32_t kind;
    int ready;
    while ((ready = await_frame(r, TICK_MS, why)) == 0)
        ;
    int error = ready < 0 ? ready : hear_frame(r, &kind, payload, n, why);
    if (error || kind == wanted)
        return error;
    free(*payload);
    *payload = NULL;
    return str_fail(why, -EPROTO, "dealfs-resizer is another version");
}

int images_hear(struct images *r, struct str *why)
{
    CLEANUP_FREE void *payload = NULL;
    size_t n;
    int error = hear_one(r, RESIZING_KNOWS, &payload, &n, why);
    if (!error && n != sizeof r->mine)
        error = str_fail(why, -EPROTO, "dealfs-resizer sent a malformed message");
    if (!error)
        memcpy(&r->mine, payload, sizeof r->mine);
    r->mine.library[sizeof r->mine.library - 1] = '\0';
    return error;
}

void images_await(struct images *r)
{
    CLEANUP_STR struct str nothing = STR_INIT;
    while (await_frame(r, TICK_MS, &nothing) == 0) /* it sends nothing more; wait for its end */
        ;
}

void images_end(struct images *r)
{
    CLEANUP_STR struct str nothing = STR_INIT;
    if (r->socket >= 0)
        close(r->socket);
    r->socket = -1;
    if (r->helper->begun)
        helper_end_mount(r->helper, &nothing);
}

/* --- existing images --- */

static bool knows_is_sound(const struct resizing_knows *k)
{
    size_t n = strnlen(k->library, sizeof k->library);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)k->library[i] < 0x20 || k->library[i] == 0x7f)
            return false;
    return n < sizeof k->library && k->known <= UINT32_MAX;
}

static int check_alike(const struct nodes *nodes, const struct resizing_knows *all)
{
    for (uint32_t i = 0; i < nodes->count; i++) {
        if (!knows_is_sound(&all[i]))
            return agree_refuse(nodes, "%s: its report on images is malformed", agree_name(nodes, i));
        if (!digest_equal(&all[i].catalog, &all[0].catalog))
            return agree_refuse(nodes, "%s: it resizes another dataset than %s", agree_name(nodes, i),
                                agree_name(nodes, 0));
        if (all[i].side != all[0].side || all[i].quality != all[0].quality ||
            strncmp(all[i].library, all[0].library, sizeof all[i].library) != 0)
            return agree_refuse(nodes,
                                "%s: it resizes images with %s, %s with %s: their bytes would differ: install the same "
                                "version on all nodes",
                                agree_name(nodes, i), all[i].library, agree_name(nodes, 0), all[0].library);
    }
    return 0;
}

/* Nodes with the same records send them once. If all nodes have the same, nobody sends. */
static bool choose_tellers(const struct nodes *nodes, const struct resizing_knows *all, bool *tells)
{
    bool differ = false;
    for (uint32_t i = 0; i < nodes->count; i++) {
        tells[i] = all[i].known > 0;
        for (uint32_t j = 0; j < i && tells[i]; j++)
            tells[i] = !digest_equal(&all[j].records, &all[i].records);
        differ |= !digest_equal(&all[i].records, &all[0].records);
    }
    return differ;
}

static int ask_records(struct images *r, void **mine, uint64_t *n, struct str *why)
{
    size_t length = 0;
    int error = say(r, RESIZING_SHARE, NULL, 0);
    error = error ? lose_resizer(r, NULL, 0, why) : hear_one(r, RESIZING_RECORDS, mine, &length, why);
    *n = length;
    return error;
}

/* The records of these nodes go to the resizers of all nodes, in the order of the nodes. */
static int share_records(struct images *r, const bool *tells)
{
    const struct nodes *nodes = r->members->nodes;
    CLEANUP_STR struct str why = STR_INIT;
    CLEANUP_FREE uint64_t *sizes = NULL;
    CLEANUP_FREE void *mine = NULL, *others = NULL;
    uint64_t size = 0, most = 0;
    int error = tells[nodes->me] ? ask_records(r, &mine, &size, &why) : 0;
    error = agree_collect(nodes, error, &why, &size, sizeof size, &sizes);
    if (error)
        return error;
    for (uint32_t i = 0; i < nodes->count; i++) {
        if (sizes[i] > MESSAGE_MOST)
            return agree_refuse(nodes, "%s: its report on images is malformed", agree_name(nodes, i));
        most = sizes[i] > most ? sizes[i] : most;
    }
    others = malloc(most + 1);
    error = agree_on(nodes, others ? 0 : -ENOMEM, NULL);
    int failed = 0;
    for (uint32_t i = 0; i < nodes->count && !error; i++) {
        void *bytes = i == nodes->me ? mine : others;
        if (sizes[i] == 0)
            continue;
        error = agree_share(nodes, i, bytes, sizes[i]);
        if (!error && !failed)
            failed = say(r, RESIZING_RECORDS, bytes, sizes[i]);
    }
    if (error)
        return error;
    return agree_on(nodes, failed ? lose_resizer(r, NULL, 0, &why) : 0, &why);
}

static int share_known(struct images *r, const struct resizing_knows *all)
{
    const struct nodes *nodes = r->members->nodes;
    CLEANUP_FREE bool *tells = calloc(nodes->count, sizeof *tells);
    int error = agree_on(nodes, tells ? 0 : -ENOMEM, NULL);
    return error || !choose_tellers(nodes, all, tells) ? error : share_records(r, tells);
}

static int share_made(struct images *r)
{
    const struct nodes *nodes = r->members->nodes;
    CLEANUP_FREE bool *tells = malloc(nodes->count * sizeof *tells);
    int error = agree_on(nodes, tells ? 0 : -ENOMEM, NULL);
    if (!error)
        memset(tells, true, nodes->count * sizeof *tells);
    return error ? error : share_records(r, tells);
}

/* --- groups --- */

struct span_of_nodes {
    uint32_t first, end;
};

/* Each group needs all images, so each makes all. */
static struct span_of_nodes group_of(const struct images *r, uint32_t node)
{
    uint32_t nodes = r->members->nodes->count, groups = members_groups(r->members);
    uint32_t group = node_group(node, nodes, groups);
    return (struct span_of_nodes){node_first(group, nodes, groups), node_first(group + 1, nodes, groups)};
}

/* --- rounds --- */

static void take_progress(struct round *mine, uint32_t kind, const void *payload, size_t n)
{
    if (n == sizeof mine->now)
        memcpy(&mine->now, payload, n);
    mine->made = kind == RESIZING_MADE;
}

/* Read this node's frames until the next round. A resizer that has completed its part may still die. */
static int listen_a_round(struct images *r, struct round *mine, struct str *why)
{
    uint64_t end = clock_now() + ROUND_MS * MILLISECOND;
    for (uint64_t now = clock_now(); now < end; now = clock_now()) {
        CLEANUP_FREE void *payload = NULL;
        uint32_t kind;
        size_t n;
        int left = (int)((end - now) / MILLISECOND) + 1;
        if (mine->failed) {
            signals_obey();
            clock_sleep((uint64_t)(left < TICK_MS ? left : TICK_MS) * MILLISECOND);
            continue;
        }
        int error = await_frame(r, left < TICK_MS ? left : TICK_MS, why);
        if (error > 0 && !(error = hear_frame(r, &kind, &payload, &n, why)))
            take_progress(mine, kind, payload, n);
        if (error < 0)
            return error;
    }
    return 0;
}

static int refuse_room(const struct images *r, uint64_t needed, uint64_t room)
{
    char need[SIZE_TEXT], has[SIZE_TEXT];
    uint32_t groups = members_groups(r->members);
    return agree_refuse(r->members->nodes,
                        "the resized images take about %s, but the tiers of %s have room for only %s: use larger tiers "
                        "(ram=, ssd=, ssd_size=), or a smaller resize=",
                        size_format(needed, need, sizeof need), groups > 1 ? "a group of nodes" : "all nodes",
                        size_format(room, has, sizeof has));
}

/* Check as soon as all nodes have an estimate. When everything is made, it did fit, or not. */
static int check_room(const struct images *r, const struct resizing_knows *all, const struct round *round)
{
    uint32_t nodes = r->members->nodes->count;
    struct span_of_nodes of;
    for (uint32_t first = 0; first < nodes; first = of.end) {
        uint64_t needed = round[first].now.known, room = 0;
        bool estimated = true, fits = true;
        of = group_of(r, first);
        for (uint32_t i = of.first; i < of.end; i++) {
            needed += round[i].now.needed;
            room += all[i].room;
            estimated &= round[i].now.estimated == 1;
            fits &= round[i].made && round[i].now.unstored == 0;
        }
        if (estimated && !fits && needed > room)
            return refuse_room(r, needed, room);
    }
    return 0;
}

static struct resizing_progress sum_up(const struct nodes *nodes, const struct round *round)
{
    struct resizing_progress sum = {0};
    for (uint32_t i = 0; i < nodes->count; i++) {
        sum.done += round[i].now.done;
        sum.all += round[i].now.all;
        sum.before += round[i].now.before;
        sum.after += round[i].now.after;
    }
    return sum;
}

/* For people: node 0 prints for all. */
static void show_progress(const struct nodes *nodes, const struct round *round, uint64_t began, uint64_t *shown)
{
    uint64_t now = clock_now();
    if (nodes->me != 0 || now - *shown < SECOND)
        return;
    *shown = now;
    char before[SIZE_TEXT], after[SIZE_TEXT], left[SIZE_TEXT];
    const struct resizing_progress sum = sum_up(nodes, round);
    double rate = (double)sum.done / ((double)(now - began) / 1e9);
    fprintf(stderr, "resizing %s -> %s  %3u%%  %" PRIu64 "/%" PRIu64 " files  %.0f files/s",
            size_format(sum.before, before, sizeof before), size_format(sum.after, after, sizeof after),
            sum.all ? (unsigned)(100 * sum.done / sum.all) : 100, sum.done, sum.all, rate);
    if (rate > 0 && sum.done < sum.all)
        fprintf(stderr, "  %s left",
                duration_format((uint64_t)((double)(sum.all - sum.done) / rate) * SECOND, left, sizeof left));
    fputc('\n', stderr);
    fflush(stderr);
}

static void say_unstored(const struct nodes *nodes, const struct round *round)
{
    char bytes[SIZE_TEXT];
    uint32_t named = 0;
    for (uint32_t i = 0; i < nodes->count && nodes->me == 0; i++)
        if (round[i].now.unstored > 0 && named++ < NAMED)
            log_info("%s: %s of its resized images found no room there: a node with room resizes them again",
                     agree_name(nodes, i), size_format(round[i].now.unstored, bytes, sizeof bytes));
}

/* A mount that is being made here prints this itself. */
static void say_made(const struct images *r, const struct round *round, uint64_t began)
{
    char before[SIZE_TEXT], after[SIZE_TEXT];
    const struct nodes *nodes = r->members->nodes;
    const struct resizing_progress sum = sum_up(nodes, round);
    double seconds = (double)(clock_now() - began) / 1e9;
    say_unstored(nodes, round);
    if (nodes->me != 0 || r->helper->begun || sum.all == 0)
        return;
    printf("images of %" PRIu64 " files are resized, %s -> %s, %.0f files/s\n", sum.done,
           size_format(sum.before, before, sizeof before), size_format(sum.after, after, sizeof after),
           (double)sum.done / (seconds > 0.001 ? seconds : 0.001));
    fflush(stdout);
}

/* 1: all parts are made; 0: not yet; -ECANCELED. */
static int look_around(struct images *r, const struct resizing_knows *knows, const struct round *all,
                       const struct round *mine, const struct str *why)
{
    const struct nodes *nodes = r->members->nodes;
    bool failed = false, made = true;
    for (uint32_t i = 0; i < nodes->count; i++) {
        failed |= all[i].failed;
        made &= all[i].made != 0;
    }
    if (failed)
        return agree_on(nodes, mine->failed ? -EIO : 0, why);
    int error = check_room(r, knows, all);
    return error ? error : made;
}

static int await_all(struct images *r, const struct resizing_knows *knows)
{
    const struct nodes *nodes = r->members->nodes;
    CLEANUP_STR struct str why = STR_INIT;
    struct round mine = {0};
    uint64_t began = clock_now(), shown = began;
    for (;;) {
        CLEANUP_FREE struct round *all = NULL;
        mine.failed |= listen_a_round(r, &mine, &why) < 0;
        int error = agree_collect(nodes, 0, NULL, &mine, sizeof mine, &all);
        if (!error)
            error = look_around(r, knows, all, &mine, &why);
        if (error < 0)
            return error;
        if (error > 0) {
            say_made(r, all, began);
            return 0;
        }
        show_progress(nodes, all, began, &shown);
    }
}

int images_together(struct images *r)
{
    const struct nodes *nodes = r->members->nodes;
    CLEANUP_STR struct str why = STR_INIT;
    CLEANUP_FREE struct resizing_knows *all = NULL;
    int error = agree_collect(nodes, 0, NULL, &r->mine, sizeof r->mine, &all);
    if (!error)
        error = check_alike(nodes, all);
    if (!error)
        error = share_known(r, all);
    if (error)
        return error;
    struct span_of_nodes of = group_of(r, nodes->me);
    const struct resizing_part part = resizing_part_of(&all[of.first], of.end - of.first, nodes->me - of.first);
    say(r, RESIZING_BEGIN, &part, sizeof part); /* if it has died, the rounds will show it */
    error = await_all(r, all);
    if (!error)
        error = share_made(r);
    if (error)
        return error;
    int gone = say(r, RESIZING_END, NULL, 0);
    return agree_on(nodes, gone ? lose_resizer(r, NULL, 0, &why) : 0, &why);
}
