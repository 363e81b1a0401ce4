/* The peers of this node, as the server sees them: joins worlds, asks other nodes for what they own, answers what they
 * ask for, and goes on alone when the world is gone.
 *
 *   store ──fetch──▶ peers ══ring══▶ courier … other node's courier ══ring══▶ peers ──▶ its store
 *
 * The modules behind it, each knowing only those above it (fs/world/extents.h, layout.h and world.h: who owns what):
 *
 *   self        this node: its configuration and its store
 *   link        the ring to the courier: sends, and the threads that take what comes
 *   fetch       what this node asks others for; peer: who can be asked; unpack: what they sent
 *   serve       what others ask this node for
 *   membership  the world that this node is in, now or last, and what lives of it as long as a courier is here
 *   mover       its thread: the bytes follow when the layout has turned
 *   turn-wait   asking for a turn, and waiting for it; shelf: the last layouts
 *   talk        the conversation with the courier, which makes a world live and ends it: joining, turning, holdings
 *   listener    its thread
 *   peers       assembly, the thread that keeps time, the store's questions, and what others see of it
 *
 * Locks, all held for moments only: membership->lock, mover->lock, fetches->lock, serves->lock, link->taking,
 * link->pushing. None is taken while another is held, but `pushing`, which is innermost. Nobody calls the store
 * with one. */
#ifndef FS_WORLD_PEERS_H
#define FS_WORLD_PEERS_H

#include "fs/world/peer.h"
#include "fs/world/self.h"
#include "fs/world/turn-wait.h"
#include "fs/world/world.h"

struct peers;

int peers_create(const struct peers_config *config, struct peers **peers);
/* The store that answers peers and whose reads go to them: before anything is read. */
int peers_fill(struct peers *peers, const struct catalog *catalog, struct store *store);
/* Couriers are listened to from now on. What was not filled must have a catalog to wait for. */
int peers_start(struct peers *peers);
/* The end of the mount: couriers are told so; reads that wait for peers go to the source, and no more are taken. */
void peers_stop(struct peers *peers);
void peers_destroy(struct peers *peers); /* after the store is closed */

struct peer_view {
    struct layout_record node;
    enum peer_state state;
    struct peer_times times; /* zeros of this node itself */
    struct node_news news;
};

/* The world as it is now, or (where `state` is not joined) the last one this node was in; release it. */
struct world_view {
    enum world_state state;
    uint32_t nodes, me, groups; /* 1, 0, 1 when there never was one */
    struct digest layout;       /* zeros when there never was one */
    bool known;                 /* there is or was a world: `layout` is set */
    uint32_t courier;           /* process id; 0: none */
    uint64_t lost_bytes;        /* owned by nodes that cannot be asked now: read from the source */
    uint64_t settled;           /* the last round of staging after which it was agreed who owns what had no owner */
    bool turning;               /* another layout came into force just now, what it brings is not yet being staged */
    bool lost; /* a server before this one took another layout than this one knows of: its courier will bring it */
    uint64_t timeouts, bad; /* so far: fetches that timed out, replies that did not verify */
    const struct layout *owners;
    const struct layout *before; /* the layout that the last turn has replaced; NULL: there was none */
    struct turn_record last;     /* k = 0: none; news have those of all nodes, and how their moves go */
    struct turn_outcome failed;  /* the last turn that failed, lately and since one was taken; status 0: none */
    int unsaved;                 /* why this node cannot save the world; 0: it can */
    struct peer_view *peer;      /* nodes of them */
    void *hold;
};
int peers_view(struct peers *peers, struct world_view *view);
void peers_view_release(struct world_view *view);

/* A courier returns to a server that was restarted within some seconds: waits for that. True: it is here. */
bool peers_await_courier(struct peers *peers, bool (*gave_up)(void *user), void *user);

/* Tell all other nodes. -ENOTCONN: alone; else -errno. */
int peers_command(struct peers *peers, enum world_command command, uint64_t token);

/* What another node keeps beside samples, by its key: a piece of at most BLOB_PIECE bytes, and the length of the whole.
 * -ENOENT: it has none; -ENOTCONN: alone; -EHOSTUNREACH: it cannot be asked now; other -errno: the answer is lost. */
int peers_blob(struct peers *peers, uint32_t node, uint64_t key, uint32_t piece, void *to, uint64_t *length);

int peers_turn(struct peers *peers, const struct turn *turn, const struct turn_patience *patience,
               struct turn_record *record, struct str *trouble); /* see turn_wait */
/* A layout of this world, or of one before; other nodes are asked where it is not here. A reference. -ENOENT. */
int peers_layout(struct peers *peers, const struct digest *digest, struct layout **layout);

#endif
