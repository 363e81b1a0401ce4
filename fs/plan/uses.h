/* Where the samples of an echoed order are used first. A node keeps what it has read in its page cache, so it counts as
 * the owner of every repeat, whichever node owns the sample. */
#ifndef FS_PLAN_USES_H
#define FS_PLAN_USES_H

#include <stdbool.h>
#include <stdint.h>

enum { NOT_USED = UINT16_MAX };

struct uses {
    uint16_t *first; /* per sample: the node, or NOT_USED */
    uint8_t *here;   /* per sample: how often the current batch has it, at most 2; all 0 between batches */
    uint32_t samples;
};

/* Bytes for `count` samples. */
uint64_t uses_bytes(uint32_t samples);
int uses_init(struct uses *uses, uint32_t samples); /* -ENOMEM */
void uses_fini(struct uses *uses);
void uses_forget(struct uses *uses); /* no sample was used */

/* Was it already marked? */
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
