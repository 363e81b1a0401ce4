/* A data set whose bytes are a function of path and offset. */
#include "tests/fs/store/dataset.h"

#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/catalog/scanner.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { WORD = 8, BLOCK = 64 << 10 };

uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

struct pattern {
    uint64_t seed;
    bool sparse;
};

static struct pattern pattern_of(const char *path)
{
    return (struct pattern){hash64(path, strlen(path), 1), strstr(path, "sparse") != NULL};
}

static uint64_t word_at(const struct pattern *p, uint64_t index)
{
    if (p->sparse && index % (BLOCK / WORD))
        return 0;
    uint64_t state = p->seed + index;
    return random_next(&state);
}

static void fill(const struct pattern *p, uint64_t offset, char *out, size_t n)
{
    size_t i = 0;
    if (!p->sparse && offset % WORD == 0)
        for (; i + WORD <= n; i += WORD) {
            uint64_t state = p->seed + (offset + i) / WORD, word = random_next(&state);
            memcpy(out + i, &word, WORD);
        }
    while (i < n) {
        uint64_t word = word_at(p, (offset + i) / WORD);
        size_t skip = (offset + i) % WORD, m = WORD - skip < n - i ? WORD - skip : n - i;
        memcpy(out + i, (char *)&word + skip, m);
        i += m;
    }
}

void dataset_begin(struct dataset *d)
{
    static int number;
    *d = (struct dataset){.root = -1};
    snprintf(d->source, sizeof d->source, "%s/source-%d", test_directory(), number++);
    if (dir_make(d->source, 0755) < 0)
        bail_out("mkdir %s", d->source);
    d->root = open(d->source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d->root < 0)
        bail_out("open %s: %s", d->source, strerror(errno));
}

const char *dataset_path(const struct dataset *d, const char *path)
{
    static char buffer[64][2 * PATH_MAX]; /* not one per thread: the C library clears it for each thread that begins */
    static atomic_uint next;
    char *out = buffer[atomic_fetch_add(&next, 1) % 64];
    snprintf(out, sizeof buffer[0], "%s/%s", d->source, path);
    return out;
}

static void make_parent(const char *path)
{
    char parent[2 * PATH_MAX];
    snprintf(parent, sizeof parent, "%s", path);
    *strrchr(parent, '/') = '\0';
    if (dir_make(parent, 0755) < 0)
        bail_out("mkdir %s", parent);
}

void dataset_add(struct dataset *d, const char *name, uint64_t size)
{
    const char *path = dataset_path(d, name);
    make_parent(path);
    struct pattern pattern = pattern_of(name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
        bail_out("make %s: %s", path, strerror(errno));
    for (uint64_t at = 0; at < size; at += BLOCK) {
        char block[BLOCK];
        size_t n = size - at < BLOCK ? (size_t)(size - at) : BLOCK;
        size_t written = pattern.sparse && n > WORD ? WORD : n;
        fill(&pattern, at, block, written);
        if (pwrite(fd, block, written, (off_t)at) != (ssize_t)written)
            bail_out("write %s: %s", path, strerror(errno));
    }
    close(fd);
}

void dataset_add_namesakes(struct dataset *d, uint64_t size)
{
    static const char *const name[] = {NAMESAKE_A, NAMESAKE_B};
    const struct timespec then[2] = {{1000000000, 0}, {1000000000, 0}};
    for (int i = 0; i < 2; i++) {
        dataset_add(d, name[i], size);
        if (utimensat(AT_FDCWD, dataset_path(d, name[i]), then, 0) < 0)
            bail_out("set the time of %s: %s", name[i], strerror(errno));
    }
}

static void scan(struct dataset *d, enum rescan how)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct scan_progress result;
    char path[sizeof d->source + 16];
    snprintf(path, sizeof path, "%s.catalog", d->source);
    struct scan_options options = {.rescan = how, .acls = d->acls};
    catalog_close(d->catalog);
    if (scan_source(d->root, path, &options, &d->catalog, &why, &result) < 0)
        bail_out("scan %s: %s", d->source, why.data);
}

void dataset_scan(struct dataset *d)
{
    scan(d, RESCAN_ALWAYS);
}

void dataset_scan_again(struct dataset *d)
{
    scan(d, RESCAN_AUTO);
}

void dataset_end(struct dataset *d)
{
    catalog_close(d->catalog);
    close(d->root);
}

uint32_t dataset_file(const struct dataset *d, const char *path)
{
    uint64_t ino;
    uint32_t file = 0;
    if (catalog_find(d->catalog, path, strlen(path), &ino) < 0 || catalog_ino_file(d->catalog, ino, &file) < 0)
        bail_out("%s is not in the catalog", path);
    return file;
}

uint64_t dataset_size(const struct dataset *d, uint32_t file)
{
    return catalog_file(d->catalog, file).size;
}

int dataset_open_files(const struct dataset *d)
{
    int count = 0;
    size_t n = strlen(d->source);
    for (int fd = 3; fd < 256; fd++) {
        char link[64], target[PATH_MAX];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        count += !strncmp(target, d->source, n) && target[n] == '/';
    }
    return count;
}

/* Near edges of values and pieces half of the time. */
struct span dataset_random_span(const struct dataset *d, uint32_t file, uint64_t *random)
{
    uint64_t size = dataset_size(d, file);
    uint64_t offset = random_next(random) % size;
    if (random_next(random) % 2)
        offset -= offset % VALUE_BYTES;
    uint64_t length = random_next(random) % 3 ? random_next(random) % 8192 + 1 : random_next(random) % SPAN_BYTES + 1;
    if (length > size - offset)
        length = size - offset;
    return (struct span){.file = file, .offset = offset, .length = (uint32_t)length};
}

static struct pattern pattern_of_file(const struct dataset *d, uint32_t file)
{
    char path[CATALOG_PATH_MAX];
    if (catalog_path(d->catalog, catalog_file_ino(d->catalog, file), path, sizeof path) < 0)
        bail_out("file %u has no path", file);
    return pattern_of(path);
}

static bool matches(const struct pattern *pattern, uint64_t offset, const char *got, size_t n)
{
    char want[4096];
    for (size_t i = 0, m; i < n; i += m) {
        m = n - i < sizeof want ? n - i : sizeof want;
        fill(pattern, offset + i, want, m);
        if (memcmp(want, got + i, m))
            return false;
    }
    return true;
}

bool dataset_matches_bytes(const struct dataset *d, const struct span *span, const void *bytes)
{
    struct pattern pattern = pattern_of_file(d, span->file);
    return matches(&pattern, span->offset, bytes, span->length);
}

bool dataset_matches(const struct dataset *d, const struct span *span, const struct answer *answer)
{
    struct pattern pattern = pattern_of_file(d, span->file);
    uint64_t at = span->offset;
    for (int i = 0; i < answer->pieces; i++) {
        if (!matches(&pattern, at, answer->piece[i].iov_base, answer->piece[i].iov_len))
            return false;
        at += answer->piece[i].iov_len;
    }
    return at == span->offset + span->length;
}

static struct tier_config tier_of(const char *name, uint64_t capacity, bool keep)
{
    const char *path = test_path("%s", name);
    if (!keep)
        dir_remove_tree(AT_FDCWD, path);
    if (capacity && dir_make(path, 0700) < 0)
        bail_out("mkdir %s", path);
    return (struct tier_config){.directory = capacity ? path : NULL, .capacity = capacity};
}

static int source_threads = 4;

void dataset_threads(int threads)
{
    source_threads = threads;
}

static uint64_t source_rate;

void dataset_rate(uint64_t rate)
{
    source_rate = rate;
}

struct store *dataset_store(const struct dataset *d, uint64_t ram, uint64_t ssd, const char *faults, bool keep)
{
    char with_file[2 * PATH_MAX] = "";
    const char *at = faults ? strstr(faults, "FILE") : NULL;
    if (at)
        snprintf(with_file, sizeof with_file, "%.*s%s%s", (int)(at - faults), faults, test_path("faults"), at + 4);
    struct store_config config = {
        .catalog = d->catalog,
        .source = d->root,
        .tier = {[TIER_RAM] = tier_of("ram", ram, keep), [TIER_SSD] = tier_of("ssd", ssd, keep)},
        .zstd_level = 1,
        .source_threads = source_threads,
        .source_rate = source_rate,
        .faults = at ? with_file : faults,
    };
    struct store *store;
    int error = store_open(&config, &store);
    if (error)
        bail_out("open a store: %s", strerror(-error));
    return store;
}

void faults_set(const char *specification)
{
    if (file_write_atomic(AT_FDCWD, test_path("faults"), specification, strlen(specification), 0644) < 0)
        bail_out("write the faults");
}

struct waiter {
    struct store_read read; /* first */
    sem_t done;
    int error;
};

static void wake(struct store_read *read, int error)
{
    struct waiter *w = (struct waiter *)read;
    w->error = error;
    sem_post(&w->done);
}

static int wait_as(struct store *store, struct store_read *read, const struct span *span, bool fed)
{
    struct waiter w = {.read = {.span = *span, .fed = fed, .done = wake}};
    sem_init(&w.done, 0, 0);
    int error = store_read(store, &w.read);
    if (error == -EINPROGRESS) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += test_patience() / 1000 + 1;
        while (sem_timedwait(&w.done, &until) < 0)
            if (errno != EINTR)
                bail_out("a read was never answered");
        error = w.error;
    }
    sem_destroy(&w.done);
    *read = w.read;
    return error;
}

struct store_stats stats_of(struct store *store)
{
    struct store_stats stats;
    store_stats(store, &stats);
    return stats;
}

struct stage_progress progress_of(struct store *store)
{
    struct stage_progress progress;
    store_stage_progress(store, &progress);
    return progress;
}

int read_wait(struct store *store, struct store_read *read, uint32_t file, uint64_t offset, uint32_t length)
{
    return wait_as(store, read, &(struct span){.file = file, .offset = offset, .length = length}, false);
}

static int check_as(struct store *store, const struct dataset *d, const struct span *span, enum place *place, bool fed)
{
    struct store_read read;
    int error = wait_as(store, &read, span, fed);
    if (error)
        return error;
    if (!dataset_matches(d, span, &read.answer))
        error = -EBADMSG;
    answer_release(&read.answer);
    if (place)
        *place = read.place;
    return error;
}

int read_check(struct store *store, const struct dataset *d, const struct span *span, enum place *place)
{
    return check_as(store, d, span, place, false);
}

int read_check_fed(struct store *store, const struct dataset *d, const struct span *span)
{
    return check_as(store, d, span, NULL, true);
}

void wait_step(int steps, const char *condition)
{
    if (steps % 1000 == 999 && test_patience() == 1)
        bail_out("waited in vain until %s", condition);
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static int log_fd = -1;

void log_to_file(void)
{
    log_fd = open(test_path("log"), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log_fd < 0)
        bail_out("open the log: %s", strerror(errno));
    log_open("test", log_fd, false);
}

const char *log_text(void)
{
    static char text[64 << 10];
    static off_t at;
    ssize_t n = pread(log_fd, text, sizeof text - 1, at);
    at += n > 0 ? n : 0;
    text[n > 0 ? n : 0] = '\0';
    return text;
}
