#include "fs/world/peer.h"

#include "fs/base/clock.h"

#define FIRST_PAUSE (2 * SECOND)
#define LONGEST_PAUSE (60 * SECOND)

bool peer_may_be_asked(const struct peer_record *p, uint64_t now)
{
    return p->state == PEER_GOOD || (p->state == PEER_SUSPECT && !p->probing && now >= p->until);
}

void peer_asked(struct peer_record *p)
{
    p->probing = p->state == PEER_SUSPECT;
}

void peer_heard(struct peer_record *p, uint64_t now)
{
    p->heard = p->reached = now;
    p->probing = p->shares = false;
    p->pause = 0;
    if (p->state == PEER_SUSPECT)
        p->state = PEER_GOOD;
}

void peer_reached(struct peer_record *p, uint64_t now)
{
    p->reached = now;
    p->shares = p->state == PEER_SUSPECT;
}

bool peer_suspect(struct peer_record *p, uint64_t since, uint64_t now)
{
    if (p->state == PEER_LOST)
        return false;
    p->shares = p->reached > since;
    if (p->state == PEER_SUSPECT && !p->probing)
        return false;
    p->pause = !p->pause ? FIRST_PAUSE : 2 * p->pause < LONGEST_PAUSE ? 2 * p->pause : LONGEST_PAUSE;
    p->state = PEER_SUSPECT;
    p->probing = false;
    p->until = now + p->pause;
    return true;
}

bool peer_lose(struct peer_record *p)
{
    if (p->state == PEER_LOST)
        return false;
    p->state = PEER_LOST;
    p->probing = p->shares = false;
    return true;
}

bool peer_is_sound(const struct peer_record *p)
{
    if (p->heard > p->reached)
        return false;
    return p->state == PEER_SUSPECT ? p->pause > 0
                                    : !p->probing && !p->shares && (p->state == PEER_LOST || p->pause == 0);
}
