/* `without=`: samples that are gone before an order is made. The others keep their numbers. */
#ifndef FS_CONTROL_PLAN_WITHOUT_H
#define FS_CONTROL_PLAN_WITHOUT_H

#include "fs/catalog/samples.h"
#include "fs/control/budget.h"

struct plan_without {
    uint32_t kept;    /* samples that are left */
    uint32_t *number; /* of those: their numbers in the list, ascending */
    bool *gone;       /* by number */
    struct charge charge;
};

/* Of `list` all samples are gone whose file is in `without`; if that is a list of records, the samples that begin where
 * one of them does. -EINVAL: records should be left out of a list of files, or nothing is left. `why` tells. */
int plan_without_make(const struct samples *list, const struct samples *without, const struct charge *like,
                      struct plan_without *left, struct str *why);
void plan_without_fini(struct plan_without *left);
/* An order of what is left, 0…kept-1, becomes one of the list. */
void plan_without_number(const struct plan_without *left, uint32_t *order, uint32_t n);
/* An order of the list, without what is gone. Returns its length. */
uint32_t plan_without_filter(const struct plan_without *left, uint32_t *order, uint32_t n);

#endif
