/* A ring buffer of rejected requests. */
#include "fs/control/refusals.h"

#include "fs/base/cleanup.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

void refusals_init(struct refusals *r)
{
    memset(r, 0, sizeof *r);
    pthread_mutex_init(&r->lock, NULL);
}

void refusals_fini(struct refusals *r)
{
    for (size_t i = 0; i < REFUSALS; i++) {
        free(r->own.at[i].text);
        free(r->others.at[i].text);
    }
    pthread_mutex_destroy(&r->lock);
}

void refusal_begin(struct str *text, const char *line, size_t n)
{
    str_add_printable(text, line, n < REFUSAL_LINE_SHOWN ? n : REFUSAL_LINE_SHOWN);
    str_adds(text, n > REFUSAL_LINE_SHOWN ? "…\t" : "\t");
}

void refusals_add(struct refusals *r, bool other, struct refusal refusal)
{
    struct refusal_ring *ring = other ? &r->others : &r->own;
    pthread_mutex_lock(&r->lock);
    struct refusal *at = &ring->at[ring->count++ % REFUSALS];
    char *old = at->text;
    *at = refusal;
    pthread_mutex_unlock(&r->lock);
    free(old);
}

uint64_t refusals_count(struct refusals *r)
{
    LOCK_SCOPE(&r->lock);
    return r->own.count + r->others.count;
}

static void add_refusal(struct str *text, const struct refusal *refusal)
{
    time_t seconds = (time_t)(refusal->time / 1000000000);
    struct tm tm;
    char date[32];
    gmtime_r(&seconds, &tm);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm);
    str_addf(text, "%s.%03uZ\t%ju\t%jd\t%s\n", date, (unsigned)(refusal->time / 1000000 % 1000),
             (uintmax_t)refusal->uid, (intmax_t)refusal->pid, refusal->text ? refusal->text : "");
}

static uint64_t ring_first(const struct refusal_ring *ring)
{
    return ring->count > REFUSALS ? ring->count - REFUSALS : 0;
}

void refusals_text(struct refusals *r, struct str *text)
{
    LOCK_SCOPE(&r->lock);
    uint64_t own = ring_first(&r->own), others = ring_first(&r->others);
    while (own < r->own.count || others < r->others.count) {
        const struct refusal *a = own < r->own.count ? &r->own.at[own % REFUSALS] : NULL;
        const struct refusal *b = others < r->others.count ? &r->others.at[others % REFUSALS] : NULL;
        bool take_own = a && (!b || a->time <= b->time);
        add_refusal(text, take_own ? a : b);
        *(take_own ? &own : &others) += 1;
    }
    str_add(text, "", 0);
}
