/* The layout of the catalog file, and its hashes. */
#include "fs/catalog/catalog-inside.h"

#include <string.h>

const uint8_t format_size[PARTS] = {
    [PART_SCAN] = sizeof(struct format_scan),
    [PART_VERSIONS] = sizeof(int64_t),
    [PART_SEEN] = sizeof(struct format_seen),
    [PART_DIRECTORIES] = sizeof(struct format_directory),
    [PART_FILES] = sizeof(struct format_file),
    [PART_LINKS] = sizeof(struct format_link),
    [PART_ATTRIBUTES] = sizeof(struct format_attribute),
    [PART_NAMES] = 1,
};

static bool counts_fit(const struct format_section section[PARTS])
{
    return section[PART_DIRECTORIES].count >= 1 && section[PART_DIRECTORIES].count <= FORMAT_COUNT_MOST &&
           section[PART_SCAN].count == section[PART_DIRECTORIES].count &&
           section[PART_FILES].count <= FORMAT_COUNT_MOST &&
           section[PART_VERSIONS].count == section[PART_FILES].count &&
           section[PART_SEEN].count == section[PART_FILES].count && section[PART_LINKS].count <= FORMAT_COUNT_MOST &&
           section[PART_ATTRIBUTES].count <= UINT32_MAX && section[PART_NAMES].count >= 1 &&
           section[PART_NAMES].count <= FORMAT_NAMES_MOST;
}

uint64_t format_layout(struct format_section section[PARTS])
{
    if (!counts_fit(section))
        return 0;
    uint64_t end = sizeof(struct format_header);
    for (int part = 0; part < PARTS; part++) {
        section[part].offset = (end + FORMAT_ALIGNMENT - 1) / FORMAT_ALIGNMENT * FORMAT_ALIGNMENT;
        end = section[part].offset + section[part].count * format_size[part];
    }
    return end;
}

struct digest format_digest(const void *bytes)
{
    const struct format_header *header = bytes;
    uint64_t from = header->section[PART_DIRECTORIES].offset;
    uint64_t seed = hash64(header->section, sizeof header->section, 0);
    return hash128((const char *)bytes + from, header->length - from, seed);
}

struct digest format_versions(const void *bytes)
{
    const struct format_header *header = bytes;
    const struct format_section *section = &header->section[PART_VERSIONS];
    uint64_t seed = hash64(&header->digest, sizeof header->digest, 0);
    return hash128((const char *)bytes + section->offset, section->count * format_size[PART_VERSIONS], seed);
}

struct digest format_checksum(const void *bytes)
{
    struct format_header header;
    memcpy(&header, bytes, sizeof header);
    memset(&header.checksum, 0, sizeof header.checksum);
    uint64_t seed = hash64(&header, sizeof header, 0);
    size_t to = header.section[PART_DIRECTORIES].offset;
    return hash128((const char *)bytes + sizeof header, to - sizeof header, seed);
}
