/* `exchange` and `shuffle`: samples move to other nodes. A request waits until all nodes have the next layout, with a
 * timeout. The bytes follow after its reply (`move` of `status`). */
#include "fs/control/control-private.h"
#include "fs/control/verbs.h"
#include "fs/control/world-view.h"

#include "fs/base/clock.h"
#include "fs/base/json.h"
#include "fs/plan/exchange-request.h"
#include "fs/world/extents.h"

#include <inttypes.h>

/* How much a turn moves, in all groups together. A sample moves with its first extent. */
struct moved {
    bool known; /* both layouts still exist */
    uint64_t samples, bytes;
};

static void count_moved(const struct extents *extents, const struct layout *before, const struct layout *after,
                        struct moved *moved)
{
    for (uint64_t e = 0; e < extents_count(extents); e++)
        for (uint32_t g = 0; g < layout_groups(after); g++) {
            uint64_t from, to;
            if (layout_owner(before, g, e) == layout_owner(after, g, e))
                continue;
            extents_file(extents, e, &from, &to);
            moved->samples += from == 0;
            moved->bytes += to - from;
        }
}

static struct moved find_moved(const struct control *control, const struct turn_record *record)
{
    struct peers *peers = control->config.peers;
    struct moved moved = {.known = true};
    struct layout *before = NULL, *after = NULL;
    if (digest_equal(&record->before, &record->after))
        return moved;
    moved.known =
        peers_layout(peers, &record->before, &before) == 0 && peers_layout(peers, &record->after, &after) == 0;
    if (moved.known)
        count_moved(control->extents, before, after, &moved);
    layout_close(before);
    layout_close(after);
    return moved;
}

static uint32_t count_nodes(struct control *control)
{
    CLEANUP_WORLD_VIEW struct world_view view = world_view_get(control);
    return view.nodes;
}

static void reply_turn(uint32_t nodes, const struct turn_record *record, const struct moved *moved, struct str *reply)
{
    struct json json = {.out = reply};
    char layout[DIGEST_TEXT];
    json_begin_object(&json, NULL);
    json_uints(&json, {"nodes", nodes}, {"turn", record->k});
    json_string(&json, "layout", record->k ? digest_format(&record->after, layout) : NULL);
    if (moved->known) {
        json_uint(&json, "samples", moved->samples);
        json_uint(&json, "bytes", moved->bytes);
    }
    json_end_object(&json);
    str_adds(reply, "\n");
}

static int run_turn(struct control *control, const struct turn *turn, uint64_t seconds, const struct asker *asker)
{
    struct turn_patience patience = {clock_now() + seconds * SECOND, asker->gave_up, asker->user};
    struct turn_record record = {0};
    struct moved moved = {.known = true};
    int error = world_view_await(control, asker, asker->why);
    if (error)
        return error;
    uint32_t nodes = count_nodes(control);
    error = nodes > 1 ? peers_turn(control->config.peers, turn, &patience, &record, asker->why) : 0;

    if (error)
        return error;
    if (record.k)
        moved = find_moved(control, &record);
    reply_turn(nodes, &record, &moved, asker->reply);
    return 0;
}

static int exchange_run(struct control *control, const struct request *request, const struct asker *asker)
{
    struct exchange_request wanted = {0};
    int error = exchange_request_parse(exchange_keys, request->value, &wanted, asker->why);
    const struct turn turn = {TURN_EXCHANGE, wanted.fraction, wanted.epoch, wanted.seed};
    return error ? error : run_turn(control, &turn, wanted.wait, asker);
}

const struct verb verb_exchange = {
    .name = "exchange",
    .about = "move a part of each node's samples; reply: JSON, when the owners have changed",
    .keys = exchange_keys,
    .run = exchange_run,
};

static int shuffle_run(struct control *control, const struct request *request, const struct asker *asker)
{
    struct exchange_request wanted = {0};
    int error = exchange_request_parse(shuffle_keys, request->value, &wanted, asker->why);
    const struct turn turn = {TURN_SHUFFLE, TURN_WHOLE, 0, wanted.seed};
    return error ? error : run_turn(control, &turn, wanted.wait, asker);
}

const struct verb verb_shuffle = {
    .name = "shuffle",
    .about = "move all samples to random nodes; reply: as for `exchange`",
    .keys = shuffle_keys,
    .run = shuffle_run,
};
