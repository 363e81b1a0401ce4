/* What this node knows about another one: can it be asked?
 *
 *   state         pause          until                    probing
 *   PEER_GOOD     0              -                        false
 *   PEER_SUSPECT  its length     not asked before then    one fetch is in progress, to see whether its server answers
 *   PEER_LOST     -              -                        false; it stays lost until this courier ends
 *
 * A suspected node is good again when anything arrives from its server. Each pause is twice as long as the previous
 * one. Answers that its courier makes by itself are no sign of the server. While they arrive from a suspected node, it
 * `shares`: it may be asked at any time for what its courier answers alone (FETCH_SHARED). */
#ifndef FS_WORLD_PEER_H
#define FS_WORLD_PEER_H

#include <stdbool.h>
#include <stdint.h>

enum peer_state { PEER_GOOD, PEER_SUSPECT, PEER_LOST };

struct peer_record {
    enum peer_state state;
    bool probing;
    bool shares;      /* only if it is suspected */
    uint64_t heard;   /* when anything last arrived from its server */
    uint64_t reached; /* when anything last arrived from it, also from its courier alone */
    uint64_t pause, until;
};

/* Times of its answers since the join. */
struct peer_times {
    uint64_t answers, sum; /* sum: nanoseconds from question to answer */
};
static inline void peer_answered(struct peer_times *times, uint64_t after)
{
    times->answers++;
    times->sum += after;
}

bool peer_may_be_asked(const struct peer_record *peer, uint64_t now);
void peer_asked(struct peer_record *peer);
void peer_heard(struct peer_record *peer, uint64_t now);   /* from its server */
void peer_reached(struct peer_record *peer, uint64_t now); /* from its courier alone */
/* Since then nothing has arrived from its server. If something has arrived from its courier, the node shares. True: it
 * was not suspected before. */
bool peer_suspect(struct peer_record *peer, uint64_t since, uint64_t now);
bool peer_lose(struct peer_record *peer);

bool peer_is_sound(const struct peer_record *peer); /* asserts the table above */

#endif
