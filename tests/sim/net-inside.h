/* Shared by the files of the simulated network. */
#ifndef TESTS_SIM_NET_INSIDE_H
#define TESTS_SIM_NET_INSIDE_H

#include "mpi/post.h"
#include "tests/sim/net.h"

#include <sys/queue.h>

/* A message from post_send on. Its bytes are the sender's until it has been received, or, where it is short, left. */
struct parcel {
    STAILQ_ENTRY(parcel) next;
    uint64_t due;
    uint32_t from, to;
    int tag;
    size_t n;
    char *bytes; /* a copy; NULL: long, the sender's are read when it is received */
    struct posted *sent;
    struct net_world *world;
    bool lost; /* its sender is gone */
};
STAILQ_HEAD(parcels, parcel);

struct posted {
    STAILQ_ENTRY(posted) next;
    bool send, ended;
    struct net_rank *rank;
    void *bytes;
    size_t n, got;
    int from, tag, status;
    uint32_t source;
    post_done *done;
    void *user;
};
STAILQ_HEAD(posted_list, posted);

struct posts {
    struct net_rank *rank;
    struct posted_list list;
    unsigned sends;
};

struct net_rank {
    struct net_world *world;
    uint32_t number;
    struct sim_process *process; /* NULL: not started yet */
    struct posts *posts;
    unsigned ended;         /* of those that were posted */
    struct parcels arrived; /* and not received yet */
    int sockets, bell, signals;
    uint64_t signal_at; /* 0: none */
    bool gone;
    uint64_t gone_at;
    uint64_t round; /* of the join, that it is in */
};

struct net_world {
    uint32_t count;
    struct net_rank rank[NET_NODES];
    bool broken; /* a courier is gone, and the world had not formed */
    /* of the round that all are in: */
    uint64_t round;
    uint32_t arrived;
    char *all[2]; /* of this round, and of the one before, which some may still have to take */
    size_t n;
    uint64_t last_due[NET_NODES][NET_NODES];
    bool cut[NET_NODES][NET_NODES]; /* from, to: nothing arrives any more */
    uint32_t machines;              /* its couriers are on; those on one machine have shared memory, and bells */
    struct net_world *next;
};

extern _Thread_local struct net_rank *net_me; /* the rank of the calling courier */

void net_send(struct parcel *parcel);
void net_ended(struct posted *posted);
void net_wake(int bell); /* -1: there is none */
void net_drain(int bell);
/* Two nodes on one machine have shared memory: their messages wake no sockets. */
bool net_share_memory(const struct net_world *world, uint32_t a, uint32_t b);
uint64_t net_heard(uint32_t a, uint32_t b); /* from when on bells of two nodes reach each other */
void net_wake_sockets(const struct net_rank *to, uint32_t from);

#endif
