/* Damage that kills: servers open a small shard in which bytes were flipped. RocksDB aborts the process for some
 * damage, so each server is a process of its own. No two servers may die of the same file, and what is read must be
 * right, or not there.
 *
 * `check-all` tries some bytes and pairs of bytes, chosen by SWEEP_SEED. With SWEEP=all (`make check-damage`) it is
 * every byte, and 2,000 pairs of each kind. */
#include "tests/fs/store/filling.h"
#include "tests/fs/store/images.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/store/rocks.h"
#include "tests/lib/tap.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)
enum {
    FILES = 6,
    FILES_PER_SEGMENT = 2,

    MOST_SERVERS = 3,
    LARGE = 4200, /* a block of its own */
    END = 1200,   /* has the index record, and what RocksDB puts behind it */
    SOME_BYTES = 60,
    SOME_PAIRS = 40,
    ALL_PAIRS = 2000,
};

static const char *directory[TIERS];

/* --- files that kill --- */

static ino_t killer; /* RocksDB dies when it opens this file for reading, or links it; 0: none */

static bool is_rocksdb(const void *caller)
{
    Dl_info info;
    return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "librocksdb");
}

static void die_of(const char *path, const void *caller)
{
    struct stat st;
    if (killer && stat(path, &st) == 0 && st.st_ino == killer && is_rocksdb(caller))
        raise(SIGKILL);
}

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    if ((flags & O_ACCMODE) == O_RDONLY)
        die_of(path, __builtin_return_address(0));
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int link(const char *from, const char *to)
{
    die_of(from, __builtin_return_address(0));
    return (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

static bool spoil; /* the disk is to damage the next segment that is written */

/* In the last block of data, when the file is whole and is looked at for the first time. */
static void spoil_new(int fd)
{
    char name[64], path[512] = "";
    CLEANUP_STR struct str bytes = STR_INIT;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    if (readlink(name, path, sizeof path - 1) < 0 || !strstr(path, "/new-"))
        return;
    spoil = false;
    const char *record =
        file_read(AT_FDCWD, path, MIB, &bytes) ? NULL : memmem(bytes.data, bytes.length, "dealfsIX", 8);
    if (record)
        flip_file(path, (size_t)(record - bytes.data) + 20, 1);
}

ssize_t pread(int fd, void *bytes, size_t n, off_t at)
{
    if (spoil)
        spoil_new(fd);
    return syscall(SYS_pread64, fd, bytes, n, at);
}

/* --- servers --- */

static struct shard *open_tier(const struct filling *f, enum tier_name tier)
{
    return filling_open_tier(f, tier, directory[tier], 16 * MIB);
}

/* What a server came to; LOST times how many files it lacked. */
enum outcome_bit { WRONG = 1, UNUSABLE = 2, LOST = 4 };

static int serve(const struct filling *f, enum tier_name tier, bool fill)
{
    struct shard *s = open_tier(f, tier);
    struct outcome o = filling_check_all(f, s);
    int bits = (o.wrong ? WRONG : 0) | o.absent * LOST;
    if (filling_status(s, tier).state != TIER_OPEN)
        bits |= UNUSABLE;
    else if (fill && (filling_put_all(f, s) || shard_flush(s) || filling_check_all(f, s).right != FILES))
        bits |= WRONG;
    shard_close(s);
    return bits;
}

/* In a process of its own; -1: it died. This process never has threads of RocksDB. */
static int run_server(const struct filling *f, enum tier_name tier, bool fill)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        static const struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        alarm((unsigned)test_patience() / 1000 + 1);
        if (!freopen("/dev/null", "w", stderr))
            _exit(UNUSABLE);
        _exit(serve(f, tier, fill));
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        bail_out("fork: %s", strerror(errno));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void fill_tier(const struct filling *f, enum tier_name tier)
{
    pid_t child = fork();
    if (child == 0) {
        struct shard *s = open_tier(f, tier);
        for (uint32_t file = 0; file < FILES; file++)
            if (filling_put_file(f, s, file) || ((file + 1) % FILES_PER_SEGMENT == 0 && shard_flush(s)))
                _exit(1);
        shard_close(s);
        _exit(0);
    }
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) != child || status)
        bail_out("fill a shard");
}

static void test_spoiled(const struct filling *f, enum tier_name tier)
{
    int status = -1;
    dir_remove_tree(AT_FDCWD, directory[tier]);
    pid_t child = fork();
    if (child == 0) {
        struct shard *s = open_tier(f, tier);
        spoil = true;
        int error = filling_put_all(f, s) ? 1 : shard_flush(s);
        bool closed = filling_status(s, tier).state == TIER_CLOSED;
        int wrong = filling_check_all(f, s).wrong;
        shard_close(s);
        _exit(error == -EIO && closed && !wrong ? 0 : 1);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        bail_out("fork: %s", strerror(errno));
    is_int(status, 0, "%s tier: what the disk damaged is not taken in, and the server lives", tier_names[tier]);
    is_int(run_server(f, tier, true) & ~(LOST * 7), 0, "the next one goes on");
    dir_remove_tree(AT_FDCWD, directory[tier]);
}

/* --- what is damaged --- */

static size_t all_bytes;

static void take_images(enum tier_name tier)
{
    char db[512];
    images_end();
    all_bytes = 0;
    snprintf(db, sizeof db, "%s/" ROCKS_DATABASE, directory[tier]);
    images_take(directory[tier]);
    images_take(db);
    for (int i = 0; i < images; i++)
        all_bytes += image[i].bytes.length;
}

/* The n-th byte of all files; returns which file has it. */
static int flip(size_t n, unsigned seed)
{
    int i = 0;
    for (; n >= image[i].bytes.length; i++)
        n -= image[i].bytes.length;
    flip_file(image[i].path, n, (char)(1 + rand_r(&seed) % 255));
    return i;
}

/* --- the sweep --- */

struct tally {
    int tries, died, died_again, wrong, lost, unusable;
    int absent; /* files, after the last try */
};

/* Servers come until one lives: each that died may have died of one of the files. */
static void try_damage(const struct filling *f, enum tier_name tier, int files, struct tally *t)
{
    int died = 0, bits = -1;
    for (int i = 0; i < MOST_SERVERS && bits < 0; i++) {
        bits = run_server(f, tier, t->tries % 8 == 0);
        died += bits < 0;
    }
    t->tries++;
    t->died += died;
    t->died_again += died > files;
    t->wrong += bits > 0 && bits & WRONG;
    t->lost += bits >= LOST;
    t->absent = bits / LOST;
    t->unusable += bits > 0 && bits & UNUSABLE;
}

static void say_damage(const struct tally *before, const struct tally *t, int file, size_t at, int other, size_t second)
{
    if (t->died == before->died && t->wrong == before->wrong && t->unusable == before->unusable)
        return;
    diag("%d died, %d again, %d wrong, %d unusable: byte %zu of all, in %s; byte %zu of all, in %s",
         t->died - before->died, t->died_again - before->died_again, t->wrong - before->wrong,
         t->unusable - before->unusable, at, image[file].path, second, image[other].path);
}

/* Two bytes, or the same one twice: then it is one. */
static void try_bytes(const struct filling *f, enum tier_name tier, size_t at, size_t second, unsigned seed,
                      struct tally *t)
{
    struct tally before = *t;
    images_put_back(directory[tier]);
    int file = flip(at, seed), other = second == at ? file : flip(second, seed + 1);
    try_damage(f, tier, other == file ? 1 : 2, t);
    say_damage(&before, t, file, at, other, second);
}

static void check_tally(const struct tally *t, enum tier_name tier, const char *what)
{
    diag("%s tier, %s: %d tries, %d servers died, %d lost something", tier_names[tier], what, t->tries, t->died,
         t->lost);
    is_int(t->died_again, 0, "%s tier, %s: no two servers died of the same file", tier_names[tier], what);
    is_int(t->wrong, 0, "no wrong byte");
    is_int(t->unusable, 0, "the tier could be used after each");
    ok(t->lost > 0, "the damage was noticed");
}

/* One of the last bytes of the files whose path has this part. */
static size_t random_byte(const char *part, size_t last, unsigned *seed)
{
    for (;;) {
        size_t at = (size_t)rand_r(seed) % all_bytes, n = at;
        int i = 0;
        for (; n >= image[i].bytes.length; i++)
            n -= image[i].bytes.length;
        if (n + last >= image[i].bytes.length && strstr(image[i].path, part))
            return at;
    }
}

static void sweep(const struct filling *f, enum tier_name tier, bool all, unsigned seed)
{
    static const struct {
        const char *what, *first, *second;
        size_t last; /* bytes of the second's file */
    } pair[] = {{"two bytes", "", "", MIB}, {"a list and a segment's end", "CURRENT", ".sst", END}};
    struct tally one = {0};
    diag("%d files, %zu bytes", images, all_bytes);
    for (size_t i = 0; i < (all ? all_bytes : SOME_BYTES); i++) {
        size_t at = all ? i : random_byte("", MIB, &seed);
        try_bytes(f, tier, at, at, seed + (unsigned)i, &one);
    }
    check_tally(&one, tier, "one byte");
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
        struct tally two = {0};
        for (int n = 0; n < (all ? ALL_PAIRS : SOME_PAIRS); n++) {
            size_t at = random_byte(pair[i].first, MIB, &seed),
                   second = random_byte(pair[i].second, pair[i].last, &seed);
            try_bytes(f, tier, at, second, seed, &two);
        }
        check_tally(&two, tier, pair[i].what);
    }
}

/* --- what is not found by looking --- */

/* RocksDB dies of one file although nothing in it is damaged. With `again` the lists are gone, so that all segments are
 * to be taken in. */
static void test_killer(const struct filling *f, enum tier_name tier, int i, bool again)
{
    struct stat st;
    struct tally t = {0};
    bool segment = strstr(image[i].path, ".sst");
    images_put_back(directory[tier]);
    for (int j = 0; j < images && again; j++)
        if (strstr(image[j].path, "CURRENT"))
            unlink(image[j].path);
    if (stat(image[i].path, &st) < 0)
        bail_out("stat %s", image[i].path);
    killer = st.st_ino;
    try_damage(f, tier, 1, &t);
    killer = 0;
    is_int(t.died, 1, "%s tier: RocksDB dies of %s, once", tier_names[tier], strrchr(image[i].path, '/') + 1);
    is_int(t.wrong + t.unusable, 0, "the next server lives");
    is_int(t.absent, segment ? FILES_PER_SEGMENT : 0, "and has all%s", segment ? " but what is in that segment" : "");
}

static void test_killers(const struct filling *f, enum tier_name tier)
{
    for (int i = 0; i < images; i++)
        if (strstr(image[i].path, ".sst"))
            test_killer(f, tier, i, true);
        else if (strstr(image[i].path, "MANIFEST") || strstr(image[i].path, "CURRENT"))
            test_killer(f, tier, i, false);
}

int main(void)
{
    const char *how = getenv("SWEEP"), *seed = getenv("SWEEP_SEED");
    bool all = how && strcmp(how, "all") == 0;
    char name[64];
    struct filling f;
#if __SANITIZE_THREAD__
    plan_skip_all("ThreadSanitizer makes each of the hundreds of servers slow, and none shares memory with another");
#endif
    directory[TIER_RAM] = filling_ram();
    directory[TIER_SSD] = filling_ram(); /* reads directly all the same */
    filling_log();                       /* thousands of lines about damage */
    filling_begin(&f);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "random-%03d", i);
        filling_add(&f, name, i % FILES_PER_SEGMENT ? LARGE : (uint64_t)(i * 40 + 1));
    }
    filling_scan(&f);
    for (int tier = 0; tier < TIERS; tier++) {
        test_spoiled(&f, (enum tier_name)tier);
        fill_tier(&f, (enum tier_name)tier);
        take_images((enum tier_name)tier);
        test_killers(&f, (enum tier_name)tier);
        sweep(&f, (enum tier_name)tier, all, seed ? (unsigned)strtoul(seed, NULL, 0) : 1);
        images_end();
    }
    filling_end(&f);
    return done_testing();
}
