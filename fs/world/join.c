/* What the courier asks while a world forms, and of the server that follows one that has died. */
#include "fs/world/talk-inside.h"

#include "fs/base/cleanup.h"
#include "fs/base/log.h"

#include <string.h>
#include <sys/uio.h>

static void fill_text(char *to, size_t n, const char *from)
{
    size_t length = strlen(from);
    memset(to, 0, n);
    memcpy(to, from, length < n ? length : n - 1);
}

static int on_hello(struct talk *t, const struct said *s)
{
    struct peers *p = t->peers;
    const struct peers_config *c = &p->config;
    struct attach_welcome w = {.version = ATTACH_VERSION, .waiting = !p->store, .options = c->options};
    size_t n = s->n < sizeof t->hello ? s->n : sizeof t->hello;
    if (n < offsetof(struct attach_hello, world)) /* so much is the same in every version */
        return -EBADMSG;
    memcpy(&t->hello, s->payload, n);
    t->hello.release[VERSION_TEXT - 1] = '\0';
    if (t->hello.version != ATTACH_VERSION)
        return talk_refuse(t, -EPROTO, "the server of %s is dealfs %s, the courier dealfs %s", c->mountpoint,
                           DEALFS_VERSION, t->hello.release);
    if (s->n != sizeof t->hello)
        return -EBADMSG;
    fill_text(w.release, sizeof w.release, DEALFS_VERSION);
    fill_text(w.node.id, sizeof w.node.id, c->id);
    fill_text(w.node.host, sizeof w.node.host, c->host);
    fill_text(w.mountpoint, sizeof w.mountpoint, c->mountpoint);
    w.peer_timeout = c->peer_timeout;
    if (p->store) {
        bool opening;
        peers_capacity(p, &w.node.capacity, &opening);
        w.catalog = *catalog_digest(c->catalog);
        w.extents = extents_count(p->extents);
    }
    t->state = TALK_GREETED;
    return attach_send(t->courier, ATTACH_WELCOME, &w, sizeof w, NULL);
}

static int on_holdings(struct talk *t)
{
    struct peers *p = t->peers;
    holdings_wait(t);
    size_t bytes = (extents_count(p->extents) + 63) / 64 * sizeof(uint64_t);
    CLEANUP_FREE uint64_t *bits = calloc(1, bytes + 1);
    struct holding holding;
    if (!bits)
        return talk_refuse(t, -ENOMEM, "the server of %s has no memory", p->config.mountpoint);
    int error = holdings_look(t, bits, &holding);
    if (error)
        return error;
    struct iovec part[] = {{&holding, sizeof holding}, {bits, bytes}};
    return attach_sendv(t->courier, ATTACH_HOLDINGS, part, 2, NULL);
}

/* What the frame holds, which must be exactly that many nodes and, where anything is held, holders. */
struct told_world {
    struct attach_world head;
    const struct attach_member *member;
    const uint16_t *holder; /* NULL: nobody holds anything */
};

static bool take_world(const struct said *s, uint64_t extents, struct told_world *w)
{
    if (s->n < sizeof w->head)
        return false;
    memcpy(&w->head, s->payload, sizeof w->head);
    uint64_t nodes = w->head.nodes, groups = w->head.groups, holders = w->head.held ? groups * extents : 0;
    if (!nodes || nodes > NODES_MOST || !groups || groups > nodes || w->head.me >= nodes || w->head.held > 1 ||
        holders > ATTACH_MOST || s->n != sizeof w->head + nodes * sizeof *w->member + holders * sizeof *w->holder)
        return false;
    w->member = (const struct attach_member *)((const char *)s->payload + sizeof w->head);
    w->holder = w->head.held ? (const uint16_t *)(w->member + nodes) : NULL;
    for (uint32_t i = 0; i < nodes; i++)
        if (w->member[i].node.id[NODE_ID - 1] || w->member[i].node.host[NODE_HOST - 1])
            return false;
    return true;
}
_Static_assert(sizeof(struct attach_world) % 8 == 0 && sizeof(struct attach_member) % 8 == 0, "all is aligned");

static int compute(struct peers *p, const struct told_world *w, struct directory **directory)
{
    uint32_t nodes = w->head.nodes;
    CLEANUP_FREE struct world_node *node = calloc(nodes, sizeof *node);
    CLEANUP_FREE struct holding *holding = calloc(nodes, sizeof *holding);
    if (!node || !holding)
        return -ENOMEM;
    for (uint32_t i = 0; i < nodes; i++) {
        node[i] = w->member[i].node;
        holding[i] = w->member[i].holding;
    }
    struct directory_input input = {
        .catalog = p->config.catalog,
        .extents = p->extents,
        .nodes = nodes,
        .groups = w->head.groups,
        .node = node,
        .holding = holding,
        .holder = w->holder,
    };
    return directory_compute(&input, directory);
}

/* The ring goes with the frame. */
static int make_link(struct talk *t, struct world *w, struct said *s)
{
    struct ring ring;
    int error = ring_open(&ring, steal_fd(s->fds[0]), steal_fd(s->fds[1]), steal_fd(s->fds[2]));
    if (error)
        return error;
    if (ring.nodes != w->nodes) {
        ring_close(&ring);
        return -EBADMSG;
    }
    return link_create(t->peers, w, &ring, &t->link);
}

static int on_world(struct talk *t, struct said *s)
{
    struct peers *p = t->peers;
    struct told_world told;
    struct directory *directory;
    struct world *w;
    if (!take_world(s, extents_count(p->extents), &told))
        return -EBADMSG;
    if (strcmp(told.member[told.head.me].node.id, p->config.id))
        return talk_refuse(t, -EINVAL, "node %u is not this node, %s", told.head.me, p->config.mountpoint);
    if (p->config.groups && p->config.groups != told.head.groups)
        return talk_refuse(t, -EINVAL, "%s was mounted with groups=%u, the world has %u", p->config.mountpoint,
                           p->config.groups, told.head.groups);
    int error = compute(p, &told, &directory);
    if (error)
        return talk_refuse(t, error, "compute the directory: %s", strerror(-error));
    error = world_save_directory(p->config.state, directory);
    if (error) {
        directory_close(directory);
        return talk_refuse(t, error, "save the directory in %s: %s", p->config.state, strerror(-error));
    }
    error = world_create(told.head.world, told.head.me, directory, &w);
    if (!error) {
        error = make_link(t, w, s);
        world_put(w);
    }
    if (error)
        return error == -ENOMEM ? talk_refuse(t, error, "the server of %s has no memory", p->config.mountpoint) : error;
    t->state = TALK_READY;
    t->turned = false;
    const struct digest *digest = directory_digest(t->link->world->directory);
    return attach_send(t->courier, ATTACH_DIRECTORY, digest, sizeof *digest, NULL);
}

static int go_live(struct talk *t)
{
    struct peers *p = t->peers;
    struct link *l = t->link;
    int error = world_save(p->config.state, l->world);
    if (!error)
        error = link_start(l);
    if (error)
        return talk_refuse(t, error, "join the world: %s", strerror(-error));
    t->state = TALK_LIVE;
    peers_join(p, l, t->process);
    log_info("joined: node %u of %u", l->world->me, l->world->nodes);
    error = attach_send(t->courier, ATTACH_OK, NULL, 0, NULL);
    if (!error)
        holdings_trim(t, l->world, false);
    return error;
}

/* The world that the server before this one was in, which may have dealt again since it saved it; or NULL. */
static struct world *resumed(struct talk *t, const struct attach_resume *r)
{
    struct peers *p = t->peers;
    struct world *w = peers_world(p), *turned = NULL;
    struct directory *d;
    if (!w || memcmp(w->uuid, r->world, sizeof r->world) || w->nodes != r->nodes || w->me != r->me) {
        world_put(w);
        return NULL;
    }
    if (memcmp(directory_digest(w->directory), &r->directory, sizeof r->directory) == 0)
        return w;
    if (world_open_directory(p->config.state, p->config.catalog, &r->directory, &d) == 0) {
        if (!world_is_like(w, d))
            directory_close(d);
        else if (world_create(w->uuid, w->me, d, &turned))
            turned = NULL;
    }
    t->turned = turned != NULL;
    world_put(w);
    return turned;
}

static int on_resume(struct talk *t, struct said *s)
{
    struct peers *p = t->peers;
    struct attach_resume r;
    if (s->n != sizeof r)
        return -EBADMSG;
    memcpy(&r, s->payload, sizeof r);
    struct world *w = resumed(t, &r);
    if (!w)
        return talk_refuse(t, -ESTALE, "%s is in another world, or in none", p->config.mountpoint);
    int error = make_link(t, w, s);
    world_put(w);
    return error ? error : go_live(t);
}

static int on_catalog(struct talk *t, const struct said *s)
{
    const struct peers_config *c = &t->peers->config;
    if (!s->n || memchr(s->payload, 0, s->n))
        return -EBADMSG;
    int error = c->install(c->user, s->payload);
    if (error)
        return talk_refuse(t, error, "%s: install the catalog %s: %s", c->mountpoint, (const char *)s->payload,
                           strerror(-error));
    return attach_send(t->courier, ATTACH_OK, NULL, 0, NULL);
}

int join_answer(struct talk *t, struct said *s)
{
    bool filled = t->peers->store;
    if (s->kind == ATTACH_HELLO && t->state <= TALK_GREETED)
        return on_hello(t, s);
    if (s->kind == ATTACH_CATALOG && t->state == TALK_GREETED && !filled)
        return on_catalog(t, s);
    if (s->kind == ATTACH_HOLDINGS && t->state == TALK_GREETED && filled)
        return on_holdings(t);
    if (s->kind == ATTACH_WORLD && t->state == TALK_GREETED && filled)
        return on_world(t, s);
    if (s->kind == ATTACH_LIVE && t->state == TALK_READY)
        return go_live(t);
    if (s->kind == ATTACH_RESUME && t->state == TALK_GREETED && filled)
        return on_resume(t, s);
    return -EBADMSG;
}
