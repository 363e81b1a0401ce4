/* What the feeder asks for: counted apart, and behind everybody else. */
#include "fs/wire/feed.h"
#include "tests/fs/base/moved-clock.h"
#include "tests/fs/store/dataset.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define MIB ((uint64_t)1 << 20)
enum { FILES = 40, BYTES = 100000 };

static struct dataset d;

static atomic_int hangs; /* looks of threads that hang at the source */

int nanosleep(const struct timespec *time, struct timespec *left)
{
    atomic_fetch_add(&hangs, gettid() != getpid());
    return clock_nanosleep(CLOCK_MONOTONIC, 0, time, left) ? -1 : 0;
}

static const char *file_name(const char *folder, int i)
{
    static char name[32];
    snprintf(name, sizeof name, "%s/%02d", folder, i);
    return name;
}

static struct span file_span(const char *folder, int i)
{
    uint32_t file = dataset_file(&d, file_name(folder, i));
    return (struct span){.file = file, .length = (uint32_t)dataset_size(&d, file)};
}

static void *close_store(void *store)
{
    store_close(store);
    return NULL;
}

struct asked {
    struct store_read read; /* first */
    atomic_int error;       /* 1: not answered yet */
    int place;              /* in the order of answers */
};

static atomic_int answers;

static void asked_done(struct store_read *read, int error)
{
    struct asked *a = (struct asked *)read;
    if (!error && !dataset_matches(&d, &read->span, &read->answer))
        error = -EBADMSG;
    answer_release(&read->answer);
    a->place = atomic_fetch_add(&answers, 1);
    atomic_store(&a->error, error);
}

static void ask(struct store *store, struct asked *a, const struct span *span, bool fed)
{
    *a = (struct asked){.read = {.span = *span, .fed = fed, .done = asked_done}, .error = 1};
    int error = store_read(store, &a->read);
    if (error != -EINPROGRESS)
        asked_done(&a->read, error);
}

static int answer_of(struct asked *a)
{
    wait_until(atomic_load(&a->error) != 1);
    return atomic_load(&a->error);
}

static void test_counts(void)
{
    faults_set("hang");
    struct store *store = dataset_store(&d, 16 * MIB, 0, "file=FILE", false);
    struct asked fed[2], other, again;
    struct span span[] = {file_span("fed", 0), file_span("fed", 1), file_span("other", 0), file_span("fed", 2)};
    for (int i = 0; i < 2; i++)
        ask(store, &fed[i], &span[i], true);
    ask(store, &other, &span[2], false);
    is_uint(stats_of(store).fed.waits[PLACE_SOURCE], 2, "what is fed and waits is counted, by whom it waits for");
    is_uint(stats_of(store).parked, 1, "and not with readers");
    ok(store_cancel(store, &fed[0].read), "one gives up");
    is_uint(stats_of(store).fed.waits[PLACE_SOURCE], 1, "it waits no more");
    faults_set("");
    is_int(answer_of(&fed[1]), 0, "what is fed is answered");
    is_int(answer_of(&other), 0, "as readers are");
    wait_until(stats_of(store).fed.waits[PLACE_SOURCE] == 0);
    ask(store, &again, &span[1], true);
    is_int(answer_of(&again), 0, "at once when it is held");
    struct store_stats stats = stats_of(store);
    is_uint(stats.fed.reads[PLACE_SOURCE], 1, "what was fed from the source");
    is_uint(stats.fed.bytes[PLACE_SOURCE], BYTES, "and its bytes");
    is_uint(stats.fed.reads[PLACE_RAM], 1, "and from memory");
    is_uint(stats.reads[PLACE_SOURCE], 1, "readers' reads are theirs alone");
    is_uint(stats.reads[PLACE_RAM], 0, "from every place");
    faults_set("errno=EIO");
    ask(store, &again, &span[3], true);
    is_int(answer_of(&again), -EIO, "the feeder hears of what fails");
    is_uint(stats_of(store).fed.errors, 1, "which is counted");
    is_uint(stats_of(store).errors[EIO], 0, "not as an error of a reader");
    store_close(store);
}

/* The store has four threads for the source: three of them may feed. */
enum { THREADS = 4, FED = 36, READERS = 12 };

static void ask_files(struct store *store, struct asked *a, const char *folder, int first, int count)
{
    for (int i = 0; i < count; i++) {
        struct span span = file_span(folder, first + i);
        ask(store, &a[i], &span, folder[0] == 'f');
    }
}

static int wrong_answers(struct asked *a, int count)
{
    int wrong = 0;
    for (int i = 0; i < count; i++)
        wrong += answer_of(&a[i]) != 0;
    return wrong;
}

static int last_place(const struct asked *a, int count)
{
    int last = 0;
    for (int i = 0; i < count; i++)
        last = a[i].place > last ? a[i].place : last;
    return last;
}

static uint64_t fed_waits(struct store *store)
{
    return stats_of(store).fed.waits[PLACE_SOURCE];
}

/* With a tier as loads, without one directly. */
static void test_behind_hanging(const char *what, uint64_t ram)
{
    struct asked fed[FED], other[READERS];
    faults_set("hang=fed/*");
    struct store *store = dataset_store(&d, ram, 0, "file=FILE", false);
    ask_files(store, fed, "fed", 0, FED);
    ask_files(store, other, "other", 0, READERS);
    is_int(wrong_answers(other, READERS), 0, "%s: readers are answered", what);
    is_uint(fed_waits(store), FED, "%s: while all that is fed waits", what);
    faults_set("hang=fed/03");
    wait_until(fed_waits(store) == 1);
    is_int(wrong_answers(fed, 3) + wrong_answers(fed + 4, FED - 4), 0, "%s: one that hangs does not stop the rest",
           what);
    faults_set("");
    is_int(answer_of(&fed[3]), 0, "%s: it comes, too", what);
    store_close(store);
}

/* Of eight threads those that hang for the feeder are six at most, when one of them has been seen to hang. */
static void test_stuck(const char *what, uint64_t ram)
{
    enum { MANY = 8, STUCK = 4 };
    struct asked fed[FED], other[2];
    faults_set("hang=*/0*");
    dataset_threads(MANY);
    struct store *store = dataset_store(&d, ram, 0, "file=FILE", false);
    dataset_threads(THREADS);
    atomic_store(&hangs, 0);
    ask_files(store, fed, "fed", 0, STUCK);
    wait_until(atomic_load(&hangs) > 0);
    clock_add(2 * SECOND);
    ask_files(store, fed + STUCK, "fed", STUCK, FED - STUCK);
    ask_files(store, &other[0], "other", 0, 1);
    ask_files(store, &other[1], "other", 10, 1);
    is_int(answer_of(&other[1]), 0, "%s: beside a reader and a feeder that hang another reader is answered", what);
    is_int(atomic_load(&other[0].error), 1, "%s: while they do", what);
    faults_set("");
    is_int(answer_of(&other[0]) + wrong_answers(fed, FED), 0, "%s: and they are, in the end", what);
    store_close(store);
}

/* With one thread, which is busy meanwhile, all are answered in the order in which they are taken. */
static struct store *open_busy(struct asked *busy, uint64_t ram)
{
    struct span span = file_span("busy", 0);
    faults_set("hang");
    dataset_threads(1);
    struct store *store = dataset_store(&d, ram, 0, "file=FILE", false);
    dataset_threads(THREADS);
    atomic_store(&answers, 0);
    ask(store, busy, &span, false);
    return store;
}

static void test_order(const char *what, uint64_t ram)
{
    struct asked busy, fed[FED], other[READERS];
    struct store *store = open_busy(&busy, ram);
    ask_files(store, fed, "fed", 0, FED);
    ask_files(store, other, "other", 0, READERS);
    faults_set("");
    is_int(answer_of(&busy) + wrong_answers(fed, FED) + wrong_answers(other, READERS), 0, "%s: all are answered", what);
    ok(last_place(other, READERS) <= READERS + 2, "%s: readers before what was fed earlier", what);
    store_close(store);
}

static void test_turn(const char *what, uint64_t ram)
{
    struct asked busy, fed, other[FED];
    struct store *store = open_busy(&busy, ram);
    ask_files(store, &fed, "fed", 0, 1);
    ask_files(store, other, "other", 0, FED);
    faults_set("");
    is_int(answer_of(&busy) + answer_of(&fed) + wrong_answers(other, FED), 0, "%s: all are answered", what);
    ok(fed.place <= 9, "%s: what is fed does not wait for ever", what);
    store_close(store);
}

static void test_joined(void)
{
    struct asked busy, fed[FED], joins;
    struct span span = file_span("fed", FED - 1);
    struct store *store = open_busy(&busy, 16 * MIB);
    ask_files(store, fed, "fed", 0, FED);
    ask(store, &joins, &span, false);
    faults_set("");
    is_int(answer_of(&busy) + answer_of(&joins) + wrong_answers(fed, FED), 0, "all are answered");
    ok(joins.place <= 2 && fed[FED - 1].place <= 2, "a reader makes what was fed last urgent");
    is_uint(stats_of(store).source_samples, 1 + FED, "it is loaded once");
    store_close(store);
}

static void test_failing(const char *what, uint64_t ram)
{
    struct asked fed[FED], again;
    struct span span = file_span("fed", 5);
    faults_set("errno=EIO,match=fed/05");
    struct store *store = dataset_store(&d, ram, 0, "file=FILE", false);
    ask_files(store, fed, "fed", 0, FED);
    is_int(wrong_answers(fed, 5) + wrong_answers(fed + 6, FED - 6), 0, "%s: others hear nothing of a file that fails",
           what);
    is_int(answer_of(&fed[5]), -EIO, "%s: who asks for it does", what);
    ask(store, &again, &span, false);
    is_int(answer_of(&again), -EIO, "%s: and who reads it", what);
    faults_set("");
    ask(store, &again, &span, false);
    is_int(answer_of(&again), 0, "%s: until it is there again", what);
    store_close(store);
}

/* 4 MiB and more, in pieces as readahead asks for them. */
static void test_large(void)
{
    enum { PIECE = 128 << 10, PIECES = 64 };
    static struct asked fed[PIECES];
    uint32_t file = dataset_file(&d, "large");
    struct store *store = dataset_store(&d, 32 * MIB, 0, NULL, false);
    for (int i = 0; i < PIECES; i++) {
        struct span span = {.file = file, .length = PIECE, .offset = (uint64_t)i * PIECE};
        ask(store, &fed[i], &span, true);
    }
    is_int(wrong_answers(fed, PIECES), 0, "a large file is fed");
    is_uint(stats_of(store).source_bytes, PIECES * PIECE, "each byte is read once");
    store_close(store);
}

static void test_closing(void)
{
    struct asked fed[FED];
    int ended = 0;
    faults_set("hang");
    struct store *store = dataset_store(&d, 16 * MIB, 0, "file=FILE", false);
    ask_files(store, fed, "fed", 0, FED);
    for (int i = 0; i < FED; i += 2)
        ended += store_cancel(store, &fed[i].read);
    is_int(ended, FED / 2, "any can give up");
    is_uint(fed_waits(store), FED / 2, "the others wait");
    pthread_t closer;
    pthread_create(&closer, NULL, close_store, store);
    ended = 0;
    for (int i = 1; i < FED; i += 2)
        ended += answer_of(&fed[i]) == -ESHUTDOWN;
    is_int(ended, FED / 2, "the end of the store is told to all of them");
    faults_set("");
    pthread_join(closer, NULL);
}

/* On an SSD that hangs for what is fed. The clock stands, since an SSD that hangs for a second is passed. */
static void test_disk(void)
{
    struct asked fed[FED], other[READERS];
    faults_set("");
    struct store *store = dataset_store(&d, 0, 16 * MIB, "on=ssd,file=FILE", false);
    ask_files(store, fed, "fed", 0, FED);
    ask_files(store, other, "other", 0, READERS);
    is_int(wrong_answers(fed, FED) + wrong_answers(other, READERS), 0, "the SSD is filled");
    clock_stand();
    faults_set("hang=fed/*");
    atomic_store(&answers, 0);
    ask_files(store, fed, "fed", 0, FED);
    ask_files(store, other, "other", 0, READERS);
    is_int(wrong_answers(other, READERS), 0, "readers of the SSD are answered");
    ok(stats_of(store).fed.waits[PLACE_SSD] > 0, "while what is fed waits");
    is_int(other[READERS - 1].read.place, PLACE_SSD, "from the SSD");
    ok(store_cancel(store, &fed[FED - 1].read), "what waits gives up");
    faults_set("");
    is_int(wrong_answers(fed, FED - 1), 0, "the rest comes");
    is_uint(stats_of(store).fed.reads[PLACE_SSD], FED - 1, "from the SSD, too");
    wait_until(stats_of(store).fed.waits[PLACE_SSD] == 0);
    clock_run();
    store_close(store);
}

int main(void)
{
    dataset_begin(&d);
    for (int i = 0; i < FILES; i++) {
        dataset_add(&d, file_name("fed", i), BYTES);
        dataset_add(&d, file_name("other", i), BYTES);
    }
    dataset_add(&d, file_name("busy", 0), BYTES);
    dataset_add(&d, "large", 9 * MIB);
    dataset_scan(&d);
    log_to_file();
    test_counts();
    test_behind_hanging("loads", 16 * MIB);
    test_behind_hanging("directly", 0);
    test_stuck("loads", 16 * MIB);
    test_stuck("directly", 0);
    test_order("loads", 16 * MIB);
    test_order("directly", 0);
    test_turn("loads", 16 * MIB);
    test_turn("directly", 0);
    test_joined();
    test_failing("loads", 16 * MIB);
    test_failing("directly", 0);
    test_large();
    test_closing();
    test_disk();
    dataset_end(&d);
    return done_testing();
}
