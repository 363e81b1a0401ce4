/* A catalog file that is not what was written is refused, also when its hashes were made to fit. */
#include "fs/catalog/catalog-inside.h"
#include "tests/fs/catalog/source.h"

#include <stdlib.h>

static struct str good = STR_INIT; /* the image of a catalog */
static uint64_t *image;            /* a copy to spoil */

static struct format_header *header(void)
{
    return (void *)image;
}

static void *part(enum format_part p)
{
    return (char *)image + header()->section[p].offset;
}

static void reset(void)
{
    memcpy(image, good.data, good.length);
}

static void reseal(void)
{
    header()->digest = format_digest(image);
    header()->versions = format_versions(image);
    header()->checksum = format_checksum(image);
}

static int open_image(size_t n)
{
    struct catalog *c = NULL;
    int error = catalog_open_memory(image, n, &c);
    catalog_close(c);
    return error;
}

static void make_good(void)
{
    const char *root = test_path("source"), *path = test_path("catalog");
    source_add(root, "a/b/one", 1);
    source_add(root, "a/b/two", 2);
    source_add(root, "a/c/", 0);
    source_add(root, "d/three", 3);
    source_add(root, "four", 4);
    source_link(root, "a/link", "b/one");
    source_link(root, "link", "d");
    catalog_close(source_catalog(root, path));
    int error = file_read(AT_FDCWD, path, 1 << 20, &good);
    image = aligned_alloc(64, (good.length + 63) / 64 * 64);
    if (error || !image)
        bail_out("read %s: %s", path, strerror(-error));
    reset();
}

static void test_plain_damage(void)
{
    is_int(open_image(good.length), 0, "the image opens as it is");
    unsigned opened = 0;
    for (size_t i = 0; i < good.length; i++) {
        ((unsigned char *)image)[i] ^= 1u << i % 8;
        opened += open_image(good.length) != -EBADMSG;
        reset();
    }
    is_uint(opened, 0, "with any bit flipped it is refused (%zu bytes)", good.length);
    for (size_t n = 0; n < good.length; n++)
        opened += open_image(n) != -EBADMSG;
    is_uint(opened, 0, "cut at any length it is refused");
    struct catalog *c;
    is_int(catalog_open_memory((char *)image + 1, good.length - 1, &c), -EINVAL, "it must be aligned");
}

static void test_files(void)
{
    struct catalog *c;
    is_int(catalog_open(test_path("none"), &c), -ENOENT, "a file that is not there");
    is_int(catalog_open(test_directory(), &c), -EBADMSG, "a directory");
    file_write_atomic(AT_FDCWD, test_path("empty"), "", 0, 0600);
    is_int(catalog_open(test_path("empty"), &c), -EBADMSG, "an empty file");
    file_write_atomic(AT_FDCWD, test_path("cut"), good.data, good.length - 1, 0600);
    is_int(catalog_open(test_path("cut"), &c), -EBADMSG, "a truncated file");
    file_write_atomic(AT_FDCWD, test_path("longer"), good.data, good.length + 1, 0600);
    is_int(catalog_open(test_path("longer"), &c), -EBADMSG, "a longer file");
}

static void refused(const char *what)
{
    reseal();
    is_int(open_image(good.length), -EBADMSG, "refused with hashes that fit: %s", what);
    reset();
}

#define SPOIL(p, type, index, change)                                                                                  \
    do {                                                                                                               \
        type *r = (type *)part(p) + (index);                                                                           \
        r->change;                                                                                                     \
        refused(#type " " #index " " #change);                                                                         \
    } while (0)

static void test_header(void)
{
    reseal();
    is_int(open_image(good.length), 0, "sealing the good image changes nothing");
    header()->version++;
    refused("another version");
    header()->endian = 0x04030201;
    refused("another byte order");
    header()->bytes++;
    refused("another sum of sizes");
    header()->section[PART_SEEN].count--;
    refused("fewer records of what was seen");
    header()->section[PART_VERSIONS].count--;
    refused("fewer versions");
    header()->section[PART_NAMES].count--;
    refused("fewer names");
    header()->section[PART_FILES].count--;
    refused("fewer files");
    header()->section[PART_ATTRIBUTES].count--;
    refused("fewer attributes");
}

/* Directories are: root, a, d, a/b, a/c. */
static void test_records(void)
{
    SPOIL(PART_DIRECTORIES, struct format_directory, 0, parent = 2);
    SPOIL(PART_DIRECTORIES, struct format_directory, 1, parent = 2);
    SPOIL(PART_DIRECTORIES, struct format_directory, 1, parent = 4);
    SPOIL(PART_DIRECTORIES, struct format_directory, 1, parent = 0);
    SPOIL(PART_DIRECTORIES, struct format_directory, 3, parent = 3);
    SPOIL(PART_DIRECTORIES, struct format_directory, 0, directories = 1);
    SPOIL(PART_DIRECTORIES, struct format_directory, 0, directories = 0);
    SPOIL(PART_DIRECTORIES, struct format_directory, 4, directories = 1);
    SPOIL(PART_DIRECTORIES, struct format_directory, 0, directories = UINT32_MAX);
    SPOIL(PART_DIRECTORIES, struct format_directory, 1, first_directory = 2);
    SPOIL(PART_DIRECTORIES, struct format_directory, 2, first_file = 0);
    SPOIL(PART_DIRECTORIES, struct format_directory, 3, first_file = UINT32_MAX);
    SPOIL(PART_DIRECTORIES, struct format_directory, 3, files = 3);
    SPOIL(PART_DIRECTORIES, struct format_directory, 3, files = UINT32_MAX);
    SPOIL(PART_DIRECTORIES, struct format_directory, 3, files = 1);
    SPOIL(PART_DIRECTORIES, struct format_directory, 0, links = 2);
    SPOIL(PART_DIRECTORIES, struct format_directory, 1, first_link = 0);
    SPOIL(PART_DIRECTORIES, struct format_directory, 2, attribute = 99);
    SPOIL(PART_DIRECTORIES, struct format_directory, 2, name = 0);
    SPOIL(PART_DIRECTORIES, struct format_directory, 0, name = name_pack(0, 1));
    SPOIL(PART_FILES, struct format_file, 0, parent = 0);
    SPOIL(PART_FILES, struct format_file, 0, parent = 99);
    SPOIL(PART_FILES, struct format_file, 1, parent = 1);
    SPOIL(PART_FILES, struct format_file, 0, size = UINT64_MAX);
    SPOIL(PART_FILES, struct format_file, 2, attribute = 99);
    SPOIL(PART_FILES, struct format_file, 2, name = name_pack(1u << 30, 3));
    SPOIL(PART_FILES, struct format_file, 2, name |= 0xffffull << 48);
    SPOIL(PART_LINKS, struct format_link, 0, parent = 2);
    SPOIL(PART_LINKS, struct format_link, 0, target = 0);
    SPOIL(PART_LINKS, struct format_link, 1, target = name_pack(1u << 30, 3));
    SPOIL(PART_LINKS, struct format_link, 1, attribute = 99);
    SPOIL(PART_ATTRIBUTES, struct format_attribute, 0, mode |= S_IFIFO);
}

static void spoil_name(const char *name, const char *with, const char *what)
{
    char *names = part(PART_NAMES);
    char *at = memmem(names, header()->section[PART_NAMES].count, name, strlen(name) + 1);
    if (!at)
        bail_out("no %s in the image", name);
    memcpy(at, with, strlen(name));
    refused(what);
}

static void test_names(void)
{
    spoil_name("one", "o/e", "a slash in a name");
    spoil_name("one", "o\0e", "a NUL in a name");
    spoil_name("one", "zzz", "names out of order");
    spoil_name("one", "two", "the same name twice");
    spoil_name("d", ".", "a directory .");
    spoil_name("four", "link", "a file and a symlink of one name");
    spoil_name("b/one", "b\0one", "a NUL in a target");
    char *names = part(PART_NAMES);
    names[header()->section[PART_NAMES].count - 1] = 'x';
    refused("no NUL at the end");
}

int main(void)
{
    make_good();
    test_plain_damage();
    test_files();
    test_header();
    test_records();
    test_names();
    free(image);
    str_fini(&good);
    return done_testing();
}
