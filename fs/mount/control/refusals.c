/* A ring of refused requests. */
#include "fs/mount/control/refusals.h"

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
    for (size_t i = 0; i < REFUSALS; i++)
        free(r->ring[i].text);
    pthread_mutex_destroy(&r->lock);
}

static void add_request_line(struct str *text, const char *line, size_t n)
{
    str_add_printable(text, line, n < REFUSAL_LINE_SHOWN ? n : REFUSAL_LINE_SHOWN);
    if (n > REFUSAL_LINE_SHOWN)
        str_adds(text, "…");
}

void refusals_add(struct refusals *r, uint64_t time, uid_t uid, pid_t pid, const char *line, size_t n, const char *why)
{
    struct str text = STR_INIT;

    add_request_line(&text, line, n);
    str_addf(&text, "\t%s", why);
    struct refusal refusal = {time, uid, pid, str_steal(&text)};

    pthread_mutex_lock(&r->lock);
    struct refusal *at = &r->ring[r->count++ % REFUSALS];
    char *old = at->text;
    *at = refusal;
    pthread_mutex_unlock(&r->lock);
    free(old);
}

uint64_t refusals_count(struct refusals *r)
{
    pthread_mutex_lock(&r->lock);
    uint64_t count = r->count;
    pthread_mutex_unlock(&r->lock);
    return count;
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

void refusals_text(struct refusals *r, struct str *text)
{
    pthread_mutex_lock(&r->lock);
    for (uint64_t i = r->count > REFUSALS ? r->count - REFUSALS : 0; i < r->count; i++)
        add_refusal(text, &r->ring[i % REFUSALS]);
    pthread_mutex_unlock(&r->lock);
    str_add(text, "", 0);
}
