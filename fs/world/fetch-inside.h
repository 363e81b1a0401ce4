/* Fetches as their own files see them. fetch.c asks and takes the answers, fetch-slots.c gives out the slots,
 * fetch-many.c has small reads go together, fetch-pull.c has threads that wait for an answer.
 *
 *   FREE ──ask──▶ ASKED ──FETCHED──▶ HELD ──the answer is released──▶ FREE
 *                   │ silence
 *                   ▼
 *                 LEFT ──FETCHED──▶ FREE        its read went to the source; the courier may still write to the slot
 *
 *   state   reads   number, node   the slot counts in
 *   FREE    none    -              fetches.free
 *   ASKED   wait    the fetch's    the node's slots
 *   LEFT    none    the fetch's    the node's slots and left, fetches.left
 *   HELD    end     -              nothing; answers point into the slot, all together have a reference to the link
 *
 * Most fetches have one read. Of several each may be cancelled; what the other node does not hold is asked for again,
 * each by itself. */
#ifndef FS_WORLD_FETCH_INSIDE_H
#define FS_WORLD_FETCH_INSIDE_H

#include "fs/store/fair.h"
#include "fs/world/fetch.h"

#include <pthread.h>

enum { FETCHES_AT_ONCE = 8 };

struct fetch {
    enum { FETCH_FREE, FETCH_ASKED, FETCH_LEFT, FETCH_HELD } state;
    struct fetches *fetches;
    uint32_t parts, waiting;            /* reads that it was asked for; how many of them still wait */
    struct store_read *read[MANY_MOST]; /* NULL: does not wait. When it is HELD, of the thread that ends them */
    atomic_int held;                    /* by that thread, and by answers */
    uint64_t number;                    /* the message's token */
    uint64_t asked;                     /* when this slot was taken for it */
    uint64_t heard;                     /* since when its read waits, or when the other node last said WAIT */
    uint32_t node;
    bool slow; /* it was told to WAIT */
};

/* A node that is asked. Only some of the slots are in its hands, so that one that is silent leaves the others. */
struct asked_peer {
    struct peer_record peer;
    bool hungry;           /* in the queue of that name */
    int slots, left, slow; /* asked or left; left; asked, and WAIT was said */
    struct peer_times times;
    struct fair_queue queue; /* for slots */
    TAILQ_ENTRY(asked_peer) same_queue;
};

struct fetches {
    struct link *link;
    struct self *self;
    uint32_t nodes, me;

    pthread_mutex_t lock; /* all below */
    bool over;
    struct world *world; /* whose layout says who is asked */
    uint64_t number;     /* of the last fetch */
    uint64_t waiting;    /* reads that wait for slots */
    struct fair_turns turns;
    int free, left; /* slots in these states */
    uint32_t free_slot[RING_IN];
    struct fetch fetch[RING_IN];
    struct asked_peer *peer;
    TAILQ_HEAD(, asked_peer) hungry; /* have reads that wait, and may have more slots */
};

/* Slots. All with the lock. */

/* A slot for the read, and the message that asks for it: 0. -EINPROGRESS: it waits for one. -EHOSTUNREACH. */
int slots_ask(struct fetches *fetches, struct asked_peer *peer, struct store_read *read, struct ring_message *message);
/* Free slots go to the nodes whose reads wait, in turn. Returns how many messages there are to send. */
int slots_feed(struct fetches *fetches, struct ring_message message[FETCHES_AT_ONCE]);
void slots_wait(struct fetches *fetches, struct fetch *fetch, uint64_t now); /* the other node says so */
void slots_vacate(struct fetches *fetches, struct fetch *fetch);
void slots_take_reads(struct fetch *fetch, struct read_list *reads);                    /* all that wait */
void slots_leave(struct fetches *fetches, struct fetch *fetch, struct read_list *left); /* its reads into `left` */
void slots_note_hungry(struct fetches *fetches, struct asked_peer *peer);
void slots_expel(struct fetches *fetches, struct asked_peer *peer, struct read_list *expelled); /* all that wait */
/* Those that wait and have heard nothing for peer_timeout. */
void slots_expel_late(struct fetches *fetches, uint64_t now, struct read_list *expelled);
void slots_check(const struct fetches *fetches); /* as the tables here and in peer.h say */

/* Many. All but the last with the lock. */

/* What the answer takes, for store_read.small. */
uint32_t many_bytes(const struct fetches *fetches, const struct store_read *read);
/* Small reads wait to go together while the node has enough answers to give. NULL: may go. */
bool many_may_go(const struct asked_peer *peer, const struct store_read *read);
/* The message asks for a small read: others that wait are asked for with it. */
void many_gather(struct fetches *fetches, struct asked_peer *peer, struct ring_message *message);
/* Of an answer in the slot of a fetch that is HELD: the reads that are to be asked for alone into `missing`. */
void many_complete(struct fetches *fetches, struct fetch *fetch, uint32_t length, struct read_list *missing);

/* An answer's bytes become the read's, and it ends. The caller has the fetch held. */
void fetch_complete(struct fetches *fetches, struct fetch *fetch, const struct payload_part *part,
                    struct store_read *read);

/* Pulls. A pull is asked as a read is, of which the store knows nothing: its thread waits until it has ended, and then
 * takes what it wants out of the slot. */
struct peer_pull {
    struct store_read read; /* stands for it where it waits */
    struct ring_message question;
    pthread_cond_t ended;
    bool over; /* lock, as the rest: */
    int error;
    struct fetch *fetch; /* has the answer, of `length` bytes; NULL: there is none */
    uint32_t length;
};
void pull_over(struct fetches *fetches, struct peer_pull *pull, int error);

void fetch_release(void *fetch); /* its answer is used */
void fetch_count_bad(struct fetches *fetches, uint32_t node);
uint32_t fetch_owner_before(const struct fetches *fetches, uint32_t file, uint64_t offset); /* with the lock */
static inline const void *fetch_slot(const struct fetches *f, const struct fetch *fetch)
{
    return ring_slot(&f->link->ring, (uint32_t)(fetch - f->fetch));
}

#endif
