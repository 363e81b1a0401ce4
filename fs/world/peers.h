/* The peers of this node, as the server sees them: joins worlds, asks other nodes for what they own, answers what they
 * ask for, and goes on alone when the world is gone.
 *
 *   store ──fetch──▶ peers ══ring══▶ courier … other node's courier ══ring══▶ peers ──▶ its store
 *
 * Threads: one listens on STATE/courier and holds the conversation (talk.c), one keeps time (peers.c), and while there is
 * a ring a few take what comes from it (link.c). A world and its ring are refcounted: whoever uses one holds it, so that
 * it can end at any moment. */
#ifndef FS_WORLD_PEERS_H
#define FS_WORLD_PEERS_H

#include "fs/store/store.h"
#include "fs/world/ring.h"

struct peers;

/* Borrowed, all of it, until peers_destroy. */
struct peers_config {
    const char *state;
    const struct catalog *catalog; /* NULL: the first courier brings it, see `install` */
    const char *id, *host;
    uint64_t options;      /* hash of those that must be the same everywhere */
    uint64_t peer_timeout; /* nanoseconds */
    const char *mountpoint;
    uint32_t groups; /* as this node was told; 0: as the others */
    bool restarted;  /* not the mount's first server: the world that the one before was in is still this node's */
    void (*command)(void *user, enum world_command command, uint64_t token); /* from another node */
    /* The catalog lies at `path`: put it into the state directory, open it and a store, and call peers_fill. Called once,
     * unless it fails. */
    int (*install)(void *user, const char *path);
    void *user;
};

int peers_create(const struct peers_config *config, struct peers **peers);
/* The store that answers peers and whose reads go to them: before anything is read. */
int peers_fill(struct peers *peers, const struct catalog *catalog, struct store *store);
/* Couriers are listened to from now on. What was not filled must have a catalog to wait for. */
int peers_start(struct peers *peers);
/* The end of the mount: couriers are told so; reads that wait for peers go to the source, and no more are taken. */
void peers_stop(struct peers *peers);
void peers_destroy(struct peers *peers); /* after the store is closed */

enum world_state { WORLD_ALONE, WORLD_JOINED, WORLD_DEGRADED };
extern const char *const world_state_names[]; /* "alone", "joined", "degraded" */

enum peer_state { PEER_GOOD, PEER_SUSPECT, PEER_LOST };
struct peer_view {
    struct world_node node;
    enum peer_state state;
    struct node_news news;
};

/* The world as it is now, or (where `state` is not joined) the last one this node was in; release it. */
struct world_view {
    enum world_state state;
    uint32_t nodes, me, groups; /* 1, 0, 1 when there never was one */
    struct digest directory;    /* zeros when there never was one */
    bool known;                 /* there is or was a world: `directory` is set */
    uint32_t courier;           /* process id; 0: none */
    uint64_t lost_bytes;        /* owned by nodes that cannot be asked now: read from the source */
    uint64_t settled;           /* the last round of staging after which it was agreed who owns what had no owner */
    bool turning;               /* another directory came into force just now, what it brings is not yet being staged */
    uint64_t timeouts, bad;     /* so far: fetches that timed out, replies that did not verify */
    const struct directory *owners;
    struct peer_view *peer; /* nodes of them */
    void *hold;
};
int peers_view(struct peers *peers, struct world_view *view);
void peers_view_release(struct world_view *view);

/* Tell all other nodes. -ENOTCONN: alone; else -errno. */
int peers_command(struct peers *peers, enum world_command command, uint64_t token);

#endif
