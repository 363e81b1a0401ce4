/* What the feeder asks for: counted apart, and behind everybody else. */
#include "fs/wire/feed.h"
#include "tests/fs/store/dataset.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define MIB ((uint64_t)1 << 20)
enum { FILES = 40, BYTES = 100000 };

static struct dataset d;

static struct store_stats stats_of(struct store *store)
{
    struct store_stats stats;
    store_stats(store, &stats);
    return stats;
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

int main(void)
{
    dataset_begin(&d);
    for (int i = 0; i < FILES; i++) {
        dataset_add(&d, file_name("fed", i), BYTES);
        dataset_add(&d, file_name("other", i), BYTES);
    }
    dataset_scan(&d);
    log_to_file();
    test_counts();
    dataset_end(&d);
    return done_testing();
}
