/* Shared by the files of serve: serve.c has slots and jobs, serve-reply.c makes the replies. */
#ifndef FS_WORLD_SERVE_INSIDE_H
#define FS_WORLD_SERVE_INSIDE_H

#include "fs/store/fair.h"
#include "fs/world/serve.h"

#include <pthread.h>

struct peer_question {
    uint64_t token;
    uint32_t node, file, value, count, flags;
    bool verify;                   /* the last answer was damaged */
    uint32_t head, tail;           /* number of unwanted blocks at the start and at the end */
    const struct fetch_part *part; /* the parts of FETCH_MANY */
};

/* A node that asks. */
struct serve_asker {
    int slots;
    struct fair_queue queue; /* jobs that wait for a slot */
    bool queued;             /* is in `askers` */
    TAILQ_ENTRY(serve_asker) same_queue;
};

struct serves {
    struct link *link;
    struct self *self;
    uint32_t nodes, me;

    pthread_mutex_t lock; /* guards all fields below */
    bool over;
    struct world *world; /* the world whose layout answers what is stored; NULL: not yet */
    int free;
    uint32_t free_slot[RING_OUT];
    uint32_t asker[RING_OUT];         /* node whose answer is in the slot; NODES_MOST: none */
    bool sending[RING_OUT];           /* the courier has the slot */
    struct serve_asker *of;           /* per node */
    TAILQ_HEAD(, serve_asker) askers; /* nodes with waiting jobs, in the order in which they get slots */
    struct fair_turns turns;
    size_t kept; /* bytes of waiting jobs' answers that no tier has */
};

/* Replies. After each, the courier has the slot. */
void reply_status(struct serves *serves, const struct peer_question *question, int status);
/* Answer from the tiers: 0; -ENOENT: the tiers lack some of it, and the caller still has the slot. */
int reply_held(struct serves *serves, const struct peer_question *question, uint32_t slot);
/* Answer from a load's memory. */
void reply_answer(struct serves *serves, const struct peer_question *question, const struct answer *answer,
                  uint32_t slot);
struct peer_question question_of(const struct fetch_part *part);
/* The values that a question asks for. */
struct span question_values(const struct serves *serves, const struct peer_question *question);

#endif
