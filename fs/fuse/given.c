/* Ranges of returned readahead, in sets by the span where they begin. */
#include "fs/fuse/given.h"

#include "fs/wire/units.h"

static struct given *given_set(struct given_table *t, uint32_t file, uint64_t offset)
{
    uint64_t key = ((uint64_t)file << 32) + offset / SPAN_BYTES;
    return t->range[key * 0x9e3779b97f4a7c15u >> 55];
}
_Static_assert(GIVEN_SETS == 1 << (64 - 55), "given_set takes the upper nine bits");

void given_note(struct given_table *t, const struct given *range)
{
    given_set(t, range->file, range->offset)[t->count++ % GIVEN_WAYS] = *range;
}

static bool given_overlaps(const struct given *g, const struct given *range)
{
    return g->size && g->file == range->file && range->offset < g->offset + g->size &&
           g->offset < range->offset + range->size;
}

static bool is_folio(const struct given *g, const struct given *range)
{
    return range->size < g->size && !(range->size & (range->size - 1)) && range->offset % range->size == 0 &&
           range->offset >= g->offset && range->offset + range->size <= g->offset + g->size;
}

bool given_find(struct given_table *t, const struct given *range, bool *folio)
{
    uint64_t first = range->offset / SPAN_BYTES, last = (range->offset + range->size - 1) / SPAN_BYTES;
    bool found = false;
    for (uint64_t block = first ? first - 1 : 0; t->count && block <= last; block++) {
        const struct given *g = given_set(t, range->file, block * SPAN_BYTES);
        for (int i = 0; i < GIVEN_WAYS; i++) {
            if (!given_overlaps(&g[i], range))
                continue;
            found = true;
            *folio |= is_folio(&g[i], range);
        }
    }
    return found;
}
