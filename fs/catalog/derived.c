/* Implements derived.h. */
#include "fs/catalog/derived.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/catalog/catalog-inside.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#define DERIVED_MAGIC "DEALFSRZ"
enum { DERIVED_VERSION = 1 };

struct derived_header {
    char magic[8];
    uint32_t version, endian;
    uint64_t files;
    uint64_t length; /* of the whole file */
    struct derived_terms terms;
    /* of everything after the header, seeded with the hash of the header without this field */
    struct digest checksum;
};
_Static_assert(sizeof(struct derived_header) == 112, "header");
_Static_assert(sizeof(struct derived_record) == 24, "record");

/* Offset of the records; the original catalog follows them. */
static size_t records_at(void)
{
    return FORMAT_ALIGNMENT * 2;
}

static size_t catalog_at(uint64_t files)
{
    return (records_at() + files * sizeof(struct derived_record) + FORMAT_ALIGNMENT - 1) / FORMAT_ALIGNMENT *
           FORMAT_ALIGNMENT;
}

static struct digest checksum_of(const void *bytes, size_t length)
{
    struct derived_header header = *(const struct derived_header *)bytes;
    header.checksum = (struct digest){0};
    return hash128((const char *)bytes + sizeof header, length - sizeof header, hash64(&header, sizeof header, 0));
}

/* --- create, open, close --- */

static uint64_t key_of(const struct catalog *c, uint32_t file)
{
    struct digest version = catalog_file_version(c, file);
    return digest_head(&version);
}

int derived_create(int catalog, const struct derived_terms *terms, struct derived **derived)
{
    struct derived *d = calloc(1, sizeof *d);
    struct catalog *original;
    int error = d ? catalog_open_fd(catalog, &original) : -ENOMEM;
    if (error) {
        free(d);
        return error;
    }
    d->terms = *terms;
    d->original = original;
    d->files = catalog_files(original);
    d->bytes = calloc((size_t)d->files + 1, sizeof *d->record);
    d->record = d->bytes;
    if (!d->bytes) {
        derived_close(d);
        return -ENOMEM;
    }
    for (uint32_t file = 0; file < d->files; file++)
        d->record[file].key = key_of(original, file);
    *derived = d;
    return 0;
}

static int derived_check(struct derived *d)
{
    const struct derived_header *header = d->map;
    struct catalog *original;
    if (d->length < records_at() || memcmp(header->magic, DERIVED_MAGIC, sizeof header->magic) != 0 ||
        header->version != DERIVED_VERSION || header->endian != FORMAT_ENDIAN || header->length != d->length ||
        header->files > FORMAT_COUNT_MOST || catalog_at(header->files) > d->length)
        return -EBADMSG;
    struct digest checksum = checksum_of(d->map, d->length);
    if (memcmp(&checksum, &header->checksum, sizeof checksum) != 0)
        return -EBADMSG;
    int error = catalog_open_memory((char *)d->map + catalog_at(header->files), d->length - catalog_at(header->files),
                                    &original);
    if (error)
        return error;
    d->original = original;
    d->terms = header->terms;
    d->terms.library[sizeof d->terms.library - 1] = '\0';
    d->files = (uint32_t)header->files;
    d->record = (struct derived_record *)(void *)((char *)d->map + records_at());
    return catalog_files(original) == d->files ? 0 : -EBADMSG;
}

int derived_open(int fd, struct derived **derived)
{
    struct derived *d = calloc(1, sizeof *d);
    if (!d)
        return -ENOMEM;
    int error = file_map(fd, 1, &d->map, &d->length);
    if (error)
        d->map = NULL;
    else
        error = derived_check(d);
    if (error)
        derived_close(d);
    else
        *derived = d;
    return error;
}

void derived_close(struct derived *d)
{
    if (!d)
        return;
    KEEP_ERRNO;
    catalog_close((struct catalog *)d->original);
    if (d->map)
        munmap(d->map, d->length);
    free(d->bytes);
    free(d);
}

void derived_keep_in(struct derived *d, struct derived_record *memory, bool copied)
{
    if (copied)
        memcpy(memory, d->record, d->files * sizeof *memory);
    d->record = memory;
    free(d->bytes);
    d->bytes = NULL;
}

/* --- records --- */

static int by_key(const void *a, const void *b)
{
    uint64_t x = (*(const struct derived_record *const *)a)->key, y = (*(const struct derived_record *const *)b)->key;
    return x < y ? -1 : x > y;
}

/* The records of the old one, sorted; NULL: they cannot be used. */
static const struct derived_record **sort_records(const struct derived *d, const struct derived *old)
{
    const struct derived_record **sorted = NULL;
    if (old && memcmp(&d->terms, &old->terms, sizeof d->terms) == 0)
        sorted = malloc(((size_t)old->files + 1) * sizeof *sorted);
    for (uint32_t i = 0; sorted && i < old->files; i++)
        sorted[i] = &old->record[i];
    if (sorted)
        qsort(sorted, old->files, sizeof *sorted, by_key);
    return sorted;
}

uint32_t derived_adopt(struct derived *d, const struct derived *old, uint32_t most)
{
    CLEANUP_FREE const struct derived_record **sorted = sort_records(d, old);
    uint32_t unknown = 0;
    for (uint32_t file = 0; file < d->files; file++) {
        const struct derived_record *key = &d->record[file];
        const struct derived_record **found = sorted ? bsearch(&key, sorted, old->files, sizeof *sorted, by_key) : NULL;
        if (found && (*found)->outcome <= most)
            d->record[file] = **found;
        unknown += d->record[file].outcome == DERIVED_UNKNOWN;
    }
    return unknown;
}

uint64_t derived_length(const struct catalog *original)
{
    return catalog_at(catalog_files(original)) + original->header->length;
}

int derived_write(const struct derived *d, int directory, const char *name)
{
    size_t catalog = catalog_at(d->files), length = derived_length(d->original);
    CLEANUP_FREE char *bytes = calloc(1, length);
    struct derived_header header = {.magic = DERIVED_MAGIC,
                                    .version = DERIVED_VERSION,
                                    .endian = FORMAT_ENDIAN,
                                    .files = d->files,
                                    .length = length,
                                    .terms = d->terms};
    if (!bytes)
        return -ENOMEM;
    memcpy(bytes, &header, sizeof header);
    memcpy(bytes + records_at(), d->record, d->files * sizeof *d->record);
    memcpy(bytes + catalog, d->original->header, d->original->header->length);
    header.checksum = checksum_of(bytes, length);
    memcpy(bytes, &header, sizeof header);
    return file_write_atomic(directory, name, bytes, length, 0600);
}

int derived_write_original(const struct derived *d, const char *path)
{
    const struct format_header *header = d->original->header;
    return file_write_atomic(AT_FDCWD, path, header, header->length, 0600);
}

struct digest derived_digest(const struct derived *d)
{
    return hash128(d->record, d->files * sizeof *d->record, hash64(&d->terms, sizeof d->terms, 0));
}

/* --- the catalog --- */

void derived_put(const struct derived *d, uint32_t file, void *bytes)
{
    const struct format_header *header = bytes;
    const struct derived_record *record = &d->record[file];
    struct format_file *f = (void *)((char *)bytes + header->section[PART_FILES].offset);
    struct format_seen *seen = (void *)((char *)bytes + header->section[PART_SEEN].offset);
    int64_t *version = (void *)((char *)bytes + header->section[PART_VERSIONS].offset);
    if (record->outcome > DERIVED_MADE)
        return;
    f[file].size = record->outcome == DERIVED_MADE ? record->size : 0;
    seen[file].blocks = (f[file].size + 511) / 512;
    /* results with other terms, or from other bytes, have another version */
    version[file] = (int64_t)hash64(record, sizeof *record, hash64(&d->terms, sizeof d->terms, 0));
}

int derived_catalog(const struct derived *d, void **bytes, size_t *length)
{
    size_t n = d->original->header->length;
    char *copy = malloc(n);
    struct format_header *header = (void *)copy;
    if (!copy)
        return -ENOMEM;
    memcpy(copy, d->original->header, n);
    const struct format_file *f = (const void *)(copy + header->section[PART_FILES].offset);
    header->bytes = 0;
    for (uint32_t file = 0; file < d->files; file++) {
        derived_put(d, file, copy);
        header->bytes = format_sum(header->bytes, f[file].size);
    }
    header->digest = format_digest(copy);
    header->versions = format_versions(copy);
    header->checksum = format_checksum(copy);
    *bytes = copy;
    *length = n;
    return 0;
}
