/* Shards whose disk fails for a while: nothing that is stored goes. The system calls that RocksDB and the shard make
 * on files of the shard pass through here, and fail as they are told. */
#include "tests/fs/store/filling.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/store/rocks.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)
enum { FILES = 60, SIZE = 300000 };

static const char *ssd;

/* --- faults --- */

static const char *_Atomic harmed; /* files with this in their path; NULL: none */
static atomic_int harm_open, harm_read, harm_link;

static bool fails(const char *path, const atomic_int *harm)
{
    const char *part = atomic_load(&harmed);
    if (!part || !atomic_load(harm) || !strstr(path, part))
        return false;
    errno = atomic_load(harm);
    return true;
}

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    return fails(path, &harm_open) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

ssize_t pread(int fd, void *bytes, size_t n, off_t at)
{
    char name[64], path[PATH_MAX];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t length = atomic_load(&harm_read) ? readlink(name, path, sizeof path - 1) : 0;
    path[length > 0 ? length : 0] = '\0';
    return fails(path, &harm_read) ? -1 : syscall(SYS_pread64, fd, bytes, n, at);
}

int link(const char *from, const char *to)
{
    return fails(from, &harm_link) ? -1 : (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

static void set_harm(const char *part, int to_open, int to_read, int to_link)
{
    atomic_store(&harm_open, to_open);
    atomic_store(&harm_read, to_read);
    atomic_store(&harm_link, to_link);
    atomic_store(&harmed, part);
}

/* --- shards --- */

static struct shard *open_shard(const struct filling *f)
{
    return filling_open_tier(f, TIER_SSD, ssd, 64 * MIB);
}

static void begin(struct filling *f)
{
    dir_remove_tree(AT_FDCWD, ssd);
    filling_begin(f);
    filling_add_many(f, "random", FILES, SIZE);
    filling_scan(f);
    struct shard *s = open_shard(f);
    if (filling_put_all(f, s) || shard_flush(s))
        bail_out("fill a shard");
    shard_close(s);
}

static void check_all_there(const struct filling *f, const char *what)
{
    set_harm(NULL, 0, 0, 0);
    struct shard *s = open_shard(f);
    is_int(filling_status(s, TIER_SSD).state, TIER_OPEN, "%s: the next opening goes well", what);
    is_int(filling_check_all(f, s).right, FILES, "and nothing is lost");
    shard_close(s);
}

/* Whatever is said about a file that cannot be opened. */
static void test_open(const char *part, int error)
{
    struct filling f;
    char what[128];
    begin(&f);
    set_harm(part, error, 0, 0);
    struct shard *s = open_shard(&f);
    struct tier_status status = filling_status(s, TIER_SSD);
    snprintf(what, sizeof what, "%s: %s", part, strerrordesc_np(error));
    ok(status.state != TIER_OPEN, "%s: the tier is not open, but %d: %s", what, status.state, strerror(status.error));
    is_int(filling_check_all(&f, s).wrong, 0, "nothing is wrong");
    shard_close(s);
    check_all_there(&f, what);
    filling_end(&f);
}

/* A disk that fails under way: what it holds is given up, only this time. */
static void test_read(void)
{
    struct filling f;
    begin(&f);
    struct shard *s = open_shard(&f);
    set_harm(".sst", EIO, EIO, 0);
    struct outcome o = filling_check_all(&f, s);
    ok(o.right == 0 && o.wrong == 0, "a disk that fails: %d files can be read", o.right);
    struct tier_status status = filling_status(s, TIER_SSD);
    ok(status.state == TIER_CLOSED && status.error == EIO, "the tier takes nothing more: %s", strerror(status.error));
    set_harm(NULL, 0, 0, 0);
    is_int(shard_reclaim(s), -EIO, "a reclaim says that it fails");
    shard_flush(s);
    shard_close(s);
    check_all_there(&f, "after it");
    filling_end(&f);
}

/* The same while a reclaim reads: the values of two thirds of the files are to be moved. */
static void test_reclaim(void)
{
    struct filling f;
    begin(&f);
    struct shard *s = open_shard(&f);
    set_harm(".sst", EIO, EIO, 0);
    for (uint32_t file = 0; file < FILES; file += 3)
        shard_drop(s, file, 0);
    is_int(shard_reclaim(s), -EIO, "a disk that fails in a reclaim: it says so");
    shard_close(s);
    set_harm(NULL, 0, 0, 0);
    s = open_shard(&f);
    struct outcome o = filling_check_all(&f, s);
    ok(o.wrong == 0 && o.right >= FILES - FILES / 3, "nothing that was held is lost: %d of %d", o.right, FILES);
    shard_close(s);
    filling_end(&f);
}

/* --- lists that are damaged --- */

static void damage(const char *part, bool removed)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/" ROCKS_DATABASE, ssd);
    CLEANUP_CLOSEDIR DIR *d = opendir(path);
    struct dirent *e;
    while (d && (e = readdir(d))) {
        if (!strstr(e->d_name, part))
            continue;
        CLEANUP_CLOSE int fd = openat(dirfd(d), e->d_name, O_RDWR | O_CLOEXEC);
        if (removed ? unlinkat(dirfd(d), e->d_name, 0) < 0 : pwrite(fd, "damage", 6, 8) != 6)
            bail_out("damage %s", e->d_name);
    }
}

static void test_lists(const char *part, bool removed)
{
    struct filling f;
    begin(&f);
    damage(part, removed);
    check_all_there(&f, removed ? "a list is removed" : "a list is damaged");
    check_all_there(&f, "again");
    filling_end(&f);
}

/* The disk fails while the segments are taken into the new database. */
static void test_lists_in_two_steps(int error)
{
    struct filling f;
    begin(&f);
    damage("MANIFEST", false);
    set_harm(".sst", 0, 0, error);
    struct shard *s = open_shard(&f);
    is_int(filling_status(s, TIER_SSD).state, TIER_FAILED, "the disk fails while its lists are made again");
    is_int(filling_check_all(&f, s).wrong, 0, "nothing is wrong");
    shard_close(s);
    check_all_there(&f, "then");
    filling_end(&f);
}

int main(void)
{
    static const char *const part[] = {"CURRENT", "MANIFEST", ".sst", "IDENTITY"};
    static const int errors[] = {EIO, EINVAL, ESTALE, EPROTO};
    ssd = test_path("ssd");
    filling_log();
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        for (size_t j = 0; j < sizeof errors / sizeof *errors; j++)
            test_open(part[i], errors[j]);
    test_read();
    test_reclaim();
    for (int removed = 0; removed < 2; removed++) {
        test_lists("CURRENT", removed);
        test_lists("MANIFEST", removed);
    }
    test_lists_in_two_steps(EIO);
    return done_testing();
}
