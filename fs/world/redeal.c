#include "fs/world/redeal.h"

#include "fs/base/cleanup.h"
#include "fs/base/log.h"
#include "fs/world/holdings.h"

#include <errno.h>
#include <string.h>

enum { WORTHWHILE = 64 };

static int on_room(struct talk *t, const struct talk_frame *f)
{
    struct message_room r;
    if (f->n != sizeof r.number)
        return -EBADMSG;
    memcpy(&r.number, f->payload, sizeof r.number);
    struct world *w = membership_world(t->membership);
    holdings_wait(t);
    holdings_trim(t, w, true);
    int error = holdings_room(t, w, &r.room);
    world_put(w);
    return error ? error : message_send(t->courier, MESSAGE_ROOM, &r, sizeof r, NULL);
}

static uint64_t owned_by_all(const struct layout *layout)
{
    uint64_t bytes = 0;
    for (uint32_t node = 0; node < layout_nodes(layout); node++)
        bytes += layout_owned(layout, node);
    return bytes;
}

/* The same on all nodes. */
static bool is_worthwhile(const struct layout *before, const struct layout *after)
{
    uint64_t had = owned_by_all(before), has = owned_by_all(after);
    return has > had && (has - had >= had / WORTHWHILE || layout_unowned(after) == 0);
}

/* What would follow the world's layout: `computed`, or NULL where that one stays. */
static int compute_next(struct talk *t, const struct world *w, const uint64_t *room)
{
    struct layout *next;
    int error = layout_extend(w->layout, t->self->extents, room, &next);
    if (error)
        return error;
    bool worthwhile = is_worthwhile(w->layout, next);
    if (worthwhile)
        error = world_save_layout(t->self->config.state, next);
    if (worthwhile && !error)
        t->computed = next;
    else
        layout_close(next);
    return error;
}

static int on_deal(struct talk *t, const struct talk_frame *f)
{
    struct message_dealt dealt = {0};
    const uint64_t *word = f->payload; /* the number, then each node's room */
    struct world *w = membership_world(t->membership);
    int error = f->n == (w->nodes + UINT64_C(1)) * sizeof *word ? 0 : -EBADMSG;
    layout_close(steal_pointer(t->computed));
    if (!error) {
        dealt.number = word[0];
        error = compute_next(t, w, word + 1);
        if (error) /* nobody turns then */
            log_error("deal what has no owner: %s", strerror(-error));
        else
            dealt.layout = *layout_digest(t->computed ? t->computed : w->layout);
        error = message_send(t->courier, MESSAGE_DEALT, &dealt, sizeof dealt, NULL);
    }
    world_put(w);
    return error;
}

/* A server that was started meanwhile finds the layout where the one before has saved it. */
static int turn_to(struct talk *t, const struct world *before, const struct digest *digest)
{
    const struct peers_config *c = &t->self->config;
    struct layout *layout;
    struct world *after;
    int error = 0;
    if (t->computed && layout_is(t->computed, digest))
        layout = steal_pointer(t->computed);
    else
        error = world_open_layout(c->state, c->catalog, digest, &layout);
    if (!error)
        error = world_turn(before, layout, &after);
    if (error)
        return error;
    error = world_save(c->state, after);
    if (!error)
        membership_turn(t->membership, after);
    world_put(after);
    return error;
}

static int on_settled(struct talk *t, const struct talk_frame *f)
{
    struct message_settled settled;
    if (f->n != sizeof settled)
        return -EBADMSG;
    memcpy(&settled, f->payload, sizeof settled);
    struct world *w = membership_world(t->membership);
    bool stays = layout_is(w->layout, &settled.layout);
    int error = stays ? 0 : turn_to(t, w, &settled.layout);
    world_put(w);
    layout_close(steal_pointer(t->computed));
    bool more = !stays || t->turned; /* is this node's now, which staging goes on with */
    t->turned = false;
    if (error)
        return error;
    int failed = more ? store_stage_again(t->self->store, settled.round + 1) : 0;
    if (failed)
        log_error("stage what has become this node's: %s", strerror(-failed));
    membership_settle(t->membership, settled.round);
    return 0;
}

int redeal_answer(struct talk *t, const struct talk_frame *f)
{
    switch (f->kind) {
    case MESSAGE_ROOM:
        return on_room(t, f);
    case MESSAGE_DEAL:
        return on_deal(t, f);
    case MESSAGE_SETTLED:
        return on_settled(t, f);
    default:
        return -EBADMSG;
    }
}
