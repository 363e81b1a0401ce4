/* Where the samples of an echoed order are used first: what a node has read stays in its page cache, so that it counts
 * as the owner of every repeat, whichever node keeps the sample. */
#ifndef FS_PLAN_USES_H
#define FS_PLAN_USES_H

#include <stdbool.h>
#include <stdint.h>

enum { NOT_USED = UINT16_MAX };

struct uses {
    uint16_t *first; /* by sample: the node, or NOT_USED */
    uint8_t *here;   /* by sample: how often the batch at hand has it, 2: or oftener; all are 0 between batches */
    uint32_t samples;
};

/* Bytes that `count` samples take. */
uint64_t uses_bytes(uint32_t samples);
int uses_init(struct uses *uses, uint32_t samples); /* -ENOMEM */
void uses_fini(struct uses *uses);
void uses_forget(struct uses *uses); /* none was used */

/* Was it there already? */
static inline bool uses_mark(struct uses *uses, uint32_t sample)
{
    uint8_t *here = &uses->here[sample];
    bool was = *here > 0;
    *here = was ? 2 : 1;
    return was;
}

static inline void uses_unmark(struct uses *uses, const uint32_t *batch, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        uses->here[batch[i]] = 0;
}

#endif
