/* The reader of `make bench`: T threads read the files of a list in random order, and time it.
 *
 *   reader [-t THREADS] [-r ROUNDS] [-a] [-c] [-d] [-k BYTES] [-n READS] [-s SEED] [-o] [-u TIME] [-w READS] LIST
 *
 * LIST has a path a line. Every file is read whole by open, read, close; -c drops the files' page cache before each
 * round (names and inodes stay known), outside the timing; -d reads with O_DIRECT; -k BYTES reads -n READS random
 * blocks of that size with pread instead; -a asks for attributes by stat instead, and -c then drops the kernel's names
 * and inodes, of the whole machine; -o reads in the list's own order; -u computes for so many microseconds after each
 * file; -w leaves the first reads out of what is said about their times. Prints one line: files/s (or reads/s) of the
 * fastest, median and slowest round, MiB/s of the median, and p50, p99 and slowest read of the last round, in
 * microseconds. A short read is an error: exit status 1. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MOST = 64, BUFFER = 1 << 20, HUGE = 2 << 20, ROUNDS_MOST = 64 };

static struct {
    char **path;
    off_t *size;
    uint32_t *order;
    size_t count;
    size_t reads; /* of a round */
    size_t block; /* 0: whole files */
    bool direct, attributes, in_order;
    uint64_t compute; /* nanoseconds */
    size_t skipped;   /* of the latencies */
    float *latency;   /* microseconds, one a read */
} job;
static _Atomic size_t next_read;
static _Atomic uint64_t bytes_read;
static _Atomic int failed;

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + t.tv_nsec;
}

static uint64_t mix(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void shuffle(uint64_t seed)
{
    for (size_t i = 0; i < job.reads; i++)
        job.order[i] = i % job.count;
    if (job.in_order)
        return;
    for (size_t i = job.reads; i > 1; i--) {
        size_t j = mix(&seed) % i;
        uint32_t swap = job.order[i - 1];
        job.order[i - 1] = job.order[j];
        job.order[j] = swap;
    }
}

static ssize_t read_whole(int fd, char *buffer, off_t size)
{
    off_t done = 0;
    for (;;) {
        size_t want = size - done < BUFFER && !job.direct ? (size_t)(size - done) : BUFFER;
        ssize_t n = want ? read(fd, buffer, want) : 0;
        if (n < 0)
            return -1;
        done += n;
        if (n == 0 || done >= size)
            return done;
    }
}

static bool read_one(uint32_t file, char *buffer, uint64_t *seed)
{
    struct stat st;
    if (job.attributes)
        return stat(job.path[file], &st) == 0 && st.st_size == job.size[file];
    int fd = open(job.path[file], O_RDONLY | O_CLOEXEC | (job.direct ? O_DIRECT : 0));
    if (fd < 0)
        return false;
    ssize_t n, want;
    if (job.block) {
        off_t offset = mix(seed) % (job.size[file] / job.block) * job.block;
        want = job.block;
        n = pread(fd, buffer, job.block, offset);
    } else {
        want = job.size[file];
        n = read_whole(fd, buffer, want);
    }
    close(fd);
    if (n > 0)
        bytes_read += n;
    return n == want;
}

static void *reader(void *number)
{
    char *buffer = aligned_alloc(HUGE, HUGE);
    madvise(buffer, HUGE, MADV_HUGEPAGE); /* with O_DIRECT, disks read faster into memory in one piece */
    uint64_t seed = (uintptr_t)number + 77;
    for (;;) {
        size_t i = next_read++;
        if (i >= job.reads)
            break;
        uint64_t began = now();
        if (!read_one(job.order[i], buffer, &seed) && !failed++)
            fprintf(stderr, "reader: %s: %s\n", job.path[job.order[i]], strerror(errno));
        uint64_t ended = now();
        job.latency[i] = (ended - began) / 1e3;
        while (job.compute && now() - ended < job.compute)
            ;
    }
    free(buffer);
    return NULL;
}

static void drop_cache(void)
{
    for (size_t i = 0; i < job.count; i++) {
        int fd = open(job.path[i], O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
    }
}

static void drop_names(void)
{
    FILE *f = fopen("/proc/sys/vm/drop_caches", "w");
    if (!f || fputs("2", f) < 0 || fclose(f) != 0) {
        perror("reader: /proc/sys/vm/drop_caches");
        exit(1);
    }
}

static void load_list(const char *name)
{
    FILE *f = fopen(name, "r");
    if (!f) {
        perror(name);
        exit(1);
    }
    size_t room = 0, n = 0;
    char *line = NULL;
    ssize_t length;
    while ((length = getline(&line, &n, f)) > 0) {
        if (line[length - 1] == '\n')
            line[length - 1] = '\0';
        if (job.count == room) {
            room = room ? 2 * room : 1024;
            job.path = realloc(job.path, room * sizeof *job.path);
            job.size = realloc(job.size, room * sizeof *job.size);
        }
        struct stat st;
        if (stat(line, &st) != 0) {
            perror(line);
            exit(1);
        }
        job.path[job.count] = strdup(line);
        job.size[job.count++] = st.st_size;
    }
    free(line);
    fclose(f);
}

static int compare_float(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static float run_round(int threads)
{
    pthread_t thread[THREADS_MOST];
    next_read = 0;
    bytes_read = 0;
    uint64_t began = now();
    for (long i = 0; i < threads; i++)
        pthread_create(&thread[i], NULL, reader, (void *)i);
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    return (now() - began) / 1e9;
}

struct words {
    int threads, rounds;
    bool cold;
    uint64_t seed;
    const char *list;
};

static uint64_t number(void)
{
    return strtoul(optarg, NULL, 10);
}

static struct words parse(int argc, char **argv)
{
    struct words w = {.threads = 2, .rounds = 3, .seed = 1};
    int option;
    while ((option = getopt(argc, argv, "t:r:acdk:n:s:ou:w:")) != -1) {
        switch (option) {
        case 't':
            w.threads = atoi(optarg);
            break;
        case 'r':
            w.rounds = atoi(optarg);
            break;
        case 'a':
            job.attributes = true;
            break;
        case 'c':
            w.cold = true;
            break;
        case 'd':
            job.direct = true;
            break;
        case 'k':
            job.block = number();
            break;
        case 'n':
            job.reads = number();
            break;
        case 's':
            w.seed = number();
            break;
        case 'o':
            job.in_order = true;
            break;
        case 'u':
            job.compute = number() * 1000;
            break;
        case 'w':
            job.skipped = number();
            break;
        default:
            exit(2);
        }
    }
    if (optind + 1 != argc || w.threads < 1 || w.threads > THREADS_MOST || w.rounds < 1 || w.rounds > ROUNDS_MOST) {
        fprintf(stderr, "usage: reader [-t THREADS] [-r ROUNDS] [-a] [-c] [-d] [-k BYTES] [-n READS] [-s SEED] [-o] "
                        "[-u TIME] [-w READS] LIST\n");
        exit(2);
    }
    w.list = argv[optind];
    return w;
}

int main(int argc, char **argv)
{
    struct words w = parse(argc, argv);
    load_list(w.list);
    if (!job.reads)
        job.reads = job.count;
    job.order = malloc(job.reads * sizeof *job.order);
    job.latency = malloc(job.reads * sizeof *job.latency);
    if (job.count == 0 || !job.order || !job.latency || job.skipped >= job.reads)
        return 1;

    float rate[ROUNDS_MOST];
    for (int r = 0; r < w.rounds; r++) {
        shuffle(w.seed + r);
        if (w.cold && job.attributes)
            drop_names();
        else if (w.cold)
            drop_cache();
        rate[r] = job.reads / run_round(w.threads);
    }
    double mean = (double)bytes_read / job.reads;
    qsort(rate, w.rounds, sizeof *rate, compare_float);
    float *latency = job.latency + job.skipped;
    size_t counted = job.reads - job.skipped;
    qsort(latency, counted, sizeof *latency, compare_float);
    printf("best=%.0f median=%.0f worst=%.0f MiB/s=%.0f p50us=%.1f p99us=%.1f maxus=%.1f failed=%d\n",
           rate[w.rounds - 1], rate[w.rounds / 2], rate[0], rate[w.rounds / 2] * mean / (1 << 20), latency[counted / 2],
           latency[counted * 99 / 100], latency[counted - 1], failed);
    return failed ? 1 : 0;
}
