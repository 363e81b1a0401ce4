/* libFuzzer target: any bytes as a layout file are refused, or everything in it can be looked at. Every
 * second input gets a header and hashes that fit, so that the checks behind them are what is tried. */
#include "fs/world/layout-inside.h"

#include "tests/fs/world/worlds.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static volatile uint64_t sink; /* what was read counts as used */

static void look_at(const struct layout *d, uint64_t extents)
{
    for (uint32_t i = 0; i < layout_nodes(d); i++) {
        const struct layout_record *node = layout_node(d, i);
        sink += strlen(node->id) + strlen(node->host) + layout_owned(d, i);
        if (strlen(node->id) != NODE_ID - 1 || layout_group(d, i) >= layout_groups(d))
            abort();
    }
    for (uint32_t group = 0; group < layout_groups(d); group++)
        for (uint64_t e = 0; e < extents; e++) {
            uint32_t owner = layout_owner(d, group, e);
            if (owner != NO_OWNER && layout_group(d, owner) != group)
                abort();
        }
}

/* An image of the length that it must have, whose records and owners are the input's bytes, repeated. */
static char *make_image(const uint8_t *data, size_t n, const struct sizes *sizes, size_t *length)
{
    uint32_t nodes = data[1] % 5 + 1, groups = data[2] % nodes + 1;
    uint64_t extents = extents_count(sizes->extents);
    *length = layout_length(extents, nodes, groups);
    char *image = malloc(*length);
    if (!image)
        return NULL;
    for (size_t i = 0; i < *length; i++)
        image[i] = n > 3 ? (char)data[3 + i % (n - 3)] : 0;
    struct layout_header *header = (void *)image;
    struct layout_record *record = (void *)(header + 1);
    *header = (struct layout_header){.version = LAYOUT_VERSION,
                                     .endian = LAYOUT_ENDIAN,
                                     .length = *length,
                                     .catalog = *catalog_digest(sizes->catalog),
                                     .extents = extents,
                                     .nodes = nodes,
                                     .groups = groups};
    memcpy(header->magic, LAYOUT_MAGIC, sizeof header->magic);
    for (uint32_t i = 0; i < nodes && data[0] & 2; i++)
        record[i] = (struct layout_record){.id = "0123456789abcdef0123456789ABCDEF", .capacity = record[i].capacity};
    header->digest = layout_digest_of(image);
    header->checksum = layout_checksum_of(image);
    return image;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const uint64_t size[] = {0, 1, 3 * (uint64_t)EXTENT_BYTES, 5};
    static struct sizes sizes;
    struct layout *d;
    size_t length = n;
    if (!sizes.catalog)
        sizes_begin(&sizes, size, sizeof size / sizeof *size);
    if (n < 3)
        return 0;
    char *image = data[0] & 1 ? make_image(data, n, &sizes, &length) : malloc(n);
    if (!image)
        return 0;
    if (!(data[0] & 1))
        memcpy(image, data, n);
    if (layout_from_memory(image, length, sizes.catalog, &d) == 0) {
        look_at(d, extents_count(sizes.extents));
        layout_close(d);
    }
    free(image);
    return 0;
}
