/* The layout's file: comes back as it was saved, and is refused where anything in it is not as it must be. */
#include "fs/world/layout-inside.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "tests/fs/world/worlds.h"
#include "tests/lib/tap.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { FILES = 30 };

static struct sizes sizes;
static struct str good = STR_INIT; /* the file */
static uint64_t *image;            /* a copy to spoil */

static struct layout_header *header(void)
{
    return (void *)image;
}

static struct layout_record *record(void)
{
    return (void *)(header() + 1);
}

static uint16_t *owner(void)
{
    return (void *)(record() + header()->nodes);
}

static void reset(void)
{
    memcpy(image, good.data, good.length);
}

static int open_image(size_t n)
{
    struct layout *d = NULL;
    int error = layout_from_memory(image, n, sizes.catalog, &d);
    layout_close(d);
    return error;
}

/* What was changed is sealed first, so that what is refused is the change and not the hash. */
static void refused(const char *what)
{
    header()->digest = layout_digest_of(image);
    header()->checksum = layout_checksum_of(image);
    is_int(open_image(good.length), -EBADMSG, "refused: %s", what);
    reset();
}

static void test_save(void)
{
    uint64_t size[FILES];
    struct dealt_world w;
    for (int i = 0; i < FILES; i++)
        size[i] = i % 10 ? 1000u * (unsigned)i : (uint64_t)i * EXTENT_BYTES / 4;
    sizes_begin(&sizes, size, FILES);
    world_begin(&w, &sizes, 2);
    for (uint32_t i = 0; i < 5; i++)
        world_add(&w, i, 100 << (10 + i));
    struct layout *d = world_deal(&w), *back = NULL;
    const char *path = test_path("layout");
    is_int(layout_open(path, sizes.catalog, &back), -ENOENT, "a file that is not there");
    is_int(layout_save(d, path), 0, "saved");
    is_int(layout_open(path, sizes.catalog, &back), 0, "opened");
    is_mem(layout_digest(back), layout_digest(d), sizeof(struct digest), "the same digest");
    unsigned wrong = 0;
    for (uint32_t group = 0; group < 2; group++)
        for (uint64_t e = 0; e < extents_count(sizes.extents); e++)
            wrong += layout_owner(back, group, e) != layout_owner(d, group, e);
    is_uint(wrong, 0, "the same owners");
    for (uint32_t i = 0; i < 5; i++) {
        wrong += memcmp(layout_node(d, i), layout_node(back, i), sizeof(struct layout_record)) != 0;
        wrong += layout_owned(d, i) != layout_owned(back, i);
    }
    is_uint(wrong, 0, "the same nodes");
    struct stat st;
    ok(stat(path, &st) == 0 && (st.st_mode & 07777) == 0600, "nobody else may read it");
    layout_close(back);
    layout_close(d);
    world_end(&w);
    if (file_read(AT_FDCWD, path, 1 << 20, &good))
        bail_out("read %s", path);
    image = aligned_alloc(64, (good.length + 63) / 64 * 64);
    reset();
}

static void test_files(void)
{
    struct layout *d;
    is_int(layout_open(test_directory(), sizes.catalog, &d), -EBADMSG, "a layout");
    file_write_atomic(AT_FDCWD, test_path("empty"), "", 0, 0600);
    is_int(layout_open(test_path("empty"), sizes.catalog, &d), -EBADMSG, "an empty file");
    file_write_atomic(AT_FDCWD, test_path("short"), good.data, good.length - 1, 0600);
    is_int(layout_open(test_path("short"), sizes.catalog, &d), -EBADMSG, "a short one");
    static const uint64_t size[] = {1, 2};
    struct sizes other;
    sizes_begin(&other, size, 2);
    is_int(layout_open(test_path("layout"), other.catalog, &d), -EBADMSG, "of another catalog");
    sizes_end(&other);
    is_int(layout_save((struct layout[]){{.header = (void *)image, .length = good.length}}, test_path("no/where")),
           -ENOENT, "saved where it cannot be");
}

static void test_plain_damage(void)
{
    unsigned opened = 0;
    is_int(open_image(good.length), 0, "the image opens as it is");
    for (size_t i = 0; i < good.length; i++) {
        ((unsigned char *)image)[i] ^= 1u << i % 8;
        opened += open_image(good.length) != -EBADMSG;
        reset();
    }
    is_uint(opened, 0, "with any bit flipped it is refused (%zu bytes)", good.length);
    for (size_t n = 0; n < good.length; n++)
        opened += open_image(n) != -EBADMSG;
    is_uint(opened, 0, "cut at any length it is refused");
}

static void test_sealed_damage(void)
{
    owner()[3] = 5;
    refused("an owner that there is not");
    owner()[3] = 4;
    refused("an owner of the other group");
    owner()[header()->extents] = 0;
    refused("and the other way round");
    record()[1].id[3] = 'g';
    refused("an id that is none");
    record()[1].id[31] = '\0';
    refused("a short id");
    memset(record()[1].id, '0', sizeof record()[1].id);
    refused("a long id");
    memset(record()[1].host, 'h', NODE_HOST);
    refused("a long host");
    record()[1].host[40] = 'h';
    refused("bytes behind the host's name");
    record()[1].zero = 1;
    refused("what must be zero in a record");
    header()->zero[39] = 1;
    refused("what must be zero in the header");
    header()->version++;
    refused("another version");
    header()->nodes--;
    header()->extents += sizeof(struct layout_record) / 4;
    refused("other numbers of the same length");
    header()->catalog.byte[0] ^= 1;
    refused("another catalog");
    owner()[3] = NO_OWNER;
    header()->digest = layout_digest_of(image);
    header()->checksum = layout_checksum_of(image);
    is_int(open_image(good.length), 0, "but an extent may have no owner");
}

static void test_numbers(void)
{
    static const struct {
        uint64_t extents;
        uint32_t nodes, groups;
    } bad[] = {{1, 0, 1}, {1, 1, 0}, {1, 1, 2}, {UINT64_MAX / 2, 2, 2}, {UINT64_MAX, NODES_MOST, NODES_MOST}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        reset();
        header()->extents = bad[i].extents;
        header()->nodes = bad[i].nodes;
        header()->groups = bad[i].groups;
        is_int(open_image(good.length), -EBADMSG, "refused: %ju extents, %u nodes, %u groups",
               (uintmax_t)bad[i].extents, bad[i].nodes, bad[i].groups);
    }
    is_uint(layout_length(UINT64_MAX / 2, 1, 1), 0, "no file is that long");
    is_uint(layout_length(1000000, 16, 1), 128 + 16 * 128 + 2000000, "two bytes per sample");
}

int main(void)
{
    test_save();
    test_files();
    test_plain_damage();
    test_sealed_damage();
    test_numbers();
    free(image);
    str_fini(&good);
    sizes_end(&sizes);
    return done_testing();
}
