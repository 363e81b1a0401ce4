#include "fs/world/turning.h"

#include "fs/base/cleanup.h"
#include "fs/base/halt.h"
#include "fs/base/log.h"
#include "fs/world/holdings.h"
#include "fs/world/sharing.h"

#include <errno.h>
#include <string.h>

enum { WORTHWHILE = 64 };

static int take_turn(const struct talk_frame *f, size_t more, struct message_turn *m)
{
    if (f->n != sizeof *m + more)
        return -EBADMSG;
    memcpy(m, f->payload, sizeof *m);
    return turn_is_sound(&m->turn) ? 0 : -EBADMSG;
}

static int on_begin(struct talk *t, const struct talk_frame *f)
{
    struct message_turn m;
    int error = take_turn(f, 0, &m);
    if (error)
        return error;
    halt_at("begin");
    CLEANUP_WORLD struct world *w = membership_world(t->membership);
    struct message_ready ready = {.number = m.number};
    if (m.k != w->last.k + 1) {
        ready.status = -ESTALE;
    } else if (atomic_load(&t->self->moved) < w->last.k) {
        ready.status = -EBUSY;
    } else if (m.turn.cause == TURN_ROOM) {
        holdings_wait(t);
        error = holdings_room(t, w, &ready.room);
    }
    return error ? error : message_send(t->courier, MESSAGE_READY, &ready, sizeof ready, NULL);
}

static uint64_t owned_by_all(const struct layout *layout)
{
    uint64_t bytes = 0;
    for (uint32_t node = 0; node < layout_nodes(layout); node++)
        bytes += layout_owned(layout, node);
    return bytes;
}

/* The same result on all nodes. */
static bool is_worthwhile(const struct layout *before, const struct layout *after)
{
    uint64_t had = owned_by_all(before), has = owned_by_all(after);
    return has > had && (has - had >= had / WORTHWHILE || layout_unowned(after) == 0);
}

static int compute_by_room(struct talk *t, struct layout *now, const uint64_t *room, struct layout **next)
{
    int error = layout_extend(now, t->self->extents, room, next);
    if (error || is_worthwhile(now, *next))
        return error;
    layout_close(*next);
    *next = layout_get(now);
    return 0;
}

static int compute_next(struct talk *t, const struct world *w, const struct turn *turn, const uint64_t *room)
{
    struct layout *next;
    int error = turn->cause == TURN_ROOM ? compute_by_room(t, w->layout, room, &next)
                                         : layout_exchange(w->layout, t->self->extents, turn, &next);
    if (!error)
        t->computed = next;
    return error;
}

static int on_compute(struct talk *t, const struct talk_frame *f)
{
    CLEANUP_WORLD struct world *w = membership_world(t->membership);
    struct message_turn m;
    int error = take_turn(f, w->nodes * sizeof(uint64_t), &m);
    layout_close(steal_pointer(t->computed));
    if (!error) {
        struct message_computed computed = {.number = m.number};
        halt_at("compute");
        computed.status = m.k == w->last.k + 1
                              ? compute_next(t, w, &m.turn, (const void *)((const char *)f->payload + sizeof m))
                              : -ESTALE;
        if (computed.status) /* then no node turns */
            log_error("compute the next layout: %s", strerror(-computed.status));
        else
            computed.layout = *layout_digest(t->computed);
        error = talk_say_layout(t, MESSAGE_COMPUTED, &computed, sizeof computed, t->computed);
        halt_at("computed");
    }
    return error;
}
_Static_assert(sizeof(struct message_turn) % sizeof(uint64_t) == 0, "rooms are aligned");

/* A server that started meanwhile has not computed the layout: then the frame brings its bytes. */
static int turn_to(struct talk *t, const struct world *before, const struct turn_record *record, int bytes)
{
    bool ours = t->computed && layout_is(t->computed, &record->after);
    struct layout *layout = ours ? steal_pointer(t->computed) : talk_find_layout(t, bytes, &record->after);
    struct world *after;
    int error = layout ? world_turn(before, layout, record, &after) : -EBADMSG;
    if (error)
        return error;
    halt_at("settled");
    membership_turn(t->membership, after);
    halt_at("taken");
    turning_follow(t, after);
    talk_save(t);
    halt_at("saved");
    world_put(after);
    return 0;
}

void turning_follow(struct talk *t, const struct world *w)
{
    const struct turn_record *last = &w->last;
    bool more = last->turn.cause == TURN_ROOM && !digest_equal(&last->before, &last->after);
    int error = more ? store_stage_again(t->self->store, last->turn.epoch + 2) : 0;
    if (error)
        log_error("stage the samples that this node now owns: %s", strerror(-error));
    membership_settle(t->membership, &last->turn);
}

/* A turn that failed, or that a server learned of when it resumed, changes no layout. */
static int on_settled(struct talk *t, const struct talk_frame *f)
{
    struct turn_outcome outcome;
    int error = 0;
    if (f->n != sizeof outcome)
        return -EBADMSG;
    memcpy(&outcome, f->payload, sizeof outcome);
    if (!turn_is_sound(&outcome.record.turn) || outcome.status > 0)
        return -EBADMSG;
    CLEANUP_WORLD struct world *w = membership_world(t->membership);
    if (outcome.status)
        membership_fail(t->membership, &outcome);
    if (!outcome.status && outcome.record.k > w->last.k)
        error = turn_to(t, w, &outcome.record, f->fds[0]);
    else
        membership_settle(t->membership, &outcome.record.turn);
    layout_close(steal_pointer(t->computed));
    return error;
}

int turning_answer(struct talk *t, const struct talk_frame *f)
{
    switch (f->kind) {
    case MESSAGE_BEGIN:
        return on_begin(t, f);
    case MESSAGE_COMPUTE:
        return on_compute(t, f);
    case MESSAGE_SETTLED:
        return on_settled(t, f);
    case MESSAGE_SEGMENT:
        return sharing_answer(t, f);
    default:
        return -EBADMSG;
    }
}
