/* Lists as lines with the files' names, step by step. */
#include "fs/control/plan-paths.h"

#include "fs/control/budget.h"

#include "fs/base/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

struct paths {
    const struct catalog *catalog;
    const struct samples *list;
    char *path; /* scratch */
    const struct asker *asker;
    struct str *reply;
    uint64_t lines;
};

static int add_line(void *user, uint64_t step, uint32_t rank, uint32_t sample)
{
    struct paths *p = user;
    enum { AT_ONCE = 1024 }; /* lines between two checks of the budget */
    long n = catalog_path(p->catalog, catalog_file_ino(p->catalog, samples_file(p->list, sample)), p->path,
                          CATALOG_PATH_MAX);
    if (n < 0)
        return (int)n;
    str_addf(p->reply, "%" PRIu64 "\t%" PRIu32 "\t%" PRIu32 "\t", step, rank, sample);
    samples_text_escape(p->path, (size_t)n, p->reply);
    if (samples_records(p->list))
        str_addf(p->reply, "\t%" PRIu64 "\t%" PRIu64, samples_offset(p->list, sample), samples_length(p->list, sample));
    str_adds(p->reply, "\n");
    if (++p->lines % AT_ONCE)
        return 0;
    return asker_gave_up(p->asker) ? -EINTR : charge_reach(p->asker->charge, p->reply->length, p->asker->why);
}

/* A rank's part of step i of the lists; the last step may be shorter. */
static uint64_t part_of(const struct plan_shape *s, const struct plan_request *w, uint64_t i, uint32_t rank,
                        uint64_t *from)
{
    uint64_t share = batches_share(s->last, s->ranks, rank), full = s->full / w->batch;
    *from = plan_shape_place(s, rank) + (i < full ? i * w->batch : s->full + (i - full) * share) - (i ? s->crop : 0);
    return (i < full ? w->batch : share) - (i ? 0 : s->crop);
}

int plan_walk(const struct plan_listing *plan, plan_visit visit, void *user)
{
    const struct plan_request *wanted = plan->wanted;
    const struct plan_shape *shape = plan->shape;
    uint64_t steps = shape->full / wanted->batch + shape->uses;
    int error = 0;
    for (uint64_t i = 0; i < steps && !error; i++)
        for (uint32_t r = 0; r < shape->ranks && !error; r++) {
            uint64_t from, n = part_of(shape, wanted, i, r, &from);
            if (wanted->rank != PLAN_ALL_RANKS && wanted->rank != r)
                continue;
            for (uint64_t end = from + n; from < end && !error; from++)
                error = visit(user, wanted->from + i, r, plan->lists[from]);
        }
    return error;
}

int plan_paths(const struct plan_listing *plan, const struct catalog *c, const struct asker *asker)
{
    CLEANUP_FREE char *path = malloc(CATALOG_PATH_MAX);
    struct paths p = {.catalog = c, .list = plan->samples, .path = path, .asker = asker, .reply = asker->reply};
    int error = path ? plan_walk(plan, add_line, &p) : str_no_memory(asker->why);
    return error ? error : charge_reach(asker->charge, asker->reply->length, asker->why);
}
