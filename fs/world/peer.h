/* Another node, as this one knows it: can it be asked?
 *
 *   state         pause          until                    probing
 *   PEER_GOOD     0              -                        false
 *   PEER_SUSPECT  how long       not asked before then    one fetch is on its way, to see whether it answers
 *   PEER_LOST     -              -                        false; it stays lost as long as this courier lives
 *
 * A suspected node is good again when it says anything. Each pause is twice as long as the one before it. */
#ifndef FS_WORLD_PEER_H
#define FS_WORLD_PEER_H

#include <stdbool.h>
#include <stdint.h>

enum peer_state { PEER_GOOD, PEER_SUSPECT, PEER_LOST };

struct peer_record {
    enum peer_state state;
    bool probing;
    uint64_t heard; /* when it last said anything */
    uint64_t pause, until;
};

/* Of its answers since it joined. */
struct peer_times {
    uint64_t answers, sum; /* nanoseconds from the question to the answer */
};
static inline void peer_answered(struct peer_times *times, uint64_t after)
{
    times->answers++;
    times->sum += after;
}

bool peer_may_be_asked(const struct peer_record *peer, uint64_t now);
void peer_asked(struct peer_record *peer);
void peer_heard(struct peer_record *peer, uint64_t now);
/* True: that is news. */
bool peer_suspect(struct peer_record *peer, uint64_t now);
bool peer_lose(struct peer_record *peer);

bool peer_is_sound(const struct peer_record *peer); /* as the table says */

#endif
