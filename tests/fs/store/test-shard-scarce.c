/* A shard that runs out of descriptors, one whose quota is spent, and one that is left alone: what was put can be read,
 * and nothing is closed for good that may come back. */
#include "tests/fs/store/dataset.h"
#include "tests/fs/store/filling.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/store/rocks.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)
enum { FILES = 24, FILE_BYTES = 300000, MANY = 100 };

#ifdef __SANITIZE_THREAD__
enum { MAY_FORK = false };
#else
enum { MAY_FORK = true };
#endif

static const char *directory[TIERS];
static struct rlimit limit;

static struct shard *open_one(const struct filling *f, enum tier_name tier)
{
    return filling_open_tier(f, tier, directory[tier], 64 * MIB);
}

static void begin(struct filling *f, int files, uint64_t bytes)
{
    filling_begin(f);
    filling_add_many(f, "random", files, bytes);
    filling_scan(f);
}

/* A tier that holds all of them. */
static struct shard *begin_filled(struct filling *f, enum tier_name tier)
{
    begin(f, FILES, FILE_BYTES);
    struct shard *s = open_one(f, tier);
    filling_put_all(f, s);
    return s;
}

static void end(struct filling *f, struct shard *s, enum tier_name tier)
{
    shard_close(s);
    dir_remove_tree(AT_FDCWD, directory[tier]);
    filling_end(f);
}

static int count_right(const struct filling *f, struct shard *s)
{
    return filling_check_all(f, s).right;
}

/* These take the place of the C library's, for RocksDB as well. 0: nothing fails. */
static _Atomic int write_error;

ssize_t write(int fd, const void *bytes, size_t n)
{
    errno = write_error;
    return errno ? -1 : syscall(SYS_write, fd, bytes, n);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    errno = write_error;
    return errno ? -1 : syscall(SYS_pwrite64, fd, bytes, n, at);
}

int fallocate(int fd, int mode, off_t at, off_t n)
{
    errno = write_error;
    return errno ? -1 : (int)syscall(SYS_fallocate, fd, mode, at, n);
}

static void take_descriptors(void)
{
    int fd = dup(0);
    if (fd < 0)
        bail_out("dup: %s", strerror(errno));
    close(fd);
    struct rlimit none = {(rlim_t)fd, limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &none) < 0)
        bail_out("setrlimit: %s", strerror(errno));
}

static void give_descriptors(void)
{
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        bail_out("setrlimit: %s", strerror(errno));
}

static int count_in(const char *path)
{
    int n = 0;
    CLEANUP_CLOSEDIR DIR *d = opendir(path);
    struct dirent *e;
    while (d && (e = readdir(d)))
        n += strstr(e->d_name, ".sst") != NULL;
    return n;
}

/* Segments that are stored: a file that is being stored has another name as well, until that is done. */
static int count_files(const char *tier)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/" ROCKS_DATABASE, tier);
    return count_in(tier) ? 0 : count_in(path);
}

static void await_files(const char *tier)
{
    wait_until(count_files(tier));
}

static void test_store_later(enum tier_name tier)
{
    struct filling f;
    struct shard *s = begin_filled(&f, tier);
    take_descriptors();
    is_int(shard_flush(s), -EMFILE, "%s tier: no descriptors: what is in memory stays there", tier_names[tier]);
    is_int(filling_status(s, tier).state, TIER_OPEN, "the tier is not closed");
    is_int(count_right(&f, s), FILES, "all can be read");
    give_descriptors();
    is_int(shard_flush(s), 0, "it is stored when there are some");
    is_int(count_right(&f, s), FILES, "all can be read");
    take_descriptors();
    is_int(count_right(&f, s), FILES, "and without descriptors");
    is_int(filling_put_file(&f, s, 0), 0, "what is held needs none");
    is_uint(filling_status(s, tier).bad_values, 0, "nothing passes for damaged");
    give_descriptors();
    end(&f, s, tier);
}

/* Nobody asks for it: the tier's thread tries by itself. */
static void test_store_by_itself(enum tier_name tier)
{
    struct filling f;
    struct shard *s = begin_filled(&f, tier);
    take_descriptors();
    shard_flush(s);
    give_descriptors();
    await_files(directory[tier]);
    pass("%s tier: it is tried again by itself", tier_names[tier]);
    end(&f, s, tier);
}

static void test_open_later(enum tier_name tier)
{
    struct filling f;
    struct shard *s = begin_filled(&f, tier);
    shard_close(s);
    take_descriptors();
    s = open_one(&f, tier);
    is_int(filling_status(s, tier).state, TIER_LOCKED, "%s tier: opened without descriptors: it waits",
           tier_names[tier]);
    is_int(filling_put_file(&f, s, 0), -ENOSPC, "and takes nothing meanwhile");
    give_descriptors();
    wait_until(filling_status(s, tier).state != TIER_LOCKED);
    is_int(filling_status(s, tier).state, TIER_OPEN, "it opens when there are some");
    is_int(count_right(&f, s), FILES, "and holds what it held");
    end(&f, s, tier);
}

static void test_quota(enum tier_name tier)
{
    struct filling f;
    begin(&f, FILES, FILE_BYTES);
    struct shard *s = open_one(&f, tier);
    for (uint32_t file = 0; file < FILES / 2; file++)
        filling_put_file(&f, s, file);
    write_error = EDQUOT;
    shard_flush(s);
    struct tier_status status = filling_status(s, tier);
    ok(status.state == TIER_CLOSED && status.error == EDQUOT,
       "%s tier: the quota is spent while a segment is stored: %s", tier_names[tier], strerror(status.error));
    is_int(count_right(&f, s), FILES / 2, "what was put can be read");
    is_int(filling_put_file(&f, s, FILES - 1), -ENOSPC, "nothing more is taken");
    shard_close(s);
    write_error = 0;
    s = open_one(&f, tier);
    write_error = EDQUOT;
    is_int(filling_put_file(&f, s, 0), -ENOSPC, "it is spent before anything is put");
    status = filling_status(s, tier);
    ok(status.state == TIER_CLOSED && status.error == EDQUOT, "which is said: %s", strerror(status.error));
    write_error = 0;
    shard_close(s);
    s = open_one(&f, tier);
    is_int(filling_put_file(&f, s, 0), 0, "when there is room again, it is used");
    end(&f, s, tier);
}

/* Returns how much is wrong; see test_few_descriptors. */
static int read_all(const struct filling *f, enum tier_name tier)
{
    int files = (int)catalog_files(f->catalog), wrong = 0;
    uint32_t large = filling_file(f, "random-large");
    struct shard *s = open_one(f, tier);
    wrong += filling_put_all(f, s) != 0;
    shard_flush(s);
    wrong += files - count_right(f, s);
    for (uint64_t at = 0; at + 10000 < filling_size(f, large); at += 99991)
        wrong += filling_check(f, s, large, at, 10000) != 0;
    shard_drop(s, filling_file(f, "text-large"), 0);
    shard_reclaim(s);
    shard_close(s);
    s = open_one(f, tier);
    wrong += count_right(f, s) < files - 1; /* what was dropped may be there again */
    shard_close(s);
    return wrong;
}

/* Too few to keep the segments' files open: each read opens one. By a child, which does not get its limit back. */
static void test_few_descriptors(enum tier_name tier)
{
    struct filling f;
    struct rlimit few = {322, 322};
    int status = 0;
    begin(&f, FILES, FILE_BYTES);
    filling_add(&f, "random-large", 9000000);
    filling_add(&f, "text-large", 9000000);
    filling_scan(&f);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(setrlimit(RLIMIT_NOFILE, &few) < 0 ? 99 : read_all(&f, tier));
    waitpid(child, &status, 0);
    is_int(status, 0, "%s tier, few descriptors: all can be read", tier_names[tier]);
    dir_remove_tree(AT_FDCWD, directory[tier]);
    filling_end(&f);
}

static void fill_and_wait(const struct filling *f, enum tier_name tier)
{
    struct shard *s = open_one(f, tier);
    for (uint32_t file = 0; file < 3; file++)
        filling_put_file(f, s, file);
    for (;;)
        pause();
}

static void test_idle(enum tier_name tier)
{
    struct filling f;
    begin(&f, FILES, FILE_BYTES);
    pid_t child = fork();
    if (child == 0)
        fill_and_wait(&f, tier);
    await_files(directory[tier]);
    pass("%s tier: what nobody adds to is stored", tier_names[tier]);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    struct shard *s = open_one(&f, tier);
    is_int(count_right(&f, s), 3, "and there after a crash");
    is_int(filling_put_file(&f, s, 5), 0, "more can be put");
    is_int(count_right(&f, s), 4, "and read");
    end(&f, s, tier);
}

static void test_many_small(enum tier_name tier)
{
    struct filling f;
    begin(&f, MANY, 5000);
    struct shard *s = open_one(&f, tier);
    for (uint32_t file = 0; file < MANY; file++) {
        filling_put_file(&f, s, file);
        shard_flush(s);
    }
    shard_reclaim(s);
    int files = count_files(directory[tier]);
    ok(files < 40, "%s tier: %d segments of a file each become %d", tier_names[tier], MANY, files);
    is_int(count_right(&f, s), MANY, "with all in them");
    shard_close(s);
    s = open_one(&f, tier);
    is_int(count_right(&f, s), MANY, "also after a restart");
    end(&f, s, tier);
}

int main(void)
{
    directory[TIER_RAM] = filling_ram();
    directory[TIER_SSD] = test_path("ssd");
    getrlimit(RLIMIT_NOFILE, &limit);
    filling_log();
    for (enum tier_name tier = 0; tier < TIERS; tier++) {
        test_store_later(tier);
        test_store_by_itself(tier);
        test_open_later(tier);
        test_quota(tier);
        if (MAY_FORK) {
            test_few_descriptors(tier);
            test_idle(tier);
        } else {
            skip(5, "ThreadSanitizer does not follow a fork of a process that had threads");
        }
        test_many_small(tier);
    }
    return done_testing();
}
