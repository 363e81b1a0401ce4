/* What this node asks others for: a fetch a slot, and the reads that wait for slots.
 *
 *   FREE ──ask──▶ ASKED ──FETCHED──▶ HELD ──the answer is released──▶ FREE
 *                   │ silence
 *                   ▼
 *                 LEFT ──FETCHED──▶ FREE        its read went to the source; the courier may still write to the slot
 *
 * ASKED: `read` waits. HELD: an answer points into the slot, and has a reference to the link. */
#ifndef FS_WORLD_FETCH_H
#define FS_WORLD_FETCH_H

#include "fs/store/loads.h"
#include "fs/world/peers.h"

#include <pthread.h>
#include <sys/queue.h>

struct link;

struct fetch {
    enum { FETCH_FREE, FETCH_ASKED, FETCH_LEFT, FETCH_HELD } state;
    struct link *link;
    struct store_read *read;
    uint64_t number; /* the message's token */
    uint64_t asked;  /* when this slot was taken for it */
    uint64_t heard;  /* since when its read waits, or when the other node last said WAIT */
    uint32_t node, file, value, count;
};

/* A node, as it is asked. At most PEER_FETCHES slots are in its hands, so that one that is silent leaves some. */
struct record {
    enum peer_state state;
    bool probing;          /* suspect, and asked once to see whether it answers */
    bool hungry;           /* in the queue of that name */
    int slots, left;       /* asked or left; left */
    uint64_t heard;        /* when it last said anything */
    uint64_t until, pause; /* suspect: not asked until then; how long that was */
    struct read_list waiting;
    TAILQ_ENTRY(record) same_queue;
};

struct fetches {
    pthread_mutex_t lock; /* all below */
    bool over;
    uint64_t number;  /* of the last fetch */
    uint64_t waiting; /* reads that wait for slots */
    int free, left;   /* slots in these states */
    uint32_t free_slot[RING_IN];
    struct fetch fetch[RING_IN];
    uint32_t nodes;
    struct record *record;
    TAILQ_HEAD(, record) hungry; /* have reads that wait, and may have more slots */
};

int fetches_init(struct link *link);
void fetches_fini(struct link *link);

/* For store_peers.fetch: the read is the peers' until store_fetched when it returns -EINPROGRESS. */
int fetch_ask(struct link *link, struct store_read *read);
int fetch_answered(struct link *link, const struct ring_message *message); /* -EBADMSG: the courier errs */
int fetch_lost(struct link *link, uint32_t node); /* its server has ended. -EBADMSG: there is no such node */
/* End what is silent for too long by `now`, so that no reader waits longer. */
void fetch_tick(struct link *link, uint64_t now);
void fetch_end(struct link *link); /* all reads go to the source; no more are taken */
enum peer_state fetch_state(struct link *link, uint32_t node);

/* What has come into a slot becomes the read's answer: 0; -EBADMSG: it does not verify; -ENOMEM. (fetch-open.c) */
int fetch_open(struct link *link, struct fetch *fetch, struct store_read *read, uint32_t length);
void fetch_release(void *fetch); /* HELD is over */

#endif
