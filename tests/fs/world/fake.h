/* A world in one process: nodes with stores and peers of their own, joined by a thread that plays all their
 * couriers. */
#ifndef TESTS_FS_WORLD_FAKE_H
#define TESTS_FS_WORLD_FAKE_H

#include "fs/wire/message.h"
#include "fs/world/peers.h"
#include "tests/fs/store/dataset.h"

enum { FAKE_NODES = 8 };

/* What the couriers do to the answers of a node, `times` times. */
enum fake_fault {
    FAKE_NONE,
    FAKE_DAMAGE,     /* a bit is flipped */
    FAKE_SHORT,      /* the length is wrong */
    FAKE_CUT,        /* a value that is said to be cut though it is not, or the other way round */
    FAKE_OTHER_FILE, /* a reply of another file */
    FAKE_NAMESAKE,   /* the first value is one of dataset's NAMESAKE_B, said to be of the file that was asked for */
    FAKE_TWICE,      /* answered twice */
    FAKE_SWALLOW,    /* never answered, nor is anything else said */
    FAKE_HOLD,       /* held back until fake_let_go */
    FAKE_GONE,       /* -EHOSTDOWN */
    FAKE_ERROR,      /* -EIO */
};

struct fake_node {
    struct peers *peers;
    struct store *store;
    char state[4096];
    char id[NODE_ID];
    const char *faults;
    uint64_t capacity;
    struct peers_config config;
    int socket; /* to its server; -1: not joined */
    struct ring ring;
    _Atomic uint32_t fault, times; /* of what this node answers */
    _Atomic uint32_t waits;        /* -EAGAINs that it said */
    _Atomic uint32_t served;       /* answers that it gave */
    _Atomic uint64_t sent;         /* bytes of these */
    _Atomic uint32_t asks;         /* questions that it asked */
    _Atomic uint32_t asks_before;  /* of them BEFORE */
    _Atomic uint32_t asks_fed;     /* of them FED */
    _Atomic uint32_t asks_many;    /* of them MANY */
    _Atomic uint32_t asks_shared;  /* of them SHARED */
    /* Its server hangs. Its courier answers only questions for one file, which is in the RAM tier. */
    _Atomic bool hangs;
    uint32_t shared;
    _Atomic uint32_t swallowed; /* questions that its server did not answer then */
    _Atomic uint32_t lists;     /* how many of its ring's lists the courier uses; 0: all of them */
    bool listed[RING_LISTS];
    _Atomic uint32_t commands;
};

struct fake {
    struct dataset *dataset;
    uint32_t nodes, groups;
    uint8_t uuid[16];
    struct fake_node node[FAKE_NODES];
    struct digest layout;
    struct turn_record last;  /* the last turn */
    int computed[FAKE_NODES]; /* the descriptors that came with the layout: of what would be, */
    int bytes[FAKE_NODES];    /* and of what is; -1: none */
    struct digest would_be[FAKE_NODES];
    _Atomic uint32_t turns_asked; /* by their servers; the last one, when there is one: */
    struct turn asked;
    uint64_t asked_k;
    _Atomic uint32_t stuck, refused; /* what came of fake_ask_silently: answers that are not sent, and -EBUSY */
};

/* Nodes with tiers of `ram` bytes each, which `faults` (or NULL) may harm. Nobody is joined. */
void fake_begin(struct fake *f, struct dataset *d, uint32_t nodes, const uint64_t *ram, uint64_t timeout,
                const char *faults);
void fake_open(struct fake *f, uint32_t node, bool restarted); /* its store and peers, as fake_begin does */
void fake_close(struct fake *f, uint32_t node);                /* and as fake_end does */
void fake_end(struct fake *f);

/* A world of all of them, in this order. The program ends when one refuses, or the layouts differ. */
void fake_join(struct fake *f, uint32_t groups);
/* The parts of the next turn, with one node's server; the last one says nothing, and may be before the server has
 * turned. Status 0 or -errno; with a `layout` as it was, or k as it is, the turn has failed. */
struct turn fake_asked(struct fake *f, uint64_t *k); /* the last one that a server asked for */
int fake_ready(struct fake *f, uint32_t node, const struct turn *turn, uint64_t *room);
int fake_compute(struct fake *f, uint32_t node, const struct turn *turn, const uint64_t *room, struct digest *layout);
void fake_settle(struct fake *f, uint32_t node, const struct turn *turn, uint64_t k, const struct digest *layout);
void fake_outcome(struct fake *f, uint32_t node, const struct turn_outcome *outcome); /* as it is */
void fake_turn(struct fake *f, const struct turn *turn); /* all of them, and waits until they have */
void fake_resume(struct fake *f, uint32_t node);         /* after its server was closed and opened again */
void fake_leave(struct fake *f, uint32_t node);          /* its courier hangs up */
void fake_let_one_go(struct fake *f);                    /* only the first of it */
void fake_swap(struct fake *f, uint32_t a, uint32_t b);  /* their numbers in the next world */
int fake_held(void);                                     /* how much is held back */
void fake_let_go(struct fake *f);                        /* what was held back arrives */
int fake_hello(struct fake *f, uint32_t node, struct message_welcome *welcome); /* a socket */
/* What a node answers to a question of node 1: the final status. */
int fake_ask(struct fake *f, uint32_t node, const struct ring_message *question); /* file, value, count, flags */
/* A question of a node whose courier is silent: its answer takes a slot and does not get away. */
void fake_ask_silently(struct fake *f, uint32_t node, uint32_t from, uint32_t file, enum fetch_flags flags);
void fake_push(struct fake *f, uint32_t node, const struct ring_message *message);

struct world_view fake_view(struct fake *f, uint32_t node); /* to be released */
uint64_t fake_turns(struct fake *f, uint32_t node);         /* that it has taken */
uint64_t fake_samples(const struct fake *f);                /* files opened at the source by all */
void fake_stats(const struct fake *f, uint32_t node, struct store_stats *stats);

#endif
