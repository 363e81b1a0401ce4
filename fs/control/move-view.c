/* Shows turn and move from a view of the world: each node's news describe its own move. */
#include "fs/control/move-view.h"

#include "fs/base/json.h"

#include <stddef.h>

#define NUMBER(member)                                                                                                 \
    {                                                                                                                  \
#member, offsetof(struct move_news, member)                                                                    \
    }
static const struct {
    const char *name;
    size_t place;
} numbers[] = {
    NUMBER(samples),       NUMBER(bytes),        NUMBER(come_samples), NUMBER(come_bytes),    NUMBER(refused_samples),
    NUMBER(refused_bytes), NUMBER(sent_samples), NUMBER(sent_bytes),   NUMBER(dropped_bytes), NUMBER(rewritten_bytes),
};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static uint64_t *number_of(struct move_news *move, int i)
{
    return (uint64_t *)(void *)((char *)move + numbers[i].place);
}

/* The move of the last turn, summed over all nodes. */
struct whole_move {
    struct move_news sum;
    uint32_t waiting_for; /* nodes whose samples have not all arrived */
};

static struct whole_move sum_up(const struct world_view *view)
{
    struct whole_move whole = {0};
    for (uint32_t node = 0; node < view->nodes && view->peer; node++) {
        struct node_news news = view->peer[node].news;
        whole.waiting_for += news.moved < view->last.k;
        if (news.turn != view->last.k) /* its numbers are those of an earlier move */
            continue;
        for (int i = 0; i < NUMBERS; i++)
            *number_of(&whole.sum, i) += *number_of(&news.move, i);
        if (news.move.nanoseconds > whole.sum.nanoseconds)
            whole.sum.nanoseconds = news.move.nanoseconds;
    }
    return whole;
}

static void add_numbers(struct json *json, struct move_news *move)
{
    for (int i = 0; i < NUMBERS; i++)
        json_uint(json, numbers[i].name, *number_of(move, i));
    json_uint(json, "elapsed", move->nanoseconds);
}

/* If some nodes cannot be asked, nothing moves. */
static const char *state_of(const struct world_view *view, const struct whole_move *whole)
{
    if (view->last.k == 0)
        return "none";
    if (whole->waiting_for == 0)
        return "done";
    return view->state == WORLD_JOINED ? "moving" : "ended";
}

static void add_turn(struct json *json, const struct world_view *view)
{
    const struct turn_record *last = view->last.k ? &view->last : NULL;
    char before[DIGEST_TEXT];
    json_begin_object(json, "turn");
    json_uint(json, "number", view->last.k);
    json_string(json, "cause", last ? turn_names[last->turn.cause] : NULL);
    if (last) {
        json_uint(json, "epoch", last->turn.epoch);
        json_fixed(json, "fraction", (double)last->turn.fraction / TURN_WHOLE, 6);
        json_uint(json, "seed", last->turn.seed);
    }
    json_string(json, "before", last ? digest_format(&last->before, before) : NULL);
    json_string(json, "failed", view->failed.status ? turn_names[view->failed.record.turn.cause] : NULL);
    json_end_object(json);
}

void move_view_add_status(struct json *json, const struct world_view *view)
{
    struct whole_move whole = sum_up(view);
    add_turn(json, view);
    json_begin_object(json, "move");
    json_string(json, "state", state_of(view, &whole));
    json_uint(json, "waiting_for", whole.waiting_for);
    add_numbers(json, &whole.sum);
    json_end_object(json);
}

void move_view_add_node(struct json *json, const struct node_news *news)
{
    struct move_news move = news->move;
    json_uints(json, {"turn", news->turn}, {"moved", news->moved});
    json_bool(json, "moving", news->moved < news->turn);
    json_begin_object(json, "move");
    add_numbers(json, &move);
    json_end_object(json);
}
