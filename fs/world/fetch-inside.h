/* Fetches as their own files see them. fetch.c asks and takes the answers, fetch-slots.c gives out the slots,
 * fetch-pull.c has threads that wait for an answer.
 *
 *   FREE ──ask──▶ ASKED ──FETCHED──▶ HELD ──the answer is released──▶ FREE
 *                   │ silence
 *                   ▼
 *                 LEFT ──FETCHED──▶ FREE        its read went to the source; the courier may still write to the slot
 *
 *   state   read    number, node   the slot counts in
 *   FREE    NULL    -              fetches.free
 *   ASKED   waits   the fetch's    the node's slots
 *   LEFT    NULL    the fetch's    the node's slots and left, fetches.left
 *   HELD    NULL    -              nothing; an answer points into the slot, and has a reference to the link */
#ifndef FS_WORLD_FETCH_INSIDE_H
#define FS_WORLD_FETCH_INSIDE_H

#include "fs/store/fair.h"
#include "fs/world/fetch.h"

#include <pthread.h>

enum { FETCHES_AT_ONCE = 8 };

struct fetch {
    enum { FETCH_FREE, FETCH_ASKED, FETCH_LEFT, FETCH_HELD } state;
    struct fetches *fetches;
    struct store_read *read;
    uint64_t number; /* the message's token */
    uint64_t asked;  /* when this slot was taken for it */
    uint64_t heard;  /* since when its read waits, or when the other node last said WAIT */
    uint32_t node;
};

/* A node that is asked. Only some of the slots are in its hands, so that one that is silent leaves the others. */
struct asked_peer {
    struct peer_record peer;
    bool hungry;     /* in the queue of that name */
    int slots, left; /* asked or left; left */
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
void slots_vacate(struct fetches *fetches, struct fetch *fetch);
void slots_leave(struct fetches *fetches, struct fetch *fetch, struct read_list *left); /* its read into `left` */
void slots_note_hungry(struct fetches *fetches, struct asked_peer *peer);
void slots_expel(struct fetches *fetches, struct asked_peer *peer, struct read_list *expelled); /* all that wait */
/* Those that wait and have heard nothing for peer_timeout. */
void slots_expel_late(struct fetches *fetches, uint64_t now, struct read_list *expelled);
void slots_check(const struct fetches *fetches); /* as the tables here and in peer.h say */

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
