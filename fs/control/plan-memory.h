/* Memory of plans that grows with the number of samples.
 *
 * A dataset has many more records than files. So the arrays of a plan for a record list are in files without a name, in
 * the state directory: up to RECORD_ROOM bytes per record of all record lists, for all plans together. What does not
 * fit there, and the arrays of plans for files, are allocated and charged to request_memory=. */
#ifndef FS_CONTROL_PLAN_MEMORY_H
#define FS_CONTROL_PLAN_MEMORY_H

#include "fs/base/scratch.h"
#include "fs/catalog/samples.h"
#include "fs/control/budget.h"

enum { RECORD_ROOM = 16 };

struct plan_memory {
    void *bytes;
    struct scratch file; /* has the bytes; empty: they are allocated */
    struct charge charge;
};

struct control;

/* Memory of a plan of `list`. `like`: a charge for the same asker; without a budget nothing is charged. */
struct plan_memory_of {
    struct control *control;
    const struct samples *list;
    const struct charge *like;
};

/* Two steps, so that a too large request is rejected before work begins: charge, then allocate at most that many bytes.
 * -ENOMEM: see `why`. */
int plan_memory_charge(const struct plan_memory_of *of, uint64_t bytes, struct plan_memory *memory, struct str *why);
int plan_memory_make(struct control *control, uint64_t bytes, struct plan_memory *memory, struct str *why);
/* Both steps. */
int plan_memory_take(const struct plan_memory_of *of, uint64_t bytes, struct plan_memory *memory, struct str *why);
void plan_memory_fini(struct plan_memory *memory);

#endif
