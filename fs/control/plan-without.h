/* `without=`: samples that are removed before an order is made. The others keep their numbers. */
#ifndef FS_CONTROL_PLAN_WITHOUT_H
#define FS_CONTROL_PLAN_WITHOUT_H

#include "fs/catalog/samples.h"
#include "fs/control/budget.h"

struct plan_without {
    uint32_t kept;    /* number of remaining samples */
    uint32_t *number; /* their numbers in the list, ascending */
    bool *gone;       /* by number in the list */
    struct charge charge;
};

/* Remove all samples of `list` whose file is in `without`; if that is a list of records, those that begin where one of
 * its records does. -EINVAL: records cannot be removed from a list of files; or nothing remains. See `why`. */
int plan_without_make(const struct samples *list, const struct samples *without, const struct charge *like,
                      struct plan_without *left, struct str *why);
void plan_without_fini(struct plan_without *left);
/* Convert an order of the remaining samples, 0…kept-1, to numbers of the list. */
void plan_without_number(const struct plan_without *left, uint32_t *order, uint32_t n);
/* Remove samples from an order of the list. Returns its new length. */
uint32_t plan_without_filter(const struct plan_without *left, uint32_t *order, uint32_t n);

#endif
