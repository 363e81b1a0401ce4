/* Simulated training: ranks whose computing is sleep, with real loaders.
 *
 *   trainer BATCH MICROSECONDS[,PREPARE] WORKERS AHEAD STEPS LIST…
 *
 * Each rank has a LIST of paths, one per line, in the order of its epochs, of STEPS batches each. Its WORKERS read the
 * samples whole, in order, at most AHEAD batches before the step that needs them, also beyond an epoch's end, and drop
 * their pages. To prepare a sample they sleep PREPARE microseconds. A step begins when all ranks have their batch, as a
 * sum of gradients would have it, and takes MICROSECONDS. Prints a line after each epoch: its seconds, those of
 * computing, and those of waiting, of which those for its first batch; a mean of the ranks.
 *
 * Threads: a rank's workers wait for `moved` while they are far enough ahead, its trainer waits for `ready`. Trainers
 * wait for each other at `together`. Both are under the lock of the rank. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { AHEAD_MOST = 64, RANKS_MOST = 64, BUFFER = 1 << 20 };

struct rank {
    pthread_mutex_t lock;
    pthread_cond_t moved, ready;
    pthread_t thread, *worker;
    char **path;
    size_t samples;
    size_t next, step;                      /* under lock: the next sample to be read; the step that is computed */
    unsigned short missing[AHEAD_MOST + 1]; /* under lock: samples of a batch that have not come; a ring */
    double seconds, waited, first;          /* in this epoch; the trainer's own */
};

static struct rank rank[RANKS_MOST];
static size_t ranks, batch, workers, ahead, steps;
static double compute, prepare;
static pthread_barrier_t together;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void pause_for(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    nanosleep(&t, NULL);
}

static void fail(const char *what)
{
    fprintf(stderr, "trainer: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* --- loading --- */

static void read_sample(const char *path, char *buffer)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        fail(path);
    off_t left = st.st_size;
    for (ssize_t n; left > 0; left -= n) {
        n = read(fd, buffer, BUFFER);
        if (n <= 0)
            fail(path);
    }
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    if (prepare > 0)
        pause_for(prepare);
}

static void *load(void *argument)
{
    struct rank *r = argument;
    char *buffer = malloc(BUFFER);
    pthread_mutex_lock(&r->lock);
    while (buffer && r->next < r->samples) {
        size_t i = r->next++, of = i / batch;
        while (of > r->step + ahead)
            pthread_cond_wait(&r->moved, &r->lock);
        pthread_mutex_unlock(&r->lock);
        read_sample(r->path[i], buffer);
        pthread_mutex_lock(&r->lock);
        if (--r->missing[of % (ahead + 1)] == 0)
            pthread_cond_signal(&r->ready);
    }
    pthread_mutex_unlock(&r->lock);
    free(buffer);
    return NULL;
}

/* --- training --- */

static void await_batch(struct rank *r, bool first)
{
    double began = now();
    pthread_mutex_lock(&r->lock);
    while (r->missing[r->step % (ahead + 1)] > 0)
        pthread_cond_wait(&r->ready, &r->lock);
    pthread_mutex_unlock(&r->lock);
    pthread_barrier_wait(&together);
    double took = now() - began;
    r->waited += took;
    if (first)
        r->first = took;
}

static void compute_step(struct rank *r)
{
    pause_for(compute);
    pthread_mutex_lock(&r->lock);
    r->missing[r->step % (ahead + 1)] = (unsigned short)batch;
    r->step++;
    pthread_cond_broadcast(&r->moved);
    pthread_mutex_unlock(&r->lock);
}

static void print_epoch(void)
{
    double seconds = 0, waited = 0, first = 0;
    for (size_t i = 0; i < ranks; i++) {
        seconds += rank[i].seconds / (double)ranks;
        waited += rank[i].waited / (double)ranks;
        first += rank[i].first / (double)ranks;
    }
    printf("%.4f %.4f %.4f %.4f\n", seconds, seconds - waited, waited, first);
    fflush(stdout);
}

static void *train(void *argument)
{
    struct rank *r = argument;
    size_t all = r->samples / batch;
    double began = now();
    for (size_t i = 0; i < all; i++) {
        await_batch(r, i % steps == 0);
        compute_step(r);
        if ((i + 1) % steps)
            continue;
        pthread_barrier_wait(&together);
        r->seconds = now() - began;
        began = now();
        pthread_barrier_wait(&together);
        if (r == rank)
            print_epoch();
        pthread_barrier_wait(&together);
        r->waited = 0;
    }
    return NULL;
}

/* --- setting up --- */

static void read_list(struct rank *r, const char *name)
{
    FILE *f = fopen(name, "r");
    char *line = NULL;
    size_t room = 0;
    if (!f)
        fail(name);
    for (ssize_t n; (n = getline(&line, &room, f)) > 1;) {
        line[n - 1] = '\0';
        r->path = realloc(r->path, (r->samples + 1) * sizeof *r->path);
        if (!r->path || !(r->path[r->samples++] = strdup(line)))
            fail(name);
    }
    free(line);
    fclose(f);
    if (r->samples == 0 || r->samples % (batch * steps) || r->samples != rank[0].samples) {
        errno = EINVAL;
        fail(name);
    }
}

static void start(struct rank *r)
{
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->moved, NULL);
    pthread_cond_init(&r->ready, NULL);
    r->worker = calloc(workers, sizeof *r->worker);
    for (size_t i = 0; i <= ahead; i++)
        r->missing[i] = (unsigned short)batch;
    for (size_t i = 0; r->worker && i < workers; i++)
        pthread_create(&r->worker[i], NULL, load, r);
    pthread_create(&r->thread, NULL, train, r);
}

static void finish(struct rank *r)
{
    pthread_join(r->thread, NULL);
    for (size_t i = 0; i < workers; i++)
        pthread_join(r->worker[i], NULL);
    for (size_t i = 0; i < r->samples; i++)
        free(r->path[i]);
    free(r->path);
    free(r->worker);
}

int main(int argc, char **argv)
{
    if (argc < 6 || argc > 5 + RANKS_MOST) {
        fprintf(stderr, "usage: trainer BATCH MICROSECONDS[,PREPARE] WORKERS AHEAD STEPS LIST...\n");
        return 2;
    }
    batch = strtoul(argv[1], NULL, 10);
    char *end;
    compute = 1e-6 * strtod(argv[2], &end);
    prepare = *end == ',' ? 1e-6 * strtod(end + 1, &end) : 0;
    workers = strtoul(argv[3], NULL, 10);
    ahead = strtoul(argv[4], NULL, 10);
    steps = strtoul(argv[5], NULL, 10);
    ranks = (size_t)argc - 6;
    if (*end || batch < 1 || batch > UINT16_MAX || workers < 1 || ahead > AHEAD_MOST || steps < 1)
        return 2;
    for (size_t i = 0; i < ranks; i++)
        read_list(&rank[i], argv[6 + i]);
    pthread_barrier_init(&together, NULL, (unsigned)ranks);
    for (size_t i = 0; i < ranks; i++)
        start(&rank[i]);
    for (size_t i = 0; i < ranks; i++)
        finish(&rank[i]);
    return 0;
}
