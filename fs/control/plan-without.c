/* Removes samples by file, or by file and offset. */
#include "fs/control/plan-without.h"

#include "fs/base/cleanup.h"

#include <errno.h>
#include <stdlib.h>

struct sample_place {
    uint64_t file, offset;
};

void plan_without_fini(struct plan_without *left)
{
    free(left->number);
    free(left->gone);
    charge_fini(&left->charge);
    *left = (struct plan_without){0};
}

/* In a list of files, only the file counts. */
static struct sample_place place_of(const struct samples *list, uint32_t sample, bool records)
{
    return (struct sample_place){samples_file(list, sample), records ? samples_offset(list, sample) : 0};
}

static int by_place(const void *a, const void *b)
{
    const struct sample_place *x = a, *y = b;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static void mark_gone(struct plan_without *left, const struct samples *list, const struct sample_place *place,
                      size_t places, bool records)
{
    for (uint32_t i = 0; i < samples_count(list); i++) {
        const struct sample_place one = place_of(list, i, records);
        left->gone[i] = bsearch(&one, place, places, sizeof one, by_place) != NULL;
        if (!left->gone[i])
            left->number[left->kept++] = i;
    }
}

int plan_without_make(const struct samples *list, const struct samples *without, const struct charge *like,
                      struct plan_without *left, struct str *why)
{
    bool records = samples_records(without);
    uint64_t n = samples_count(list), places = samples_count(without);
    CLEANUP_FREE struct sample_place *place = NULL;
    *left = (struct plan_without){.charge = charge_like(like)};
    if (records && !samples_records(list))
        return str_fail(why, -EINVAL, "`without`: a list of records cannot be excluded from a list of files");
    int error =
        charge_add(&left->charge, n * (sizeof *left->number + sizeof *left->gone) + places * sizeof *place, why);
    if (error)
        return error;
    place = malloc((places + 1) * sizeof *place);
    left->number = malloc((n + 1) * sizeof *left->number);
    left->gone = malloc(n + 1);
    if (!place || !left->number || !left->gone)
        return str_no_memory(why);
    for (uint32_t i = 0; i < places; i++)
        place[i] = place_of(without, i, records);
    qsort(place, places, sizeof *place, by_place);
    mark_gone(left, list, place, places, records);
    if (left->kept > 0 || n == 0)
        return 0;
    return str_fail(why, -EINVAL, "`without`: this list leaves no samples");
}

void plan_without_number(const struct plan_without *left, uint32_t *order, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        order[i] = left->number[order[i]];
}

uint32_t plan_without_filter(const struct plan_without *left, uint32_t *order, uint32_t n)
{
    uint32_t to = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!left->gone[order[i]])
            order[to++] = order[i];
    return to;
}
