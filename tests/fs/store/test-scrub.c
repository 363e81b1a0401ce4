/* A RAM tier with `verify_once`: which reads verify a value, and what the scrubber finds. A byte of the tier's file is
 * changed, as bad memory would. The clock stands, and with it the scrubber, except where a test moves it. */
#include "tests/fs/store/filling.h"

#include "tests/fs/base/moved-clock.h"
#include "tests/fs/store/dataset.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)
enum { FILES = 8, SIZE = 30000, LARGE = 6 << 20, SAMPLE = 64 };

static struct shard *open_once(const struct filling *f, const char *directory, bool once)
{
    struct shard_config config = {.catalog = f->catalog};
    struct shard *s;
    config.tier[TIER_RAM] = (struct tier_config){.directory = directory, .capacity = 64 * MIB, .verify_once = once};
    int error = shard_open(&config, &s);
    if (error)
        bail_out("shard_open: %s", strerror(-error));
    return s;
}

/* Changes these bytes of the file in a segment at `path`. False: they are not there. */
static bool damage_in(const char *path, const char *bytes)
{
    struct stat st;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        bail_out("open %s", path);
    char *map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        bail_out("map %s", path);
    char *at = memmem(map, (size_t)st.st_size, bytes, SAMPLE);
    if (at)
        *at ^= 1;
    munmap(map, (size_t)st.st_size);
    return at != NULL;
}

static void damage(const struct filling *f, const char *directory, uint32_t file, uint64_t offset)
{
    char bytes[SAMPLE], *paths[] = {(char *)directory, NULL};
    FTS *tree = fts_open(paths, FTS_PHYSICAL, NULL);
    bool found = false;
    filling_bytes(f, file, offset, bytes, sizeof bytes);
    for (FTSENT *e; tree && (e = fts_read(tree));)
        if (e->fts_info == FTS_F && strstr(e->fts_name, ".sst"))
            found = damage_in(e->fts_accpath, bytes) || found;
    if (tree)
        fts_close(tree);
    if (!found)
        bail_out("the bytes of file %u are in no segment", file);
}

/* Waits for at least `bytes` and `rounds`, and `bad` bad values; true: there are no more bad ones. */
static bool scrubbed(struct shard *s, uint64_t bytes, uint64_t rounds, uint64_t bad)
{
    struct tier_status status = filling_status(s, TIER_RAM);
    for (int waited = 0; status.scrub.bytes < bytes || status.scrub.rounds < rounds || status.bad_values < bad;
         waited++) {
        clock_add(10 * MILLISECOND);
        wait_step(waited, "the scrubber has read that, and found that");
        status = filling_status(s, TIER_RAM);
    }
    return status.bad_values == bad;
}

static void begin(struct filling *f)
{
    filling_begin(f);
    filling_add_many(f, "random", FILES, SIZE);
    filling_add(f, "large", LARGE); /* its values are in blocks */
    filling_scan(f);
}

static void test_always(void)
{
    struct filling f;
    const char *directory = filling_ram();
    begin(&f);
    struct shard *s = open_once(&f, directory, false);
    filling_put_all(&f, s);
    shard_flush(s);
    uint32_t file = filling_file(&f, "random-003");
    is_int(filling_check_file(&f, s, file), 0, "always: a first read");
    damage(&f, directory, file, 5000);
    is_int(filling_check_file(&f, s, file), -ENOENT, "always: the next read notices a changed byte");
    is_uint(filling_status(s, TIER_RAM).scrub.rate, 0, "always: there is no scrubber");
    shard_close(s);
    filling_end(&f);
}

static void test_once(void)
{
    struct filling f;
    const char *directory = filling_ram();
    begin(&f);
    struct shard *s = open_once(&f, directory, true);
    filling_put_all(&f, s);
    struct outcome all = filling_check_all(&f, s);
    is_int(all.right, FILES + 1, "once: all files are right before they are stored");
    shard_flush(s);
    all = filling_check_all(&f, s);
    is_int(all.right, FILES + 1, "once: and after");
    ok(scrubbed(s, FILES * SIZE + LARGE, 1, 0), "once: the scrubber reads all bytes, and finds nothing");
    is_uint(filling_status(s, TIER_RAM).scrub.rate, MIB, "once: the rate of a small tier");

    uint32_t file = filling_file(&f, "random-003"), large = filling_file(&f, "large");
    damage(&f, directory, file, 5000);
    damage(&f, directory, large, 3 * MIB + 9000);
    ok(scrubbed(s, 0, 0, 2), "once: the scrubber finds two changed bytes");
    is_int(filling_check_file(&f, s, file), -ENOENT, "once: a damaged file is dropped");
    is_int(filling_check(&f, s, large, 3 * MIB, 128 << 10), -ENOENT, "once: and a damaged value of a large file");
    is_int(filling_check(&f, s, large, 2 * MIB, 128 << 10), 0, "once: other values of that stay");
    all = filling_check_all(&f, s);
    is_int(all.wrong, 0, "once: nothing is wrong");
    shard_close(s);
    filling_end(&f);
}

/* Without a scrubber in the way: it does not reach the last file of a tier before it has read what is in front. */
static void test_first_read(void)
{
    struct filling f;
    const char *directory = filling_ram();
    filling_begin(&f);
    filling_add(&f, "a", 40 * MIB);
    filling_add(&f, "b", SIZE);
    filling_scan(&f);
    struct shard *s = open_once(&f, directory, true);
    filling_put_all(&f, s);
    shard_close(s);
    uint32_t file = filling_file(&f, "b");
    s = open_once(&f, directory, true);
    damage(&f, directory, file, 5000);
    is_int(filling_check_file(&f, s, file), -ENOENT, "once: the first read of a server verifies");
    is_uint(filling_status(s, TIER_RAM).scrub.rounds, 0, "once: it was not the scrubber");
    shard_close(s);

    s = open_once(&f, directory, true);
    filling_put_file(&f, s, file);
    shard_flush(s);
    is_int(filling_check_file(&f, s, file), 0, "once: a first read of a right file");
    damage(&f, directory, file, 5000);
    is_int(filling_check_file(&f, s, file), -EBADMSG, "once: later reads are not verified, as the manual warns");
    shard_close(s);
    filling_end(&f);
}

int main(void)
{
    filling_log();
    clock_stand();
    test_always();
    test_once();
    test_first_read();
    return done_testing();
}
