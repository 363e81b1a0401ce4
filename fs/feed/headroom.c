/* Implements the rules of headroom.h. */
#include "fs/feed/headroom.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { GROWTH = 64, LOST_SHARE = 16, KEPT_SHARE = 4 };
/* OTHER: not fed, or read since. ASKED: fed, and no READ of it was answered yet. FED: one was. */
enum headroom_state { OTHER, ASKED, FED };

int headroom_init(struct headroom *r, uint64_t most, uint32_t files)
{
    *r = (struct headroom){.most = most, .now = most, .files = files};
    r->state = calloc(files + 1ul, sizeof *r->state);
    return r->state ? 0 : -ENOMEM;
}

void headroom_fini(struct headroom *r)
{
    free(r->state);
    r->state = NULL;
}

static uint64_t least_of(const struct headroom *r)
{
    return r->most / 8 < HEADROOM_LEAST ? r->most / 8 : HEADROOM_LEAST;
}

uint64_t headroom_bytes(const struct headroom *r)
{
    return r->now < least_of(r) ? 0 : r->now;
}

static uint64_t less(uint64_t from, uint64_t what)
{
    return from > what ? from - what : 0;
}

static void count_read(struct headroom *r, uint64_t bytes)
{
    uint64_t share = (bytes + GROWTH - 1) / GROWTH;
    r->now = share < r->most - r->now ? r->now + share : r->most;
    r->lost = less(r->lost, share);
    r->drain = less(r->drain, bytes);
}

static void count_lost(struct headroom *r, uint64_t bytes, uint64_t ahead)
{
    if (r->drain > 0)
        return;
    r->lost += bytes;
    if (r->lost <= r->now / LOST_SHARE)
        return;
    r->now /= KEPT_SHARE;
    r->lost = 0;
    r->drain = ahead;
}

void headroom_feed(struct headroom *r, uint32_t file)
{
    if (file < r->files)
        r->state[file] = ASKED;
}

void headroom_begin(struct headroom *r)
{
    memset(r->state, OTHER, r->files);
    r->now = r->now < least_of(r) ? least_of(r) : r->now;
    r->lost = r->drain = 0;
}

void headroom_answer(struct headroom *r, uint32_t file, uint64_t bytes, bool fed, uint64_t ahead)
{
    if (file >= r->files)
        return;
    if (fed) {
        r->state[file] = r->state[file] == ASKED ? FED : r->state[file];
        return;
    }
    if (r->state[file] == FED)
        count_lost(r, bytes, ahead);
    r->state[file] = OTHER;
    count_read(r, bytes);
}

void headroom_read(struct headroom *r, uint32_t file, uint64_t bytes)
{
    if (file >= r->files)
        return;
    if (r->state[file] != OTHER)
        count_read(r, bytes);
    r->state[file] = OTHER;
}
