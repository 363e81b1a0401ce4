/* Shared by the files of fetch: fetch.c asks and takes answers; fetch-slots.c assigns slots; fetch-many.c combines
 * small reads into one question; fetch-pull.c asks for threads that wait for the answer.
 *
 *   FREE ──ask──▶ ASKED ──FETCHED──▶ HELD ──the answer is released──▶ FREE
 *                   │ timeout
 *                   ▼
 *                 LEFT ──FETCHED──▶ FREE        its reads went to the source; the courier may still write to the slot
 *
 *   state   reads   number, node   the slot counts in
 *   FREE    none    -              fetches.free
 *   ASKED   wait    the fetch's    the node's slots
 *   LEFT    none    the fetch's    the node's slots and left, fetches.left
 *   HELD    end     -              nothing; answers point into the slot, and together hold one reference to the link
 *
 * Most fetches have one read. Each read of a fetch for several can be cancelled. If the other node lacks the data of
 * some of them, each of those is asked for again in its own question. */
#ifndef FS_WORLD_FETCH_INSIDE_H
#define FS_WORLD_FETCH_INSIDE_H

#include "fs/store/fair.h"
#include "fs/world/fetch.h"

#include <pthread.h>

enum { FETCHES_AT_ONCE = 8 };

struct fetch {
    enum { FETCH_FREE, FETCH_ASKED, FETCH_LEFT, FETCH_HELD } state;
    struct fetches *fetches;
    uint32_t parts, waiting; /* reads of this fetch; how many of them still wait */
    /* NULL: no longer waits. In state HELD they belong to the thread that ends them. */
    struct store_read *read[MANY_MOST];
    atomic_int held; /* references to the slot: one of that thread, one per answer */
    uint64_t number; /* the token of the message */
    uint64_t asked;  /* when the slot was taken */
    uint64_t heard;  /* when the read began to wait, or when the other node last said WAIT */
    uint32_t node;
    bool slow;   /* the other node said WAIT */
    bool shared; /* FETCH_SHARED: only the node's courier answers */
};

/* Another node that is asked. It gets at most PEER_FETCHES slots, so that a silent node leaves slots for the others. */
struct asked_peer {
    struct peer_record peer;
    bool hungry;           /* is in the queue `hungry` */
    int slots, left, slow; /* slots of this node: ASKED or LEFT; LEFT; ASKED, and WAIT was said */
    struct peer_times times;
    struct fair_queue queue; /* reads that wait for a slot */
    TAILQ_ENTRY(asked_peer) same_queue;
};

struct fetches {
    struct link *link;
    struct self *self;
    uint32_t nodes, me;

    pthread_mutex_t lock; /* guards all fields below */
    bool over;
    struct world *world; /* its layout determines which node is asked */
    uint64_t number;     /* number of the last fetch */
    uint64_t waiting;    /* number of reads that wait for slots */
    struct fair_turns turns;
    int free, left; /* number of slots in these states */
    uint32_t free_slot[RING_IN];
    struct fetch fetch[RING_IN];
    struct asked_peer *peer;
    TAILQ_HEAD(, asked_peer) hungry; /* peers with waiting reads that may get more slots */
};

/* Slots. The caller holds the lock. */

/* Assign a slot to the read and make the message that asks for it: 0. -EINPROGRESS: the read waits for a slot.
 * -EHOSTUNREACH: nobody may wait for this node. */
int slots_ask(struct fetches *fetches, struct asked_peer *peer, struct store_read *read, struct ring_message *message);
/* Give free slots in turn to the nodes with waiting reads. Returns the number of messages to send. */
int slots_feed(struct fetches *fetches, struct ring_message message[FETCHES_AT_ONCE]);
void slots_wait(struct fetches *fetches, struct fetch *fetch, uint64_t now); /* the other node said WAIT */
void slots_vacate(struct fetches *fetches, struct fetch *fetch);
void slots_take_reads(struct fetch *fetch, struct read_list *reads); /* moves all waiting reads into `reads` */
/* becomes LEFT; its reads move into `left` */
void slots_leave(struct fetches *fetches, struct fetch *fetch, struct read_list *left);
void slots_note_hungry(struct fetches *fetches, struct asked_peer *peer);
/* removes all reads that wait for a slot */
void slots_expel(struct fetches *fetches, struct asked_peer *peer, struct read_list *expelled);
/* Remove reads that wait for a slot, and whose node has said nothing for peer_timeout. */
void slots_expel_late(struct fetches *fetches, uint64_t now, struct read_list *expelled);
void slots_check(const struct fetches *fetches); /* asserts the tables here and in peer.h */

/* Questions for many reads. The caller holds the lock, except for the last two. */

/* Bytes of its answer, for store_read.small. */
uint32_t many_bytes(const struct fetches *fetches, const struct store_read *read);
/* May the read be asked for now? A small read waits while SMALL_FETCHES questions to the node are in progress. NULL:
 * true. */
bool many_may_go(const struct asked_peer *peer, const struct store_read *read);
/* If the message asks for a small read, add other small reads that wait for this node. */
void many_gather(struct fetches *fetches, struct asked_peer *peer, struct ring_message *message);
/* Complete the reads of a fetch in state HELD. Reads whose data the other node lacks move into `missing`, to be asked
 * for alone. */
void many_complete(struct fetches *fetches, struct fetch *fetch, uint32_t length, struct read_list *missing);

/* Make the payload the answer of a read, and end the read. The caller holds a reference to the slot. */
void fetch_complete(struct fetches *fetches, struct fetch *fetch, const struct payload_part *part,
                    struct store_read *read);

/* Pulls: questions for which a thread waits. Each uses a read that the store does not know. When it has ended, the
 * thread takes the answer out of the slot. */
struct peer_pull {
    struct store_read read; /* represents the pull in queues and slots */
    struct ring_message question;
    pthread_cond_t ended;
    bool over; /* lock, as all fields below: */
    int error;
    struct fetch *fetch; /* has the answer, of `length` bytes; NULL: no answer */
    uint32_t length;
};
void pull_over(struct fetches *fetches, struct peer_pull *pull, int error);

void fetch_release(void *fetch); /* release a reference to the slot */
void fetch_count_bad(struct fetches *fetches, uint32_t node);
/* the caller holds the lock */
uint32_t fetch_owner_before(const struct fetches *fetches, uint32_t file, uint64_t offset);
static inline const void *fetch_slot(const struct fetches *f, const struct fetch *fetch)
{
    return ring_slot(&f->link->ring, (uint32_t)(fetch - f->fetch));
}

#endif
