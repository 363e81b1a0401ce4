/* Any bytes as a catalog file: refused, or everything in it can be looked at. The hashes are made to fit first, so that
 * the checks behind them are what is tried. */
#include "fs/catalog/catalog-inside.h"
#include "fs/catalog/samples.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static volatile uint64_t sink; /* what was read counts as used */

static void touch(const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sink += ((const uint8_t *)bytes)[i];
}

static void look_at(const struct catalog *c, uint64_t ino)
{
    char path[512];
    struct stat st;
    size_t length;
    uint64_t found;
    const char *name = catalog_name(c, ino, &length);
    touch(name, length + 1);
    if (catalog_stat(c, ino, &st) == 0)
        sink += (uint64_t)st.st_size;
    const char *target = catalog_link_target(c, ino, &length);
    if (target)
        touch(target, length + 1);
    if (catalog_path(c, ino, path, sizeof path) >= 0 && catalog_find(c, path, strlen(path), &found) != 0)
        abort(); /* names are sorted, so what is there is found */
    for (uint64_t place = 0; catalog_child(c, ino, place, &found) == 0; place++)
        if (catalog_parent(c, found) != ino)
            abort();
}

static void look_at_files(const struct catalog *c)
{
    for (uint32_t f = 0; f < catalog_files(c); f++) {
        struct digest identity = catalog_file_identity(c, f);
        sink += catalog_file(c, f).size + catalog_file_seed(c, f) + identity.byte[0];
    }
}

static void look_at_lists(const struct catalog *c)
{
    struct samples *list[] = {samples_all(c), samples_imagefolder(c)};
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        struct str text = STR_INIT;
        if (list[i] && samples_text_read(list[i], 0, SIZE_MAX, &text) == 0 &&
            text.length != samples_text_length(list[i]))
            abort();
        str_fini(&text);
        samples_put(list[i]);
    }
}

/* The table of sections is made to fit too: else hardly any input would pass it. */
static void mend(char *image, size_t n)
{
    struct format_header *header = (void *)image;
    memcpy(header->magic, FORMAT_MAGIC, sizeof header->magic);
    header->version = FORMAT_VERSION;
    header->endian = FORMAT_ENDIAN;
    header->length = n;
    if (format_layout(header->section) != n)
        return;
    header->digest = format_digest(image);
    header->versions = format_versions(image);
    header->checksum = format_checksum(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *image = malloc(n ? n : 1);
    struct catalog *c;
    if (!image)
        return 0;
    memcpy(image, data, n);
    if (n >= sizeof(struct format_header))
        mend(image, n);
    if (catalog_open_memory(image, n, &c) == 0) {
        for (uint64_t ino = 0; ino <= catalog_inodes(c) + 1; ino++)
            look_at(c, ino);
        look_at_files(c);
        look_at_lists(c);
        catalog_close(c);
    }
    free(image);
    return 0;
}
