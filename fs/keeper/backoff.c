/* The deaths are in the shared memory, so the next keeper counts them as well. */
#include "fs/keeper/backoff.h"

#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/wire/handover.h"

#include <stdlib.h>

enum {
    MINUTE_S = 60,
    PAUSE_FROM = 3, /* deaths */
    PAUSE_MS = 100,
    DOUBLINGS = 10,
    PAUSES_IN_MINUTE = 12,
    NO_TIERS_FROM = 3,
    NO_PEERS_FROM = 5,
};

uint64_t backoff_minute(void)
{
    const char *text = getenv("DEALFS_MINUTE");
    return SECOND * (text && atoi(text) >= 0 ? (unsigned)atoi(text) : MINUTE_S);
}

static uint64_t pause_after(unsigned deaths, uint64_t minute)
{
    if (deaths < PAUSE_FROM)
        return 0;
    unsigned doublings = deaths - PAUSE_FROM < DOUBLINGS ? deaths - PAUSE_FROM : DOUBLINGS;
    uint64_t pause = PAUSE_MS * MILLISECOND << doublings, most = minute / PAUSES_IN_MINUTE;
    return pause < most ? pause : most;
}

static enum server_level level_after(unsigned deaths)
{
    return deaths >= NO_PEERS_FROM ? LEVEL_NO_PEERS : deaths >= NO_TIERS_FROM ? LEVEL_NO_TIERS : LEVEL_WHOLE;
}

/* A mount that is not up yet has its tiers, or fails. */
uint64_t backoff_died(struct handover *h)
{
    static const char *const without[] = {"", ", without tiers", ", without tiers and peers"};
    uint64_t minute = backoff_minute();
    unsigned deaths = endings_lately(&h->endings, minute);
    uint64_t pause = pause_after(deaths, minute);
    uint32_t before = atomic_load(&h->level);
    enum server_level level = level_after(deaths);
    if (deaths > 1 && before <= LEVEL_NO_PEERS && before > level) /* no minute without a death */
        level = before;
    if (!(atomic_load(&h->flags) & HANDOVER_READY))
        level = LEVEL_WHOLE;
    atomic_store(&h->level, level);
    if (deaths >= PAUSE_FROM)
        log_warning("%u servers died within %u s: the next one starts in %u ms%s", deaths, (unsigned)(minute / SECOND),
                    (unsigned)(pause / MILLISECOND), without[level]);
    return pause;
}

bool backoff_is_over(const struct handover *h)
{
    return atomic_load(&h->level) != LEVEL_WHOLE && clock_now() - atomic_load(&h->started) >= backoff_minute();
}
