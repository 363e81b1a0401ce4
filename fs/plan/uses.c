/* Two tables, indexed by sample. */
#include "fs/plan/uses.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint64_t uses_bytes(uint32_t samples)
{
    return samples * (uint64_t)(sizeof(uint16_t) + sizeof(uint8_t));
}

int uses_init(struct uses *uses, uint32_t samples)
{
    *uses = (struct uses){.first = malloc((samples + 1ul) * sizeof *uses->first),
                          .here = calloc(samples + 1ul, sizeof *uses->here),
                          .samples = samples};
    if (!uses->first || !uses->here) {
        uses_fini(uses);
        return -ENOMEM;
    }
    uses_forget(uses);
    return 0;
}

void uses_forget(struct uses *uses)
{
    memset(uses->first, 0xff, uses->samples * sizeof *uses->first);
}

void uses_fini(struct uses *uses)
{
    free(uses->first);
    free(uses->here);
    *uses = (struct uses){0};
}
