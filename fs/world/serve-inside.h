/* Serving as its own files see it: serve.c has the slots and the jobs, serve-reply.c makes the replies. */
#ifndef FS_WORLD_SERVE_INSIDE_H
#define FS_WORLD_SERVE_INSIDE_H

#include "fs/store/fair.h"
#include "fs/world/serve.h"

#include <pthread.h>

struct peer_question {
    uint64_t token;
    uint32_t node, file, value, count, flags;
    uint32_t head, tail;           /* blocks that are not wanted */
    const struct fetch_part *part; /* of FETCH_MANY */
};

/* A node that asks. */
struct serve_asker {
    int slots;
    struct fair_queue queue; /* for more */
    bool queued;             /* among `askers` */
    TAILQ_ENTRY(serve_asker) same_queue;
};

struct serves {
    struct link *link;
    struct self *self;
    uint32_t nodes, me;

    pthread_mutex_t lock; /* all below */
    bool over;
    struct world *world; /* by whose layout it is told what is stored; NULL: by none yet */
    int free;
    uint32_t free_slot[RING_OUT];
    uint32_t asker[RING_OUT];         /* whose answer is in the slot; NODES_MOST: nobody's */
    bool sending[RING_OUT];           /* the slot is the courier's */
    struct serve_asker *of;           /* by node */
    TAILQ_HEAD(, serve_asker) askers; /* whose jobs wait: they get slots in turn */
    struct fair_turns turns;
    size_t kept; /* bytes of answers among all of them that no tier has */
};

/* Replies. The slot, where there is one, is the courier's afterwards. */
void reply_status(struct serves *serves, const struct peer_question *question, int status);
/* From what is held: 0; -ENOENT: the tiers have not all of it, and the slot is still the caller's. */
int reply_held(struct serves *serves, const struct peer_question *question, uint32_t slot);
/* What was read past the tiers. */
void reply_answer(struct serves *serves, const struct peer_question *question, const struct answer *answer,
                  uint32_t slot);
struct peer_question question_of(const struct fetch_part *part);
/* The values of a question. */
struct span question_values(const struct serves *serves, const struct peer_question *question);

#endif
