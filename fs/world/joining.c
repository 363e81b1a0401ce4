#include "fs/world/joining.h"

#include "fs/base/cleanup.h"
#include "fs/base/log.h"
#include "fs/world/holdings.h"
#include "fs/world/sharing.h"
#include "fs/world/turning.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

static int refuse_for_memory(const struct talk *t)
{
    return talk_refuse(t->courier, -ENOMEM, "the server of %s is out of memory", t->self->config.mountpoint);
}

static int on_hello(struct talk *t, const struct talk_frame *f)
{
    const struct self *self = t->self;
    const struct peers_config *c = &self->config;
    struct message_welcome w = {.version = MESSAGE_VERSION, .waiting = !self->store, .options = c->options};
    struct message_hello hello = {0};
    if (f->n < offsetof(struct message_hello, world)) /* this much is the same in every version */
        return -EBADMSG;
    memcpy(&hello, f->payload, f->n < sizeof hello ? f->n : sizeof hello);
    hello.release[VERSION_TEXT - 1] = '\0';
    if (hello.version != MESSAGE_VERSION)
        return talk_refuse(t->courier, -EPROTO, "the server of %s is dealfs %s, the courier dealfs %s", c->mountpoint,
                           version_text, hello.release);
    if (f->n != sizeof hello)
        return -EBADMSG;
    snprintf(w.release, sizeof w.release, "%s", version_text);
    snprintf(w.node.id, sizeof w.node.id, "%s", c->id);
    snprintf(w.node.host, sizeof w.node.host, "%s", c->host);
    w.peer_timeout = c->peer_timeout;
    w.resize = c->resize;
    w.quality = c->quality;
    if (self->store) {
        w.node.capacity = holdings_capacity(self);
        w.catalog = *catalog_digest(c->catalog);
        w.versions = *catalog_versions(c->catalog);
        w.extents = extents_count(self->extents);
    }
    t->state = TALK_GREETED;
    return message_send(t->courier, MESSAGE_WELCOME, &w, sizeof w, NULL);
}

static int on_holdings(struct talk *t)
{
    const struct self *self = t->self;
    holdings_wait(t);
    size_t bytes = claims_words(extents_count(self->extents)) * sizeof(uint64_t);
    CLEANUP_FREE uint64_t *claims = calloc(1, bytes + 1);
    struct holding holding;
    if (!claims)
        return refuse_for_memory(t);
    CLEANUP_WORLD struct world *last = membership_world(t->membership);
    int error = holdings_look(t, last, claims, &holding);
    if (error)
        return error;
    struct iovec part[] = {{&holding, sizeof holding}, {claims, bytes}};
    return message_sendv(t->courier, MESSAGE_HOLDINGS, part, 2, NULL);
}

/* The payload of the frame. It must have exactly this many nodes and, if any extent has a holder, holders. */
struct told_world {
    struct message_world head;
    const struct message_member *member;
    const uint16_t *holder; /* NULL: no extent has a holder */
};

static bool take_world(const struct talk_frame *f, uint64_t extents, struct told_world *w)
{
    if (f->n < sizeof w->head)
        return false;
    memcpy(&w->head, f->payload, sizeof w->head);
    uint64_t nodes = w->head.nodes, groups = w->head.groups, holders = w->head.held ? groups * extents : 0;
    bool sized = nodes && nodes <= NODES_MOST && groups && groups <= nodes && groups <= GROUPS_MOST;
    if (!sized || w->head.me >= nodes || w->head.held > 1 || holders > MESSAGE_HOLDERS_MOST ||
        f->n != sizeof w->head + nodes * sizeof *w->member + holders * sizeof *w->holder)
        return false;
    w->member = (const struct message_member *)((const char *)f->payload + sizeof w->head);
    w->holder = w->head.held ? (const uint16_t *)(w->member + nodes) : NULL;
    for (uint32_t i = 0; i < nodes; i++)
        if (w->member[i].node.id[NODE_ID - 1] || w->member[i].node.host[NODE_HOST - 1])
            return false;
    return true;
}
_Static_assert(sizeof(struct message_world) % 8 == 0 && sizeof(struct message_member) % 8 == 0, "all is aligned");

/* Make the world that the courier describes, with its layout. On failure the courier gets the reason. */
static int make_world(struct talk *t, const struct told_world *told, struct world **world)
{
    const struct self *self = t->self;
    struct layout_input input = {
        .catalog = self->config.catalog,
        .extents = self->extents,
        .nodes = told->head.nodes,
        .groups = told->head.groups,
        .member = told->member,
        .holder = told->holder,
    };
    struct layout *layout;
    int error = layout_compute(&input, &layout);
    if (error)
        return talk_refuse(t->courier, error, "compute the layout: %s", strerror(-error));
    error = world_create(told->head.world, told->head.me, layout, world);
    return error ? refuse_for_memory(t) : 0;
}

/* The frame brings the ring. */
static int make_living(struct talk *t, struct world *w, struct talk_frame *f)
{
    struct ring ring;
    int error = ring_open(&ring, f->fds);
    memset(f->fds, 0xff, RING_FDS * sizeof *f->fds);
    if (error)
        return error;
    if (ring.nodes != w->nodes) {
        ring_close(&ring);
        return -EBADMSG;
    }
    error = living_create(t->self, w, &ring, t->wake, &t->living);
    return error == -ENOMEM ? refuse_for_memory(t) : error;
}

static int on_world(struct talk *t, struct talk_frame *f)
{
    const struct peers_config *c = &t->self->config;
    struct told_world told;
    CLEANUP_WORLD struct world *w = NULL;
    if (!take_world(f, extents_count(t->self->extents), &told))
        return -EBADMSG;
    if (strcmp(told.member[told.head.me].node.id, c->id))
        return talk_refuse(t->courier, -EINVAL, "the courier of node %u belongs to another mount, not to %s",
                           told.head.me, c->mountpoint);
    if (c->groups && c->groups != told.head.groups)
        return talk_refuse(t->courier, -EINVAL, "%s was mounted with groups=%u, the world has %u", c->mountpoint,
                           c->groups, told.head.groups);
    int error = make_world(t, &told, &w);
    if (error)
        return error;
    error = make_living(t, w, f);
    if (!error) {
        t->state = TALK_READY;
        atomic_store(&t->self->moved, 0);
        error = talk_say_layout(t, MESSAGE_LAYOUT, layout_digest(w->layout), sizeof(struct digest), w->layout);
    }
    return error;
}

static int go_live(struct talk *t)
{
    struct living *l = t->living;
    int error = link_start(&l->link);
    if (error)
        return talk_refuse(t->courier, error, "join the world: %s", strerror(-error));
    t->state = TALK_LIVE;
    membership_join(t->membership, l, t->process);
    atomic_store(&t->self->joined, true);
    log_info("joined: node %u of %u", l->world->me, l->world->nodes);
    if (t->self->config.joined)
        t->self->config.joined(t->self->config.user);
    error = message_send(t->courier, MESSAGE_OK, NULL, 0, NULL);
    talk_save(t);
    if (!error)
        error = sharing_offer(t);
    if (!error && l->world->last.k == 0) /* after a turn, the new owners first confirm what they have */
        holdings_trim(t, l->world);
    return error;
}

static bool is_world(const struct world *w, const struct message_resume *r)
{
    return memcmp(w->uuid, r->world, sizeof r->world) == 0;
}

/* The previous server's world as it is now; it may have turned since. NULL: none. */
static struct world *resumed_world(struct talk *t, const struct message_resume *r, const int fds[MESSAGE_FDS])
{
    if (membership_is_other(t->membership, r->world))
        return NULL;
    struct world *w = membership_world(t->membership), *now;
    if (w && is_world(w, r) && w->last.k == r->last.k && layout_is(w->layout, &r->layout))
        return w;
    world_put(w);
    struct layout *layout = talk_find_layout(t, fds[RING_FDS], &r->layout), *before = NULL, *earlier = NULL;
    if (!layout || layout_nodes(layout) != r->nodes || world_create(r->world, r->me, layout, &now))
        return NULL;
    if (r->last.k)
        before = talk_find_layout(t, fds[RING_FDS + 1], &r->last.before);
    if (r->last.k > 1)
        earlier = talk_find_layout(t, -1, &r->last.earlier);
    if (world_recall(now, &r->last, before, earlier)) {
        world_put(now);
        return NULL;
    }
    return now;
}

static int on_resume(struct talk *t, struct talk_frame *f)
{
    struct message_resume r;
    if (f->n != sizeof r)
        return -EBADMSG;
    memcpy(&r, f->payload, sizeof r);
    CLEANUP_WORLD struct world *w = resumed_world(t, &r, f->fds);
    if (!w)
        return talk_refuse(t->courier, -ESTALE, "%s is in another world, or neither it nor its courier has the layout",
                           t->self->config.mountpoint);
    CLEANUP_WORLD struct world *last = membership_world(t->membership);
    bool turned = w->last.k && (!last || !is_world(last, &r) || last->last.k != w->last.k);
    int error = make_living(t, w, f);
    if (!error)
        error = go_live(t);
    if (!error && turned)
        turning_follow(t, w);
    return error;
}

static int on_catalog(struct talk *t, const struct talk_frame *f)
{
    const struct peers_config *c = &t->self->config;
    if (!f->n || memchr(f->payload, 0, f->n))
        return -EBADMSG;
    CLEANUP_STR struct str why = STR_INIT;
    int error = c->install(c->user, f->payload, &why);
    if (error)
        return talk_refuse(t->courier, error, "%s: install the catalog %s: %s", c->mountpoint, (const char *)f->payload,
                           why.length ? why.data : strerror(-error));
    return message_send(t->courier, MESSAGE_OK, NULL, 0, NULL);
}

static int on_resize(struct talk *t, const struct talk_frame *f)
{
    const struct peers_config *c = &t->self->config;
    if (!f->n || memchr(f->payload, 0, f->n) || f->fds[0] < 0)
        return -EBADMSG;
    int error = c->resizes ? c->resizes(c->user, f->payload, f->fds[0]) : -EOPNOTSUPP;
    if (error)
        return talk_refuse(t->courier, error, "%s: resize images: %s", c->mountpoint, strerror(-error));
    return message_send(t->courier, MESSAGE_OK, NULL, 0, NULL);
}

int joining_answer(struct talk *t, struct talk_frame *f)
{
    bool filled = t->self->store;
    if (f->kind == MESSAGE_HELLO && t->state <= TALK_GREETED)
        return on_hello(t, f);
    if (f->kind == MESSAGE_CATALOG && t->state == TALK_GREETED && !filled)
        return on_catalog(t, f);
    if (f->kind == MESSAGE_RESIZE && t->state == TALK_GREETED && !filled)
        return on_resize(t, f);
    if (f->kind == MESSAGE_HOLDINGS && t->state == TALK_GREETED && filled)
        return on_holdings(t);
    if (f->kind == MESSAGE_WORLD && t->state == TALK_GREETED && filled)
        return on_world(t, f);
    if (f->kind == MESSAGE_LIVE && t->state == TALK_READY)
        return go_live(t);
    if (f->kind == MESSAGE_RESUME && t->state == TALK_GREETED && filled)
        return on_resume(t, f);
    return -EBADMSG;
}
