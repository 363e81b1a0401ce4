/* hits same|apart THREADS SECONDS: how many reads a second the store answers from its RAM tier, without FUSE, when
 * each thread reads 4 KiB at random places of the same file, or of one of its own, which lies in segments of its own.
 * What the threads write to the same cache lines shows as less than THREADS times what one does. Seconds are those of
 * the threads' processor time, so that others on the machine count less. */
#include "tests/fs/store/dataset.h"
#include "tests/lib/tap.h"

#include "fs/base/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FILE_BYTES = 16 << 20, LENGTH = 4096, MOST_THREADS = 64 };

struct hitter {
    _Alignas(CACHE_LINE) pthread_t thread;
    struct store *store;
    uint32_t file;
    uint64_t random, reads;
    double rate;
};

static atomic_bool stop;

static void *hit(void *argument)
{
    struct hitter *h = argument;
    struct store_read *read = calloc(1, sizeof *read);
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        uint64_t block = random_next(&h->random) % (FILE_BYTES / LENGTH);
        read->span = (struct span){.file = h->file, .length = LENGTH, .offset = block * LENGTH};
        if (store_read(h->store, read) || read->place != PLACE_RAM)
            bail_out("a read that is no hit");
        answer_release(&read->answer);
        h->reads++;
    }
    struct timespec spent;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    h->rate = (double)h->reads / ((double)spent.tv_sec + (double)spent.tv_nsec / 1e9);
    free(read);
    return NULL;
}

int main(int argc, char **argv)
{
    static struct hitter hitter[MOST_THREADS];
    int threads = argc == 4 ? atoi(argv[2]) : 0, seconds = argc == 4 ? atoi(argv[3]) : 0;
    if (threads < 1 || threads > MOST_THREADS || seconds < 1) {
        fprintf(stderr, "usage: hits same|apart THREADS SECONDS\n");
        return 2;
    }
    struct dataset d;
    char name[16];
    dataset_begin(&d);
    for (int i = 0; i < threads; i++) {
        snprintf(name, sizeof name, "%d", i);
        dataset_add(&d, name, FILE_BYTES);
    }
    dataset_scan(&d);
    uint64_t capacity = (uint64_t)(threads + 4) * 2 * FILE_BYTES;
    double rate = 0;
    struct store *store = dataset_store(&d, capacity, 0, NULL, false);
    for (int i = 0; i < threads; i++) {
        struct store_read read;
        snprintf(name, sizeof name, "%d", strcmp(argv[1], "same") ? i : 0);
        hitter[i] = (struct hitter){.store = store, .file = dataset_file(&d, name), .random = (uint64_t)i + 1};
        for (uint64_t at = 0; at < FILE_BYTES; at += SPAN_BYTES) {
            if (read_wait(store, &read, hitter[i].file, at, SPAN_BYTES))
                bail_out("fill the tier");
            answer_release(&read.answer);
        }
    }
    for (int i = 0; i < threads; i++)
        pthread_create(&hitter[i].thread, NULL, hit, &hitter[i]);
    sleep((unsigned)seconds);
    atomic_store(&stop, true);
    for (int i = 0; i < threads; i++) {
        pthread_join(hitter[i].thread, NULL);
        rate += hitter[i].rate;
    }
    printf("%.0f\n", rate);
    store_close(store);
    dataset_end(&d);
    return 0;
}
