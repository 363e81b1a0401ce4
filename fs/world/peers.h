/* The peers of this node, as the server sees them. This module joins worlds, asks other nodes for the data that they
 * own, answers their questions, and continues alone when the world has ended.
 *
 *   store ──fetch──▶ peers ══ring══▶ courier … other node's courier ══ring══▶ peers ──▶ its store
 *
 * The modules behind it. Each knows only those above it, and extents, layout and world (which node owns what):
 *
 *   self        this node: its configuration and its store
 *   link        the ring to the courier: sends messages; has the threads that receive them
 *   fetch       questions to other nodes; peer: which nodes can be asked; receive: checks what they sent
 *   serve       answers to other nodes
 *   membership  the current or last world, and its living part while a courier is connected
 *   mover       a thread that moves bytes to their new owners after a turn
 *   turn-wait   requests a turn and waits for it; shelf: the last layouts
 *   talk        the conversation with the courier, which begins and ends a living world: joining, turning, sharing,
 *               holdings
 *   listener    the thread of that conversation
 *   peers       assembly, the timer thread, the store's questions, views for status
 *
 * Locks, all held briefly: membership->lock, mover->lock, fetches->lock, serves->lock, link->taking, link->pushing.
 * Only `pushing` may be taken while another one is held; it is innermost. No lock is held while the store is called. */
#ifndef FS_WORLD_PEERS_H
#define FS_WORLD_PEERS_H

#include "fs/world/peer.h"
#include "fs/world/self.h"
#include "fs/world/turn-wait.h"
#include "fs/world/world.h"

struct peers;

int peers_create(const struct peers_config *config, struct peers **peers);
/* Connects the peers with the store. Call it before anything is read. */
int peers_fill(struct peers *peers, const struct catalog *catalog, struct store *store);
/* From now on couriers are answered. Without peers_fill, there must be a catalog to wait for. */
int peers_start(struct peers *peers);
/* The mount ends: couriers are informed, waiting reads go to the source, new questions are rejected. */
void peers_stop(struct peers *peers);
void peers_destroy(struct peers *peers); /* call it after the store is closed */

struct peer_view {
    struct layout_record node;
    enum peer_state state;
    struct peer_times times; /* zeros for this node */
    struct node_news news;
};

/* A view of the current world or, if `state` is not joined, of the last one. Release it. */
struct world_view {
    enum world_state state;
    uint32_t nodes, me, groups; /* 1, 0, 1 if there never was a world */
    struct digest layout;       /* zeros if there never was a world */
    bool known;                 /* there is or was a world: `layout` is set */
    uint32_t courier;           /* its process id; 0: none */
    uint64_t lost_bytes;        /* bytes owned by nodes that cannot be asked now: read from the source */
    uint64_t settled;           /* the last round of staging after which owners were agreed for extents without one */
    bool turning;               /* a new layout is in force, and its extents are not being staged yet */
    bool lost;              /* a previous server took a layout that this one does not know: its courier will bring it */
    uint64_t timeouts, bad; /* totals: fetches that timed out, answers that failed verification */
    const struct layout *owners;
    const struct layout *before; /* the layout before the last turn; NULL: none */
    struct turn_record last;     /* k = 0: none. `news` has the turns and moves of all nodes */
    struct turn_outcome failed;  /* the last turn that failed since one was taken; status 0: none */
    int unsaved;                 /* errno of the failed save of this world; 0: saved */
    struct peer_view *peer;      /* `nodes` elements */
    void *hold;
};
int peers_view(struct peers *peers, struct world_view *view);
void peers_view_release(struct world_view *view);

/* After a server restart the courier reconnects within seconds: wait for it. True: it is connected. */
bool peers_await_courier(struct peers *peers, bool (*gave_up)(void *user), void *user);

/* Send a command to all other nodes. -ENOTCONN: this node is alone; else -errno. */
int peers_command(struct peers *peers, enum world_command command, uint64_t token);

/* Fetch an object other than samples from another node: a piece of at most BLOB_PIECE bytes. `length`: of
 * the whole. -ENOENT: the node lacks it. -ENOTCONN: this node is alone. -EHOSTUNREACH: the node cannot be asked now.
 * Other -errno: the answer is lost. */
int peers_blob(struct peers *peers, const struct blob_question *question, void *to, uint64_t *length);

int peers_turn(struct peers *peers, const struct turn *turn, const struct turn_patience *patience,
               struct turn_record *record, struct str *trouble); /* see turn_wait */
/* Find a layout of this or an earlier world; other nodes are asked if necessary. A reference. -ENOENT. */
int peers_layout(struct peers *peers, const struct digest *digest, struct layout **layout);

#endif
