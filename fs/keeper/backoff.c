/* Counts deaths in the shared memory, so that the next keeper also counts them. */
#include "fs/keeper/backoff.h"

#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/wire/handover.h"

enum {
    MINUTE_S = 60,
    PAUSE_FROM = 3, /* deaths */
    PAUSE_MS = 100,
    DOUBLINGS = 10,
    PAUSES_IN_MINUTE = 12,
    NO_TIERS_FROM = 3,
    NO_PEERS_FROM = 5,
    HUNG_MINUTES = 10,
};

uint64_t backoff_minute(void)
{
    return clock_bound("DEALFS_MINUTE", MINUTE_S);
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

/* A server that hung did nothing for half a minute, so the number of deaths per minute does not show a series of
 * hangs. */
static bool last_hung(const struct handover *h)
{
    struct ending last;
    return endings_get(&h->endings, 0, &last) == 0 && (last.how == ENDING_STUCK || last.how == ENDING_HUNG);
}

/* A mount that is not up yet has its tiers, or fails. */
static enum server_level choose_level(const struct handover *h, unsigned deaths, bool hung)
{
    uint32_t before = atomic_load(&h->level);
    enum server_level level = level_after(deaths);
    if (!(atomic_load(&h->flags) & HANDOVER_READY))
        return LEVEL_WHOLE;
    if (hung)
        return before < LEVEL_NO_PEERS ? (before + 1 > level ? before + 1 : level) : LEVEL_NO_PEERS;
    bool in_minute = deaths > 1; /* otherwise there was a minute without a death */
    return in_minute && before <= LEVEL_NO_PEERS && before > level ? before : level;
}

/* After a second hang, the keeper handles requests that have waited too long before the next server starts. */
uint64_t backoff_died(struct handover *h)
{
    static const char *const without[] = {"", ", without tiers", ", without tiers and peers"};
    uint64_t minute = backoff_minute();
    unsigned deaths = endings_lately(&h->endings, minute);
    bool hung = deaths > 0 && last_hung(h);
    uint64_t pause = pause_after(deaths, minute);
    if (hung && atomic_load(&h->level) != LEVEL_WHOLE && pause == 0)
        pause = PAUSE_MS * MILLISECOND;
    enum server_level level = choose_level(h, deaths, hung);
    atomic_store(&h->level, level);
    if (deaths >= PAUSE_FROM || level != LEVEL_WHOLE)
        log_warning("%u server%s died within %u s: the next one starts in %u ms%s", deaths, deaths == 1 ? "" : "s",
                    (unsigned)(minute / SECOND), (unsigned)(pause / MILLISECOND), without[level]);
    return pause;
}

bool backoff_is_over(const struct handover *h)
{
    uint64_t wait = backoff_minute() * (last_hung(h) ? HUNG_MINUTES : 1);
    return atomic_load(&h->level) != LEVEL_WHOLE && clock_now() - atomic_load(&h->started) >= wait;
}
