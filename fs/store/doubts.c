#include "fs/store/doubts.h"

#include <errno.h>
#include <stdlib.h>

int doubts_init(struct doubts *d, const struct catalog *scanned)
{
    uint32_t files = catalog_files(scanned);
    d->file = calloc(files ? files : 1, sizeof *d->file);
    if (!d->file)
        return -ENOMEM;
    for (uint32_t file = 0; file < files; file++)
        if (catalog_was_excused(scanned, file))
            doubts_change(d, file, DOUBT_NONE, DOUBT_OPEN);
    return 0;
}

void doubts_fini(struct doubts *d)
{
    free(d->file);
}

void doubts_change(struct doubts *d, uint32_t file, enum doubt from, enum doubt to)
{
    uint8_t expected = (uint8_t)from;
    if (atomic_compare_exchange_strong(&d->file[file], &expected, (uint8_t)to))
        atomic_store_explicit(&d->any, true, memory_order_release);
}
