/* The world in the control mount: `nodes`, `node`, and the related parts of `status` and `metrics`. */
#include "fs/control/world-view.h"

#include "fs/control/control-private.h"
#include "fs/control/move-view.h"
#include "fs/control/protocol.h"
#include "fs/control/texts.h"

#include "fs/base/json.h"
#include "fs/wire/handover.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const peer_state_names[] = {
    [PEER_GOOD] = "joined", [PEER_SUSPECT] = "suspect", [PEER_LOST] = "lost"};

uint32_t world_view_gone(const struct world_view *view)
{
    uint32_t gone = 0;
    for (uint32_t i = 0; i < view->nodes && view->peer; i++)
        gone += i != view->me && (view->state == WORLD_ALONE || view->peer[i].state == PEER_LOST);
    return gone;
}

/* Was this node in a world that this server does not know? It has no peers, after several deaths of servers, or no
 * memory. */
static bool was_in_world(const struct control *control)
{
    const struct handover *handover = control->config.handover;
    return control->config.peers || (handover && atomic_load(&handover->mark.layout) != 0);
}

/* For users, a world that has lost a node also counts as degraded. */
struct world_view world_view_get(struct control *control)
{
    struct world_view view;
    if (!control->config.peers || peers_view(control->config.peers, &view) != 0)
        return (struct world_view){.state = WORLD_ALONE, .nodes = 1, .groups = 1, .lost = was_in_world(control)};
    if (view.state == WORLD_JOINED && world_view_gone(&view) > 0)
        view.state = WORLD_DEGRADED;
    return view;
}

void world_view_release(struct world_view *view)
{
    if (view->hold)
        peers_view_release(view);
}

static bool is_lost(struct control *control)
{
    CLEANUP_WORLD_VIEW struct world_view view = world_view_get(control);
    return view.lost;
}

int world_view_await(struct control *control, const struct asker *asker, struct str *why)
{
    if (!is_lost(control))
        return 0;
    struct peers *peers = control->config.peers;
    if (asker && peers && peers_await_courier(peers, asker->gave_up, asker->user) && !is_lost(control))
        return 0;
    return str_fail(why, -EAGAIN, "%s", CONTROL_LAYOUT_LOST);
}

/* --- a node --- */

struct node_line {
    uint32_t number;
    const char *id, *host, *state;
    uint64_t held, capacity;
    const uint64_t *reads, *bytes; /* arrays of PLACES */
    const struct node_news *news;  /* NULL: a node without a world */
    struct peer_times times;
};

static void describe_own(struct control *control, const struct world_view *view, const struct store_stats *stats,
                         struct node_line *line)
{
    line->id = control->config.mount->id;
    line->host = control->host;
    line->state = world_state_names[view->state];
    for (int i = 0; i < TIERS; i++) {
        line->held += stats->tier[i].held;
        line->capacity += stats->tier[i].capacity;
    }
    line->reads = stats->reads;
    line->bytes = stats->bytes;
}

static void describe_other(const struct world_view *view, uint32_t number, struct node_line *line)
{
    const struct peer_view *peer = &view->peer[number];
    line->id = peer->node.id;
    line->host = peer->node.host;
    line->state = peer_state_names[view->state == WORLD_ALONE ? PEER_LOST : peer->state];
    line->held = peer->news.held;
    line->capacity = peer->news.capacity ? peer->news.capacity : peer->node.capacity;
    line->reads = peer->news.reads;
    line->bytes = peer->news.bytes;
    line->times = peer->times;
}

static struct node_line describe_node(struct control *control, const struct world_view *view,
                                      const struct store_stats *stats, uint32_t number)
{
    struct node_line line = {.number = number};
    if (number == view->me || !view->peer)
        describe_own(control, view, stats, &line);
    else
        describe_other(view, number, &line);
    line.news = view->peer ? &view->peer[number].news : NULL;
    return line;
}

/* --- files --- */

int control_nodes(struct control *control, struct str *text)
{
    struct store_stats stats;
    CLEANUP_WORLD_VIEW struct world_view view = world_view_get(control);
    control_stats(control, &stats);
    for (uint32_t i = 0; i < view.nodes; i++) {
        struct node_line line = describe_node(control, &view, &stats, i);
        str_addf(text, "%u\t%s\t", i, line.id);
        str_add_printable(text, line.host, strlen(line.host));
        str_addf(text, "\t%s\t%" PRIu64 "\t%" PRIu64 "\n", line.state, line.capacity, line.held);
    }
    return text->failed ? -ENOMEM : 0;
}

int control_node(struct control *control, struct str *text)
{
    CLEANUP_WORLD_VIEW struct world_view view = world_view_get(control);
    str_addf(text, "%u\n", view.me);
    return text->failed ? -ENOMEM : 0;
}

/* --- status --- */

void world_view_add_places(struct json *j, const char *key, const uint64_t number[PLACES])
{
    json_begin_object(j, key);
    for (int i = 0; i < PLACES; i++)
        json_uint(j, place_names[i], number[i]);
    json_end_object(j);
}

static void add_line(struct json *j, const struct node_line *line)
{
    json_begin_object(j, NULL);
    json_uint(j, "node", line->number);
    json_string(j, "id", line->id);
    json_string(j, "host", line->host);
    json_string(j, "state", line->state);
    json_uints(j, {"held", line->held}, {"capacity", line->capacity});
    world_view_add_places(j, "reads", line->reads);
    world_view_add_places(j, "bytes", line->bytes);
    json_uints(j, {"answers", line->times.answers}, {"answer_us", line->times.sum / 1000});
    if (line->news)
        move_view_add_node(j, line->news);
    json_end_object(j);
}

uint64_t world_view_lost_share(const struct control *control, const struct world_view *view)
{
    uint64_t whole = control_filled(control) ? catalog_bytes(control->config.catalog) : 0;
    double share = whole ? 1000.0 * (double)view->lost_bytes / (double)whole : 0;
    return share > 1000 ? 1000 : (uint64_t)(share + 0.5);
}

static const char *host_of(const struct control *control, const struct world_view *view, uint32_t node)
{
    return node == view->me || !view->peer ? control->host : view->peer[node].node.host;
}

/* `--host`, in the order of the nodes' numbers; consecutive nodes on one host are `HOST:COUNT`. False: a host appears
 * again later, or there are too many. */
static bool add_hosts(const struct control *control, const struct world_view *view, struct str *hosts)
{
    enum { HOSTS_MOST = 64 };
    uint32_t runs = 0, next;
    for (uint32_t i = 0; i < view->nodes; i = next) {
        const char *host = host_of(control, view, i);
        for (next = i + 1; next < view->nodes && strcmp(host_of(control, view, next), host) == 0;)
            next++;
        str_addf(hosts, "%s%s", i == 0 ? "" : ",", host);
        if (next - i > 1)
            str_addf(hosts, ":%u", next - i);
        for (uint32_t other = next; other < view->nodes; other++)
            if (strcmp(host_of(control, view, other), host) == 0)
                return false;
        if (++runs > HOSTS_MOST)
            return false;
    }
    return true;
}

/* Nodes on one host have different mountpoints: if this one's ends with its number, it is replaced by %r. */
static void add_mountpoint(const struct control *control, const struct world_view *view, struct str *text)
{
    CLEANUP_STR struct str path = STR_INIT;
    const char *mountpoint = control->config.mount->mountpoint, *end = mountpoint + strlen(mountpoint);
    bool shared = false;
    char number[16];
    for (uint32_t i = 0; i < view->nodes && !shared; i++)
        shared = i != view->me && strcmp(host_of(control, view, i), control->host) == 0;
    size_t digits = (size_t)snprintf(number, sizeof number, "%u", view->me);
    bool numbered = shared && (size_t)(end - mountpoint) > digits && strcmp(end - digits, number) == 0 &&
                    !strchr("0123456789", end[-(long)digits - 1]);
    str_add(&path, mountpoint, strlen(mountpoint) - (numbered ? digits : 0));
    if (numbered)
        str_adds(&path, "%r");
    str_add_shell_quoted(text, path.failed ? "" : path.data);
}

void world_view_add_rejoin(const struct control *control, const struct world_view *view, struct str *text)
{
    CLEANUP_STR struct str hosts = STR_INIT;
    bool all = add_hosts(control, view, &hosts);
    str_addf(text, "mpirun%s --bind-to none -n %u ",
             control->config.mount->owner_uid == 0 ? " --allow-run-as-root" : "", view->nodes);
    if (all && !hosts.failed) {
        str_adds(text, "--host ");
        str_add_shell_quoted(text, hosts.data);
    } else {
        str_adds(text, "--map-by ppr:1:node");
    }
    str_adds(text, " dealfs join ");
    add_mountpoint(control, view, text);
}

static void add_lost(struct json *j, const struct control *control, const struct world_view *view)
{
    CLEANUP_STR struct str rejoin = STR_INIT;
    json_begin_object(j, "lost");
    json_uints(j, {"nodes", world_view_gone(view)}, {"bytes", view->lost_bytes});
    json_fixed(j, "percent", (double)world_view_lost_share(control, view) / 10, 1);
    if (view->state != WORLD_JOINED && view->nodes > 1)
        world_view_add_rejoin(control, view, &rejoin);
    json_string(j, "rejoin", rejoin.length && !rejoin.failed ? rejoin.data : NULL);
    json_end_object(j);
}

void world_view_add_status(struct json *j, struct control *control, const struct world_view *view,
                           const struct store_stats *stats)
{
    json_begin_array(j, "world");
    for (uint32_t i = 0; i < view->nodes; i++) {
        struct node_line line = describe_node(control, view, stats, i);
        add_line(j, &line);
    }
    json_end_array(j);
    add_lost(j, control, view);
    move_view_add_status(j, view);
    json_begin_object(j, "peers");
    json_uints(j, {"timeouts", view->timeouts}, {"bad", view->bad});
    json_end_object(j);
}
