/* The shard: fill, read, drop, reclaim, restart, another catalog, the budget; each on tmpfs and on a disk. */
#include "tests/fs/store/filling.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/store/rocks.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

static const char *ram, *ssd;

static struct shard *open_one(const struct filling *f, enum tier_name tier, uint64_t bytes)
{
    return filling_open_tier(f, tier, tier == TIER_RAM ? ram : ssd, bytes);
}

static void empty_tiers(void)
{
    dir_remove_tree(AT_FDCWD, ram);
    dir_remove_tree(AT_FDCWD, ssd);
}

static const uint64_t sizes[] = {1,
                                 4095,
                                 4096,
                                 VALUE_BYTES - 1,
                                 VALUE_BYTES,
                                 VALUE_BYTES + 1,
                                 MIB - 1,
                                 MIB + 1,
                                 PIECE_BYTES - 1,
                                 PIECE_BYTES,
                                 PIECE_BYTES + 1,
                                 10 * MIB + 77};
enum { KINDS = sizeof sizes / sizeof *sizes };

static void begin_all_sizes(struct filling *f)
{
    char name[64];
    empty_tiers();
    filling_begin(f);
    filling_add(f, "empty", 0);
    for (int i = 0; i < KINDS; i++) {
        snprintf(name, sizeof name, "random-%02d", i);
        filling_add(f, name, sizes[i]);
        snprintf(name, sizeof name, "text-%02d", i);
        filling_add(f, name, sizes[i]);
    }
    filling_scan(f);
}

static void begin_many(struct filling *f, int files, uint64_t size)
{
    empty_tiers();
    filling_begin(f);
    filling_add_many(f, "f", files, size);
    filling_scan(f);
}

static int count_right(const struct filling *f, struct shard *s)
{
    return filling_check_all(f, s).right;
}

static void test_bad_arguments(const struct filling *f, struct shard *s)
{
    struct room room;
    uint32_t big = filling_file(f, "random-11"), small = filling_file(f, "random-05");
    is_int(shard_reserve(s, filling_file(f, "empty"), 0, 1, &room), -EINVAL, "room for an empty file");
    is_int(shard_reserve(s, small, 0, VALUE_BYTES, &room), -EINVAL, "room for half of a part");
    is_int(shard_reserve(s, small, VALUE_BYTES, 1, &room), -EINVAL, "room for the other half");
    is_int(shard_reserve(s, big, 1, VALUE_BYTES, &room), -EINVAL, "room that begins within a part");
    is_int(shard_reserve(s, big, 0, 1000, &room), -EINVAL, "room that ends within a part");
    is_int(shard_reserve(s, big, 0, PIECE_BYTES + VALUE_BYTES, &room), -EINVAL, "room above a piece");
    is_int(shard_reserve(s, big, 11 * MIB, VALUE_BYTES, &room), -EINVAL, "room past the end");
    is_int(filling_check(f, s, big, 0, 1), -ENOENT, "nothing is held at first");
    ok(!shard_drop(s, big, 0), "what is not held cannot be dropped");
}

static void check_spans(const struct filling *f, struct shard *s, uint32_t file)
{
    unsigned seed = file;
    int wrong = 0;
    uint64_t size = filling_size(f, file);
    for (int i = 0; i < 40; i++) {
        uint64_t offset = (uint64_t)rand_r(&seed) % size;
        uint64_t length = 1 + (uint64_t)rand_r(&seed) % SPAN_BYTES;
        if (length > size - offset)
            length = size - offset;
        wrong += filling_check(f, s, file, offset, (uint32_t)length) != 0;
    }
    is_int(wrong, 0, "random spans of a file of %ju bytes", (uintmax_t)size);
}

/* The longest read of compressed values needs two buffers, not one per value. */
static void check_buffers(const struct filling *f, struct shard *s)
{
    struct span span = {filling_file(f, "text-11"), SPAN_BYTES, 100};
    struct answer answer = {0};
    enum tier_name slowest;
    is_int(shard_get(s, &span, TIER_SSD, &answer, &slowest), 0, "1 MiB of nine compressed values");
    ok(answer.pieces == ANSWER_VALUES && answer.pins <= 5, "of %d pieces, with %d pins", answer.pieces, answer.pins);
    answer_release(&answer);
    is_int(filling_check(f, s, span.file, span.offset, span.length), 0, "its bytes are right");
}

static void test_fill_and_restart(enum tier_name tier)
{
    struct filling f;
    struct room room;
    begin_all_sizes(&f);
    struct shard *s = open_one(&f, tier, 256 * MIB);
    is_int(filling_status(s, tier).state, TIER_OPEN, "a new %s tier is open", tier_names[tier]);
    test_bad_arguments(&f, s);
    is_int(filling_put_all(&f, s), 0, "all files are put");
    is_int(count_right(&f, s), 2 * KINDS, "and read from memory");
    uint32_t piece = filling_file(&f, "random-09"); /* RocksDB may take some pages more meanwhile */
    uint64_t held = filling_status(s, tier).held + PIECE_BYTES / 2;
    is_int(filling_put_file(&f, s, piece), 0, "a file is put a second time");
    ok(filling_status(s, tier).held < held, "which takes nothing");
    is_int(shard_reserve(s, piece, 0, (uint32_t)filling_size(&f, piece), &room), 0, "a room");
    shard_abandon(&room);
    ok(filling_status(s, tier).held < held, "that is abandoned");
    is_int(shard_flush(s), 0, "flush");
    is_int(count_right(&f, s), 2 * KINDS, "read from RocksDB");
    check_buffers(&f, s);
    for (uint32_t file = 1; file < catalog_files(f.catalog); file += 3)
        check_spans(&f, s, file);
    uint64_t parts = filling_status(s, tier).parts;
    shard_close(s);
    s = open_one(&f, tier, 256 * MIB);
    is_uint(filling_status(s, tier).parts, parts, "all parts are there after a restart");
    is_int(count_right(&f, s), 2 * KINDS, "and right");
    is_uint(filling_status(s, tier).bad_values, 0, "no value was bad");
    ok(shard_where(s, 1, 0) == tier, "held by the %s tier", tier_names[tier]);
    shard_close(s);
    filling_end(&f);
}

static void test_other_catalog(enum tier_name tier)
{
    struct filling f;
    begin_all_sizes(&f);
    struct shard *s = open_one(&f, tier, 256 * MIB);
    filling_put_all(&f, s);
    shard_close(s);
    filling_add(&f, "a-new-one", 5000); /* every number moves */
    filling_remove(&f, "random-02");
    filling_add(&f, "random-03", 70000);
    filling_add(&f, "random-11", 9 * MIB);
    filling_scan(&f);
    s = open_one(&f, tier, 256 * MIB);
    is_int(count_right(&f, s), 2 * KINDS - 3, "all unchanged files are kept, no other");
    ok(shard_where(s, filling_file(&f, "a-new-one"), 0) == TIERS, "a new file is not held");
    ok(shard_where(s, filling_file(&f, "random-03"), 0) == TIERS, "nor a changed one");
    is_int(shard_reclaim(s), 0, "reclaim");
    is_int(count_right(&f, s), 2 * KINDS - 3, "still there");
    filling_put_all(&f, s);
    shard_close(s);
    s = open_one(&f, tier, 256 * MIB);
    is_int(count_right(&f, s), 2 * KINDS, "filled up and restarted");
    shard_close(s);
    filling_end(&f);
}

static uint64_t disk_use(const char *directory)
{
    char command[4200];
    uint64_t bytes = 0;
    snprintf(command, sizeof command, "du -sB1 '%s'", directory);
    FILE *p = popen(command, "r");
    if (!p || fscanf(p, "%ju", &bytes) != 1)
        bail_out("du");
    pclose(p);
    return bytes;
}

static void test_reclaim(enum tier_name tier)
{
    enum { FILES = 300, SIZE = 100000 };
    struct filling f;
    begin_many(&f, FILES, SIZE);
    struct shard *s = open_one(&f, tier, 64 * MIB);
    filling_put_all(&f, s);
    is_int(shard_flush(s), 0, "flush");
    uint64_t held = filling_status(s, tier).held;
    int wrong = 0;
    for (uint32_t file = 0; file < FILES; file += 2)
        wrong += !shard_drop(s, file, 0);
    is_int(wrong, 0, "every second file is dropped");
    is_int(shard_reclaim(s), 0, "reclaim");
    for (uint32_t file = 0; file < FILES; file++)
        wrong += filling_check_file(&f, s, file) != (file % 2 ? 0 : -ENOENT);
    is_int(wrong, 0, "the others are there");
    is_int(shard_reclaim(s), 0, "again");
    ok(filling_status(s, tier).held < held * 6 / 10, "the room is free: %ju of %ju",
       (uintmax_t)filling_status(s, tier).held, (uintmax_t)held);
    is_uint(filling_status(s, tier).dead, 0, "nothing is dead");
    shard_close(s);
    ok(disk_use(tier == TIER_RAM ? ram : ssd) < held * 6 / 10 + MIB, "also on the disk");
    s = open_one(&f, tier, 64 * MIB);
    for (uint32_t file = 0; file < FILES; file++)
        wrong += filling_check_file(&f, s, file) != (file % 2 ? 0 : -ENOENT);
    is_int(wrong, 0, "and after a restart");
    for (uint32_t file = 1; file < FILES; file += 2)
        wrong += !shard_drop(s, file, 0);
    shard_reclaim(s);
    is_int(shard_reclaim(s), 0, "all dropped");
    is_uint(filling_status(s, tier).held, 0, "nothing is held");
    is_uint(filling_status(s, tier).segments, 0, "no segment is left");
    shard_close(s);
    filling_end(&f);
}

/* An answer outlives the part it was made from, its segment, and the recycling of a staging. */
static void test_pins(enum tier_name tier, bool stored)
{
    enum { FILES = 200, SIZE = 100000 };
    struct filling f;
    begin_many(&f, FILES, SIZE);
    struct shard *s = open_one(&f, tier, 64 * MIB);
    filling_put_file(&f, s, 0);
    if (stored)
        shard_flush(s);
    struct answer answer = {0};
    struct span span = {0, SIZE, 0};
    enum tier_name slowest;
    is_int(shard_get(s, &span, tier, &answer, &slowest), 0, "an answer is held on to");
    shard_drop(s, 0, 0);
    is_int(shard_flush(s), 0, "its segment is stored or dropped");
    shard_reclaim(s);
    for (uint32_t file = 1; file < FILES; file++)
        filling_put_file(&f, s, file);
    shard_flush(s);
    char *expected = malloc(SIZE);
    filling_bytes(&f, 0, 0, expected, SIZE);
    ok(answer.pieces == 1 && memcmp(expected, answer.piece[0].iov_base, SIZE) == 0, "its bytes are still right");
    free(expected);
    answer_release(&answer);
    is_int(shard_reclaim(s), 0, "released");
    is_int(count_right(&f, s), FILES - 1, "the others are right");
    shard_close(s);
    filling_end(&f);
}

static void test_budget(void)
{
    enum { FILES = 700, SIZE = 100000 };
    const uint64_t ram_bytes = 20 * MIB, ssd_bytes = 30 * MIB;
    struct filling f;
    begin_many(&f, FILES, SIZE);
    struct shard *s = filling_open(&f, ram, ram_bytes, ssd, ssd_bytes);
    int error = 0;
    uint32_t put = 0;
    while (put < FILES && (error = filling_put_file(&f, s, put)) == 0)
        put++;
    is_int(error, -ENOSPC, "full after %u files", put);
    is_int(filling_put_file(&f, s, put), -ENOSPC, "and stays so");
    struct tier_status a = filling_status(s, TIER_RAM), b = filling_status(s, TIER_SSD);
    ok(a.held <= ram_bytes && a.held > ram_bytes - 2 * SIZE, "the RAM tier is full: %ju", (uintmax_t)a.held);
    ok(b.held <= ssd_bytes && b.held > ssd_bytes - 2 * SIZE, "the SSD tier is full: %ju", (uintmax_t)b.held);
    is_uint(a.parts + b.parts, put, "each part is in one of them");
    ok(shard_where(s, 0, 0) == TIER_RAM && shard_where(s, put - 1, 0) == TIER_SSD, "the RAM tier came first");
    is_int(count_right(&f, s), (int)put, "all are right");
    shard_flush(s);
    ok(disk_use(ram) <= ram_bytes + shard_overhead(ram_bytes), "within capacity and overhead");
    shard_close(s);
    ok(disk_use(ram) <= ram_bytes + MIB && disk_use(ssd) <= ssd_bytes + MIB, "what is stored fits the capacity");
    s = filling_open(&f, ram, ram_bytes, ssd, ssd_bytes);
    is_int(count_right(&f, s), (int)put, "all are there after a restart");
    shard_close(s);
    s = filling_open(&f, ram, ram_bytes / 2, ssd, ssd_bytes);
    ok(filling_status(s, TIER_RAM).held <= ram_bytes / 2, "a smaller budget is kept at the next start");
    shard_close(s);
    filling_end(&f);
}

static void test_exact_budget(void)
{
    struct filling f;
    begin_many(&f, 2, 100000);
    struct shard *s = filling_open(&f, ram, 16 * MIB, NULL, 0);
    filling_put_file(&f, s, 0);
    uint64_t need = filling_status(s, TIER_RAM).held;
    shard_close(s);
    empty_tiers();
    s = filling_open(&f, ram, need - 1, NULL, 0);
    is_int(filling_put_file(&f, s, 0), -ENOSPC, "a byte too little");
    is_uint(filling_status(s, TIER_RAM).held, 0, "takes nothing");
    shard_close(s);
    empty_tiers();
    s = filling_open(&f, ram, need, NULL, 0);
    is_int(filling_put_file(&f, s, 0), 0, "exactly enough");
    is_int(filling_put_file(&f, s, 1), -ENOSPC, "for one");
    is_int(filling_check_file(&f, s, 0), 0, "which is there");
    shard_close(s);
    s = filling_open(&f, ram, 0, NULL, 0);
    is_int(filling_put_file(&f, s, 1), -ENOSPC, "no budget at all");
    shard_close(s);
    s = filling_open(&f, NULL, 0, NULL, 0);
    is_int(filling_put_file(&f, s, 1), -ENOSPC, "no tier at all");
    is_int(filling_status(s, TIER_SSD).state, TIER_ABSENT, "which says so");
    is_int(shard_flush(s) | shard_reclaim(s), 0, "and can be flushed and reclaimed");
    shard_close(s);
    shard_close(NULL);
    filling_end(&f);
}

static bool is_there(const char *name)
{
    struct stat st;
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", ssd, name);
    return stat(path, &st) == 0;
}

static void make_form(const char *name)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s/000001.sst", ssd, name);
    dir_make(path, 0700);
}

static void test_forms(void)
{
    struct filling f;
    begin_many(&f, 10, 100000);
    make_form("db");
    struct shard *s = open_one(&f, TIER_SSD, 64 * MIB);
    ok(filling_status(s, TIER_SSD).state == TIER_OPEN && !is_there("db"), "what an older version stored is dropped");
    filling_put_all(&f, s);
    shard_close(s);
    make_form("db-3");
    s = open_one(&f, TIER_SSD, 64 * MIB);
    struct tier_status status = filling_status(s, TIER_SSD);
    ok(status.state == TIER_FAILED && status.reason, "what a newer version stored is not used: %s", status.reason);
    is_int(count_right(&f, s), 0, "nor what is there beside it");
    shard_close(s);
    ok(is_there("db-3/000001.sst") && is_there(ROCKS_DATABASE "/CURRENT"), "nothing was touched");
    dir_remove_tree(AT_FDCWD, test_path("ssd/db-3"));
    s = open_one(&f, TIER_SSD, 64 * MIB);
    is_int(count_right(&f, s), 10, "without the newer one, the next opening has it all");
    shard_close(s);
    filling_end(&f);
}

static void check_no_directory(const struct shard_config *config, const char *what)
{
    struct shard *s;
    if (shard_open(config, &s))
        bail_out("shard_open");
    struct tier_status status = filling_status(s, TIER_SSD);
    ok(status.state == TIER_FAILED && status.reason, "%s is not used: %s", what,
       status.reason ? status.reason : "without a reason");
    shard_close(s);
}

/* A server uses the directory that its mount has locked, and no other one at its path. */
static void test_given_directory(void)
{
    struct filling f;
    struct stat st;
    struct shard *s;
    begin_many(&f, 1, 1000);
    if (dir_make(ssd, 0700) || stat(ssd, &st))
        bail_out("make %s", ssd);
    struct shard_config config = {.catalog = f.catalog};
    struct tier_config *tier = &config.tier[TIER_SSD];
    *tier = (struct tier_config){.directory = ssd, .capacity = 64 * MIB, .device = st.st_dev, .inode = st.st_ino + 1};
    check_no_directory(&config, "another directory");
    ok(!is_there("lock"), "and nothing is written there");
    tier->directory = test_path("absent");
    check_no_directory(&config, "a directory that is missing");
    ok(access(tier->directory, F_OK) < 0, "and it is not made");
    tier->directory = ssd;
    tier->inode = st.st_ino;
    if (shard_open(&config, &s))
        bail_out("shard_open");
    is_int(filling_status(s, TIER_SSD).state, TIER_OPEN, "the given directory is used");
    shard_close(s);
    filling_end(&f);
}

/* The bytes that this process has read from files so far. */
static uint64_t bytes_read(void)
{
    CLEANUP_STR struct str text = STR_INIT;
    uintmax_t bytes = 0;
    if (file_read(AT_FDCWD, "/proc/self/io", 4096, &text) || sscanf(text.data, "rchar: %ju", &bytes) != 1)
        bail_out("read /proc/self/io");
    return bytes;
}

/* So many values in one segment that their index is long. */
static void test_many_values(void)
{
    enum { MANY = 5000, SIZE = 4500 };
    struct filling f;
    begin_many(&f, MANY, SIZE);
    struct shard *s = open_one(&f, TIER_SSD, 1024 * MIB);
    is_int(filling_put_all(&f, s), 0, "%d small files are put", MANY);
    shard_close(s);
    uint64_t before = bytes_read();
    s = open_one(&f, TIER_SSD, 1024 * MIB);
    uint64_t read = bytes_read() - before;
    is_uint(filling_status(s, TIER_SSD).segments, 1, "one segment has them");
    is_int(count_right(&f, s), MANY, "all are there after a restart");
    ok(read < (uint64_t)MANY * SIZE / 8, "for which little of it was read: %ju bytes", (uintmax_t)read);
    shard_close(s);
    filling_end(&f);
}

int main(void)
{
    ram = filling_ram();
    ssd = test_path("ssd");
    for (int tier = 0; tier < TIERS; tier++) {
        test_fill_and_restart((enum tier_name)tier);
        test_other_catalog((enum tier_name)tier);
        test_reclaim((enum tier_name)tier);
        test_pins((enum tier_name)tier, false);
        test_pins((enum tier_name)tier, true);
    }
    test_forms();
    test_given_directory();
    test_many_values();
    test_budget();
    test_exact_budget();
    return done_testing();
}
