/* What other nodes ask this one for: answered from the tiers in stored form, or after a load from the source, of which
 * there is one in flight a part whoever asks for it. */
#ifndef FS_WORLD_SERVE_H
#define FS_WORLD_SERVE_H

#include "fs/world/peers.h"

#include <pthread.h>
#include <sys/queue.h>

struct link;
struct job;

struct serves {
    pthread_mutex_t lock; /* all below */
    bool over;
    int free;
    uint32_t free_slot[RING_OUT];
    uint32_t asker[RING_OUT];  /* whose answer is in the slot; NODES_MOST: nobody's */
    bool sending[RING_OUT];
    TAILQ_HEAD(, job) pending; /* wait for a slot that they may have, in the order in which they came */
    size_t kept;               /* bytes of answers among them that no tier has */
};

int serves_init(struct link *link);
void serves_fini(struct link *link);

int serve_asked(struct link *link, const struct ring_message *message); /* -EBADMSG: the courier errs */
int serve_sent(struct link *link, const struct ring_message *message);  /* likewise */
/* Who asked for what has no slot yet is told so, and after peer_timeout not to wait for it. */
void serve_tick(struct link *link, uint64_t now);
void serve_end(struct link *link);

#endif
