/* A node of the simulation: a process for its server (the real store, peers and control), one for its courier (the real
 * one, above net.h), and the state that outlives them: unanswered requests, like those in the slots of a mount. */
#ifndef TESTS_SIM_NODE_H
#define TESTS_SIM_NODE_H

#include "fs/attach/config.h"
#include "fs/store/store.h"
#include "fs/wire/handover.h"
#include "fs/world/peers.h"
#include "mpi/spoil.h"
#include "tests/fs/store/dataset.h"
#include "tests/sim/net.h"

struct control;

enum { SIM_SOURCE_THREADS = 4 };

/* What a seed is played with. */
struct sim_options {
    uint64_t seed;
    uint32_t nodes, readers;
    uint32_t faults; /* at most this number; 0: none */
    uint32_t seconds;
    bool history;
    bool rocks;      /* segments are stored by RocksDB */
    bool large;      /* there are large files */
    const char *bug; /* NULL: none */
};
bool bug_is_planted(const char *name); /* bugs.c */

/* What waits for other nodes has threads of its own, as in fs/control/workers.c. */
enum request_kind { REQUEST_READ, REQUEST_TURN, REQUEST_OTHER, REQUEST_KINDS };

/* A READ or a request of the control mount, the asker's; it lives until `over`. */
struct sim_request {
    TAILQ_ENTRY(sim_request) next;
    bool over, taken; /* taken: a server has it */
    bool fed;         /* the feeder's */
    int error;
    uint64_t began, stopped, losses; /* of its node, by then */
    /* a READ: */
    struct span span;
    bool right;
    enum place place;
    /* or a request: */
    const char *text; /* NULL: a READ */
    struct str reply;
};
TAILQ_HEAD(sim_requests, sim_request);

struct sim_queue {
    struct sim_requests waiting;
    struct sim_node *node;
};

struct sim_node {
    uint32_t number, groups; /* groups: of the world, the same for all */
    char state[128], ram[128], ssd[128], id[NODE_ID], host[32];
    struct mount_config mount;
    uint64_t ram_bytes, ssd_bytes;
    bool ample; /* its tiers have room for all */
    int zstd;
    char faults[192]; /* of its source: fs/store/fault.c */
    struct sim_process *server, *courier, *clients;
    struct sim_queue queue[REQUEST_KINDS];
    struct sim_requests taken;
    uint32_t generation;
    bool waits;                          /* for a catalog, which its first world brings */
    bool bare;                           /* it has no server before its first world mounts it */
    bool serving;                        /* the server has started, */
    uint64_t serving_since;              /* when it did last */
    bool stopping;                       /* its server is to end in order, */
    bool ended;                          /* and has */
    uint64_t fails_until, changes_until; /* its source fails with EIO, or ESTALE, or did so lately */
    int disk_error;                      /* what its writes fail with */
    uint64_t disk_until;
    uint64_t lack_until; /* of memory */
    /* For how long it has had no server, or one that was stopped; since when now: 0: it has one. */
    uint64_t stopped, stopped_at;
    uint64_t losses; /* of servers that served */
    struct staging staging;
    struct world_mark mark;
    struct store *store;
    struct peers *peers;
    struct control *control;
    struct net_world *world;
    uint32_t rank;
    bool courier_over;
    struct spoil spoil; /* its courier's answers */
    /* as it was looked at last: */
    uint64_t seen_turn;
    uint32_t seen_generation;
    const struct net_world *seen_world;
};

extern struct sim_node sim_nodes[NET_NODES];
extern const struct sim_options *sim_options;
extern struct dataset sim_dataset;

void node_init(uint32_t number, const char *directory);
void node_start_server(struct sim_node *n); /* returns before it serves */
void node_goes_on(struct sim_node *n);      /* its server, which was stopped */
/* The server is gone: what it had in progress waits for the next one. */
void node_lose_server(struct sim_node *n);
bool node_serves(void *node); /* for sim_wait */
/* Couriers of all nodes: a world forms. */
void nodes_join(bool strangers);    /* strangers: one of them may not join */
bool nodes_have_left(void *unused); /* for sim_wait: all couriers have ended */
bool nodes_joined(void);
/* Some nodes have no catalog at first, as with wait_join, and some no server, as before `mpirun dealfs mount`; others
 * have this file. Before servers start. */
void nodes_lack(const char *catalog);
void nodes_await_mounts(void);      /* after nodes_join */
void node_stop(struct sim_node *n); /* in order; returns when all of its threads have ended */

void node_begin(struct sim_node *n, struct sim_request *request);
void node_await(struct sim_request *request);                   /* until it is answered */
void node_ask(struct sim_node *n, struct sim_request *request); /* both */

#endif
