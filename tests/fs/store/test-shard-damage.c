/* Shards whose storage fails: flipped and missing bytes of every file, while closed and while open, and a full disk.
 * Whatever happens, what is read is right or is not there. */
#include "tests/fs/store/filling.h"
#include "tests/fs/store/images.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/hash.h"
#include "fs/store/rocks-inside.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define MIB ((uint64_t)1 << 20)
enum { FILES = 24 };
#if __SANITIZE_THREAD__
enum { SPARSE = 10 }; /* races do not depend on the byte that is damaged */
#else
enum { SPARSE = 1 };
#endif

static const char *directory[TIERS];

static struct shard *open_one(const struct filling *f, enum tier_name tier)
{
    return filling_open_tier(f, tier, directory[tier], 64 * MIB);
}

static void begin(struct filling *f)
{
    char name[64];
    filling_begin(f);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "%s-%03d", i % 3 ? "random" : "text", i);
        filling_add(f, name, i < 16 ? (uint64_t)(i * 1000 + 1) : (uint64_t)(i * 9000));
    }
    filling_scan(f);
}

/* A tier that holds all of them. */
static struct shard *begin_filled(struct filling *f, enum tier_name tier)
{
    begin(f);
    struct shard *s = open_one(f, tier);
    filling_put_all(f, s);
    return s;
}

static bool is_segment(const char *path)
{
    size_t n = strlen(path);
    return n > 4 && strcmp(path + n - 4, ".sst") == 0;
}

static void take_images(enum tier_name tier)
{
    char db[512];
    images_end();
    snprintf(db, sizeof db, "%s/" ROCKS_DATABASE, directory[tier]);
    images_take(db);
}

static void end(struct filling *f, enum tier_name tier)
{
    images_end();
    dir_remove_tree(AT_FDCWD, directory[tier]);
    filling_end(f);
}

/* Files are dense at their end, where RocksDB keeps what describes the rest. */
static size_t next_position(size_t at, size_t n)
{
    size_t dense = n > 6000 ? n - 6000 : 0;
    size_t step = (n > 100000 ? n / 150 + 1 : 37) * SPARSE;
    return at < dense ? (at + step > dense ? dense : at + step) : at + 61 * SPARSE;
}

static void test_closed(enum tier_name tier)
{
    struct filling f;
    struct shard *s = begin_filled(&f, tier);
    shard_close(s);
    take_images(tier);
    int wrong = 0, tries = 0, lost = 0, unusable = 0;
    for (int i = 0; i < images; i++)
        for (size_t at = 0; at < image[i].bytes.length; at = next_position(at, image[i].bytes.length)) {
            images_put_back(directory[tier]);
            flip_file(image[i].path, at, (char)(1 << tries % 8));
            s = open_one(&f, tier);
            struct outcome o = filling_check_all(&f, s);
            wrong += o.wrong;
            lost += o.absent > 0;
            unusable += filling_status(s, tier).state != TIER_OPEN;
            if (tries++ % 16 == 0) /* and it can be filled again */
                wrong += filling_put_all(&f, s) != 0 || filling_check_all(&f, s).right != FILES;
            shard_close(s);
        }
    is_int(wrong, 0, "%s tier: no wrong byte after %d flips while closed", tier_names[tier], tries);
    ok(lost > 0, "some were noticed: %d", lost);
    is_int(unusable, 0, "the tier could be used after each");
    end(&f, tier);
}

static int check_lists(enum tier_name tier)
{
    CLEANUP_STR struct str why = STR_INIT;
    return rocks_check_lists(directory[tier], &why);
}

/* RocksDB itself notices most of this, but not all, and some versions hang: so each is found before. */
static void test_list(enum tier_name tier)
{
    struct filling f;
    struct shard *s = begin_filled(&f, tier);
    shard_close(s);
    take_images(tier);
    const struct image *list = image;
    while (list < image + images && !strstr(list->path, "/MANIFEST-"))
        list++;
    if (list == image + images)
        bail_out("no MANIFEST");
    const unsigned char *bytes = (const unsigned char *)list->bytes.data;
    size_t pieces = 0, missed = 0, at = 0, n;
    is_int(check_lists(tier), 0, "%s tier: the lists of a database are sound", tier_names[tier]);
    for (; at + 7 < list->bytes.length && bytes[at + 6]; at += n, pieces++) {
        n = 7 + bytes[at + 4] + 256u * bytes[at + 5];
        for (size_t i = 0; i < n; i++) {
            if (i == 4 || i == 5) /* another length may mean that the rest is missing */
                continue;
            flip_file(list->path, at + i, (char)(1 << (i + pieces) % 8));
            missed += check_lists(tier) != -EBADMSG;
            flip_file(list->path, at + i, (char)(1 << (i + pieces) % 8));
        }
    }
    ok(pieces > 2, "the list of files has %zu pieces", pieces);
    is_uint(missed, 0, "each byte of them that is wrong is noticed");
    is_int(check_lists(tier), 0, "and all is as it was");
    ok(truncate(list->path, (off_t)at - 1) == 0 && check_lists(tier) == 0,
       "a last piece that is cut off is not damage");
    end(&f, tier);
}

static void test_truncated(enum tier_name tier)
{
    struct filling f;
    struct shard *s = begin_filled(&f, tier);
    shard_close(s);
    take_images(tier);
    for (int i = 0; i < images; i++) {
        images_put_back(directory[tier]);
        if (truncate(image[i].path, (off_t)(image[i].bytes.length / 2)) < 0)
            bail_out("truncate");
        s = open_one(&f, tier);
        is_int(filling_check_all(&f, s).wrong, 0, "%s cut in half", strrchr(image[i].path, '/') + 1);
        shard_close(s);
        images_put_back(directory[tier]);
        unlink(image[i].path);
        s = open_one(&f, tier);
        is_int(filling_check_all(&f, s).wrong, 0, "%s removed", strrchr(image[i].path, '/') + 1);
        filling_put_all(&f, s);
        is_int(filling_check_all(&f, s).right, FILES, "and filled again");
        shard_close(s);
    }
    end(&f, tier);
}

static void test_open(enum tier_name tier)
{
    struct filling f;
    struct shard *s = begin_filled(&f, tier);
    shard_flush(s);
    take_images(tier);
    int wrong = 0;
    for (int i = 0; i < images; i++)
        for (size_t at = 0; is_segment(image[i].path) && at + 6000 < image[i].bytes.length; at += 20011)
            flip_file(image[i].path, at, 0x10);
    struct outcome o = filling_check_all(&f, s);
    wrong += o.wrong;
    struct tier_status status = filling_status(s, tier);
    ok(o.absent > 0 && status.bad_values > 0, "%s tier: damage under way is noticed: %d files, %ju values",
       tier_names[tier], o.absent, (uintmax_t)status.bad_values);
    wrong += filling_put_all(&f, s) != 0;
    is_int(wrong, 0, "nothing is wrong");
    is_int(filling_check_all(&f, s).right, FILES, "and all is filled again");
    shard_reclaim(s);
    shard_flush(s);
    is_int(filling_check_all(&f, s).right, FILES, "also after a reclaim");
    shard_close(s);
    s = open_one(&f, tier);
    is_int(filling_check_all(&f, s).wrong, 0, "and a restart");
    shard_close(s);
    end(&f, tier);
}

/* Also what describes the values in a file, which in a mapped one is read where it lies. */
static void test_open_everywhere(enum tier_name tier, bool restarted)
{
    struct filling f;
    struct shard *s = begin_filled(&f, tier);
    shard_flush(s);
    if (restarted) {
        shard_close(s);
        s = open_one(&f, tier);
    }
    take_images(tier);
    int wrong = 0;
    for (int i = 0; i < images; i++)
        for (size_t at = 0; is_segment(image[i].path) && at < image[i].bytes.length; at += 7)
            flip_file(image[i].path, at, (char)(1 << at % 8));
    wrong += filling_check_all(&f, s).wrong;
    wrong += filling_put_all(&f, s) != 0;
    shard_reclaim(s);
    shard_flush(s);
    is_int(wrong + filling_check_all(&f, s).wrong, 0,
           "%s tier, %s: every seventh byte of its segments is damaged under way", tier_names[tier],
           restarted ? "opened again" : "just filled");
    is_int(filling_check_all(&f, s).right, FILES, "and all is filled again");
    shard_close(s);
    end(&f, tier);
}

/* The index record of a segment is given other contents, and the checksum of those. */
static void forge_index(const char *path)
{
    enum { SUM = 48, RUNS = 56, RUN = 32, RUN_FILE = 16 };
    CLEANUP_STR struct str bytes = STR_INIT;
    uint32_t runs, values, segment, no_file = 1000000;
    if (file_read(AT_FDCWD, path, 64 * MIB, &bytes))
        bail_out("read %s", path);
    char *record = bytes.data + bytes.length - 8;
    while (record > bytes.data && memcmp(record, "dealfsIX", 8) != 0)
        record--;
    memcpy(&segment, record + 12, sizeof segment);
    memcpy(&runs, record + 16, sizeof runs);
    memcpy(&values, record + 20, sizeof values);
    for (uint32_t i = 0; i < runs; i++)
        memcpy(record + RUNS + i * RUN + RUN_FILE, &no_file, sizeof no_file);
    memset(record + SUM, 0, sizeof(uint64_t));
    uint64_t sum = hash64(record, RUNS + runs * RUN + values * 8, segment);
    memcpy(record + SUM, &sum, sizeof sum);
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || file_write_all(fd, bytes.data, bytes.length))
        bail_out("write %s", path);
}

/* It says that the segment has nothing of what was read from it before. */
static void test_forged(enum tier_name tier)
{
    struct filling f;
    struct shard *s = begin_filled(&f, tier);
    shard_flush(s);
    take_images(tier);
    for (int i = 0; i < images; i++)
        if (is_segment(image[i].path))
            forge_index(image[i].path);
    ok(shard_drop(s, FILES - 1, 0), "%s tier: a file is dropped", tier_names[tier]);
    is_int(shard_reclaim(s), 0, "and an index that was forged is read");
    struct outcome o = filling_check_all(&f, s);
    ok(o.wrong == 0 && o.absent == FILES, "what it does not name is not there: %d", o.absent);
    is_int(filling_put_all(&f, s), 0, "it is put again");
    is_int(filling_check_all(&f, s).right, FILES, "and is there");
    shard_close(s);
    end(&f, tier);
}

static void count_held(const struct filling *f, struct shard *s, int *held, int *wrong)
{
    for (uint32_t file = 0; file < catalog_files(f->catalog); file++) {
        int error = filling_check_file(f, s, file);
        *held += error == 0;
        *wrong += error != 0 && error != -ENOENT;
        *wrong += (error == 0) != (shard_where(s, file, 0) != TIERS);
    }
}

static void fill_disk(enum tier_name tier, const char *disk, const char *size)
{
    struct filling f;
    int wrong = 0, held = 0;
    filling_begin(&f);
    filling_add_many(&f, "random", 600, 100000);
    filling_scan(&f);
    struct shard *s = filling_open_tier(&f, tier, disk, 256 * MIB);
    is_int(filling_put_all(&f, s), -ENOSPC, "%s tier on a disk of %s: no room in the end", tier_names[tier], size);
    shard_flush(s);
    struct tier_status status = filling_status(s, tier);
    ok(status.state == TIER_CLOSED && status.error == ENOSPC, "it is closed and says why: state %d, %s", status.state,
       strerror(status.error));
    count_held(&f, s, &held, &wrong);
    is_int(wrong, 0, "what it holds is right");
    diag("%d files are held", held);
    shard_close(s);
    s = filling_open_tier(&f, tier, disk, 256 * MIB);
    is_int(filling_check_all(&f, s).wrong, 0, "also after a restart");
    shard_close(s);
    filling_end(&f);
}

static void test_full(enum tier_name tier, const char *size)
{
    char options[64];
    const char *disk = test_path("full");
    dir_make(disk, 0700);
    snprintf(options, sizeof options, "size=%s", size);
    if (mount("tmpfs", disk, "tmpfs", 0, options) < 0) {
        skip(4, "cannot mount a tmpfs: %s", strerror(errno));
        return;
    }
    fill_disk(tier, disk, size);
    if (umount2(disk, MNT_DETACH) < 0)
        fail("umount: %s", strerror(errno));
}

static void test_no_directory(void)
{
    struct filling f;
    begin(&f);
    write_file(test_path("file"), "x", 1);
    struct shard *s = filling_open(&f, test_path("file/tier"), 16 * MIB, "/proc/self/nothing", 16 * MIB);
    for (int i = 0; i < TIERS; i++) {
        struct tier_status status = filling_status(s, (enum tier_name)i);
        ok(status.state == TIER_FAILED && status.error, "a directory that cannot be: %s", strerror(status.error));
    }
    is_int(filling_put_file(&f, s, 0), -ENOSPC, "takes nothing");
    is_int(filling_check_file(&f, s, 0), -ENOENT, "holds nothing");
    shard_reclaim(s);
    shard_flush(s);
    shard_close(s);
    filling_end(&f);
}

int main(void)
{
    directory[TIER_RAM] = filling_ram();
    directory[TIER_SSD] = test_path("ssd");
    filling_log(); /* thousands of lines about damage */
    for (int tier = 0; tier < TIERS; tier++) {
        test_closed((enum tier_name)tier);
        test_list((enum tier_name)tier);
        test_truncated((enum tier_name)tier);
        test_open((enum tier_name)tier);
        test_open_everywhere((enum tier_name)tier, false);
        test_open_everywhere((enum tier_name)tier, true);
        test_forged((enum tier_name)tier);
        test_full((enum tier_name)tier, "1M");
        test_full((enum tier_name)tier, "12M");
        test_full((enum tier_name)tier, "30M");
    }
    test_no_directory();
    return done_testing();
}
