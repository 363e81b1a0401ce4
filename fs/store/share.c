/* Counting a share: once over all extents. */
#include "fs/store/share.h"

#include "fs/store/span.h"

static uint64_t count_file(const struct share *share, uint32_t file, uint64_t size)
{
    uint64_t bytes = 0;
    for (uint64_t from = 0; from < size; from += EXTENT_BYTES) {
        uint64_t rest = size - from;
        if (share_has(share, file, from))
            bytes += rest < EXTENT_BYTES ? rest : EXTENT_BYTES;
    }
    return bytes;
}

void share_count(const struct share *share, const struct catalog *catalog, uint64_t *files, uint64_t *bytes)
{
    *files = catalog_files(catalog);
    *bytes = catalog_bytes(catalog);
    if (!share->keeps)
        return;
    *files = *bytes = 0;
    for (uint32_t file = 0; file < catalog_files(catalog); file++) {
        *files += share_has(share, file, 0);
        *bytes += count_file(share, file, catalog_file(catalog, file).size);
    }
}
