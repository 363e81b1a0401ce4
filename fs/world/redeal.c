/* Dealing again in a living world: when the shards have been filled and compression made room, what has no owner yet is
 * given away, and the new directory takes the place of the one before. Owners never change by this, so that the two may
 * live side by side for the moment that it takes all nodes to turn. */
#include "fs/world/talk-inside.h"

#include "fs/base/cleanup.h"
#include "fs/base/log.h"

#include <errno.h>
#include <string.h>

enum { WORTHWHILE = 64 };

static int on_room(struct talk *t, const struct said *s)
{
    struct attach_room r;
    if (s->n != sizeof r.number)
        return -EBADMSG;
    memcpy(&r.number, s->payload, sizeof r.number);
    struct world *w = peers_world(t->peers);
    holdings_wait(t);
    holdings_trim(t, w, true);
    int error = holdings_room(t, w, &r.room);
    world_put(w);
    return error ? error : attach_send(t->courier, ATTACH_ROOM, &r, sizeof r, NULL);
}

static uint64_t owned_by_all(const struct directory *d)
{
    uint64_t bytes = 0;
    for (uint32_t node = 0; node < directory_nodes(d); node++)
        bytes += directory_owned(d, node, NULL);
    return bytes;
}

/* The same on all nodes. */
static bool is_worthwhile(const struct directory *before, const struct directory *after)
{
    uint64_t had = owned_by_all(before), has = owned_by_all(after);
    return has > had && (has - had >= had / WORTHWHILE || directory_unowned(after) == 0);
}

/* What would follow the world's directory: `computed`, or NULL where that one stays. */
static int compute(struct talk *t, const struct world *w, const uint64_t *room)
{
    struct directory *d;
    int error = directory_extend(w->directory, t->peers->extents, room, &d);
    if (error)
        return error;
    if (!is_worthwhile(w->directory, d)) {
        directory_close(d);
        return 0;
    }
    error = world_save_directory(t->peers->config.state, d);
    if (error) {
        directory_close(d);
        return error;
    }
    t->computed = d;
    return 0;
}

static int on_deal(struct talk *t, const struct said *s)
{
    struct attach_dealt dealt = {0};
    const uint64_t *word = s->payload; /* the number, then each node's room */
    struct world *w = peers_world(t->peers);
    int error = s->n == (w->nodes + UINT64_C(1)) * sizeof *word ? 0 : -EBADMSG;
    directory_close(t->computed);
    t->computed = NULL;
    if (!error) {
        dealt.number = word[0];
        error = compute(t, w, word + 1);
        if (error) /* nobody turns then */
            log_error("deal what has no owner: %s", strerror(-error));
        else
            dealt.directory = *directory_digest(t->computed ? t->computed : w->directory);
        error = attach_send(t->courier, ATTACH_DEALT, &dealt, sizeof dealt, NULL);
    }
    world_put(w);
    return error;
}

static bool is_digest(const struct directory *d, const struct digest *digest)
{
    return d && memcmp(directory_digest(d), digest, sizeof *digest) == 0;
}

/* A server that was started meanwhile finds it where the one before has saved it. */
static int find(struct talk *t, const struct digest *digest, struct directory **d)
{
    if (is_digest(t->computed, digest)) {
        *d = steal_pointer(t->computed);
        return 0;
    }
    return world_open_directory(t->peers->config.state, t->peers->config.catalog, digest, d);
}

static int turn(struct talk *t, const struct world *before, const struct digest *digest)
{
    struct directory *d;
    struct world *w;
    int error = find(t, digest, &d);
    if (!error && !world_is_like(before, d)) {
        directory_close(d);
        error = -EBADMSG;
    }
    if (!error)
        error = world_create(before->uuid, before->me, d, &w);
    if (error)
        return error;
    error = world_save(t->peers->config.state, w);
    if (!error)
        peers_turn(t->peers, w);
    world_put(w);
    return error;
}

static int on_settled(struct talk *t, const struct said *s)
{
    struct attach_settled settled;
    if (s->n != sizeof settled)
        return -EBADMSG;
    memcpy(&settled, s->payload, sizeof settled);
    struct world *w = peers_world(t->peers);
    bool stays = is_digest(w->directory, &settled.directory);
    int error = stays ? 0 : turn(t, w, &settled.directory);
    world_put(w);
    directory_close(t->computed);
    t->computed = NULL;
    if (!error)
        peers_settle(t->peers, settled.round, !stays || t->turned);
    t->turned = false;
    return error;
}

int redeal_answer(struct talk *t, const struct said *s)
{
    switch (s->kind) {
    case ATTACH_ROOM:
        return on_room(t, s);
    case ATTACH_DEAL:
        return on_deal(t, s);
    case ATTACH_SETTLED:
        return on_settled(t, s);
    default:
        return -EBADMSG;
    }
}
