/* Shards of a process that is killed at any moment, or that lingers: what was stored is there again, nothing is wrong,
 * and nothing is left over. */
#include "tests/fs/store/dataset.h"
#include "tests/fs/store/filling.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/store/rocks.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)
enum { FILES = 400, ROUNDS = 30, SIZE = 150000 };

/* What the child has done, in memory that outlives it. */
enum deed { NOTHING, PUT, STORED };
struct deeds {
    volatile uint8_t file[FILES];
    volatile uint64_t flushes;
};

static const char *ram, *ssd;

static struct shard *open_both(const struct filling *f)
{
    return filling_open(f, ram, 24 * MIB, ssd, 48 * MIB);
}

static void work_forever(const struct filling *f, struct deeds *deeds, unsigned seed)
{
    struct shard *s = open_both(f);
    for (unsigned turn = 1;; turn++) {
        uint32_t file = (uint32_t)rand_r(&seed) % FILES;
        if (rand_r(&seed) % 3 == 0) {
            deeds->file[file] = NOTHING;
            shard_drop(s, file, 0);
        } else if (!filling_put_file(f, s, file) && deeds->file[file] == NOTHING) {
            deeds->file[file] = PUT;
        }
        if (turn % 97 == 0)
            shard_reclaim(s);
        if (turn % 61)
            continue;
        shard_flush(s);
        for (int i = 0; i < FILES; i++)
            if (deeds->file[i] == PUT)
                deeds->file[i] = STORED;
        deeds->flushes++;
    }
}

static int leftovers(const char *directory)
{
    int count = 0;
    CLEANUP_CLOSEDIR DIR *d = opendir(directory);
    struct dirent *e;
    while (d && (e = readdir(d)))
        count += e->d_name[0] != '.' && strcmp(e->d_name, ROCKS_DATABASE) != 0 && strcmp(e->d_name, "lock") != 0;
    return count;
}

static void check_after(const struct filling *f, const struct deeds *deeds, int *wrong, int *lost, int *left)
{
    struct tier_status status;
    struct shard *s = open_both(f);
    for (int i = 0; i < TIERS; i++) {
        shard_status(s, (enum tier_name)i, &status);
        *wrong += status.state != TIER_OPEN || status.held > status.capacity || status.bad_values;
    }
    for (uint32_t file = 0; file < FILES; file++) {
        int error = filling_check_file(f, s, file);
        *wrong += error && error != -ENOENT;
        *lost += error && deeds->file[file] == STORED;
    }
    *left += leftovers(ram) + leftovers(ssd);
    shard_close(s);
}

static void test_kill(const struct filling *f)
{
    struct deeds *deeds = mmap(NULL, sizeof *deeds, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int wrong = 0, lost = 0, left = 0;
    unsigned seed = 7;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t flushes = deeds->flushes;
        pid_t child = fork();
        if (child == 0) {
            work_forever(f, deeds, seed + (unsigned)round);
            _exit(1);
        }
        unsigned moment = (unsigned)rand_r(&seed) % 120000;
        while (deeds->flushes == flushes && round % 4) { /* three of four get something stored first */
            if (waitpid(child, NULL, WNOHANG) == child)
                bail_out("the child ended by itself");
            usleep(1000);
        }
        usleep(moment); /* the moment is what is being tested */
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        check_after(f, deeds, &wrong, &lost, &left);
        for (uint32_t file = 0; file < FILES; file++) /* what was put but not stored may be there or not */
            if (deeds->file[file] == PUT)
                deeds->file[file] = NOTHING;
    }
    is_int(wrong, 0, "%d kills: no wrong byte, tiers open and in their budget", ROUNDS);
    is_int(lost, 0, "nothing that was stored is lost");
    is_int(left, 0, "nothing is left over");
    ok(deeds->flushes > ROUNDS / 2, "the children did something: %ju flushes", (uintmax_t)deeds->flushes);
    munmap(deeds, sizeof *deeds);
}

static bool becomes(struct shard *s, enum tier_name tier, enum tier_state state)
{
    wait_until(filling_status(s, tier).state == state);
    return true;
}

/* Readers that hold on to what was moved: its files outlive the reclaim, and the process. */
static void reclaim_and_linger(const struct filling *f, struct deeds *deeds, int ready)
{
    static struct answer answer[FILES];
    char byte = 0;
    struct shard *s = open_both(f);
    for (uint32_t file = 0; file < FILES; file++)
        if (filling_put_file(f, s, file) == 0)
            deeds->file[file] = STORED;
    shard_flush(s);
    for (uint32_t file = 0; file < FILES; file++) {
        struct span span = {file, 1, 0};
        enum tier_name slowest;
        shard_get(s, &span, TIER_RAM, &answer[file], &slowest);
    }
    for (uint32_t file = FILES / 2; file < FILES; file += 2) { /* the oldest segments stay whole */
        deeds->file[file] = NOTHING;
        shard_drop(s, file, 0);
    }
    shard_reclaim(s);
    if (write(ready, &byte, 1) == 1)
        pause();
}

static void test_moved(const struct filling *f)
{
    struct deeds *deeds = mmap(NULL, sizeof *deeds, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int ready[2], wrong = 0, lost = 0, left = 0;
    char byte;
    dir_remove_tree(AT_FDCWD, ram);
    dir_remove_tree(AT_FDCWD, ssd);
    if (pipe(ready) < 0)
        bail_out("pipe");
    pid_t child = fork();
    if (child == 0) {
        reclaim_and_linger(f, deeds, ready[1]);
        _exit(1);
    }
    if (read(ready[0], &byte, 1) != 1)
        bail_out("the child does not reclaim");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    check_after(f, deeds, &wrong, &lost, &left);
    is_int(wrong, 0, "killed when a reclaim has moved all and dropped nothing: no wrong byte, tiers in their budget");
    is_int(lost, 0, "nothing that was live is lost");
    is_int(left, 0, "nothing is left over");
    munmap(deeds, sizeof *deeds);
    close(ready[0]);
    close(ready[1]);
}

static void test_locked(const struct filling *f)
{
    int ready[2];
    char byte = 0;
    struct tier_status status;
    if (pipe(ready) < 0)
        bail_out("pipe");
    dir_remove_tree(AT_FDCWD, ram);
    dir_remove_tree(AT_FDCWD, ssd);
    pid_t child = fork();
    if (child == 0) {
        struct shard *s = open_both(f);
        filling_put_file(f, s, 1);
        shard_flush(s);
        if (write(ready[1], &byte, 1) == 1)
            pause();
        _exit(0);
    }
    if (read(ready[0], &byte, 1) != 1)
        bail_out("the child does not begin");
    struct shard *s = open_both(f);
    shard_status(s, TIER_RAM, &status);
    is_int(status.state, TIER_LOCKED, "the RAM tier of a living process is locked");
    is_int(filling_put_file(f, s, 2), -ENOSPC, "meanwhile nothing is taken");
    is_int(filling_check_file(f, s, 1), -ENOENT, "and nothing held");
    is_int(shard_flush(s) | shard_reclaim(s), 0, "flush and reclaim do not wait for it");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    ok(becomes(s, TIER_RAM, TIER_OPEN) && becomes(s, TIER_SSD, TIER_OPEN), "opened when the process is gone");
    is_int(filling_check_file(f, s, 1), 0, "with what it stored");
    is_int(filling_put_file(f, s, 2), 0, "and takes more");
    is_int(filling_check_file(f, s, 2), 0, "which is right");
    shard_close(s);
    close(ready[0]);
    close(ready[1]);
}

static void test_close_while_locked(const struct filling *f)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int ready[2];
    char byte = 0, path[512];
    if (pipe(ready) < 0)
        bail_out("pipe");
    snprintf(path, sizeof path, "%s/lock", ssd);
    pid_t child = fork();
    if (child == 0) {
        int fd = open(path, O_RDWR);
        if (fcntl(fd, F_SETLK, &whole) == 0 && write(ready[1], &byte, 1) == 1)
            pause();
        _exit(0);
    }
    if (read(ready[0], &byte, 1) != 1)
        bail_out("the child does not begin");
    struct shard *s = open_both(f);
    is_int(filling_put_file(f, s, 3), -ENOSPC, "one locked tier is enough to take nothing");
    is_int(filling_check_file(f, s, 1), 0, "the other one is read");
    shard_close(s);
    pass("closed while locked");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ready[0]);
    close(ready[1]);
}

static void show_log(void)
{
    char line[512];
    CLEANUP_FCLOSE FILE *log = fopen(test_path("log"), "r");
    while (log && fgets(line, sizeof line, log))
        diag("%s", line);
}

int main(void)
{
    char name[64];
    struct filling f;
#if __SANITIZE_THREAD__
    plan_skip_all("ThreadSanitizer does not follow a fork of a process that had threads");
#endif
    ram = filling_ram();
    ssd = test_path("ssd");
    filling_log();
    filling_begin(&f);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "%s-%03d", i % 5 ? "random" : "text", i);
        filling_add(&f, name, 1 + (uint64_t)i * SIZE / FILES * 2);
    }
    filling_scan(&f);
    test_kill(&f);
    test_moved(&f);
    test_locked(&f);
    test_close_while_locked(&f);
    filling_end(&f);
    show_log();
    return done_testing();
}
