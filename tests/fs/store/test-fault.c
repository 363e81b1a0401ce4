/* The fault layer over a source. */
#include "fs/store/source.h"

#include "tests/fs/store/dataset.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct dataset d;

static struct layer *make(const char *specification)
{
    struct layer *source, *fault;
    if (source_create(d.catalog, d.root, NULL, NULL, &source) < 0)
        bail_out("no source");
    if (fault_create(d.catalog, specification, source, &fault) < 0)
        bail_out("no fault layer of %s", specification);
    return fault;
}

static int get(struct layer *layer, const char *path)
{
    struct answer answer = {0};
    struct span span = {.file = dataset_file(&d, path), .length = 1000};
    int error = layer->ops->get(layer, &span, &answer);
    if (!error && !dataset_matches(&d, &span, &answer))
        error = -EBADMSG;
    answer_release(&answer);
    return error;
}

static int read_into(struct layer *layer, const char *path)
{
    char bytes[1000];
    struct iovec into = {bytes, sizeof bytes};
    struct span span = {.file = dataset_file(&d, path), .length = sizeof bytes};
    int error = layer->ops->read(layer, &span, &into, 1);
    return error ? error : dataset_matches_bytes(&d, &span, bytes) ? 0 : -EBADMSG;
}

static void test_refused(void)
{
    static const char *const bad[] = {"errno=ENOSUCH", "delay=soon", "delay=-1", "every",
                                      "every=",        "what=1",     "=",        "hang=x,flip=y"};
    struct layer *source, *fault;
    source_create(d.catalog, d.root, NULL, NULL, &source);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        log_text();
        is_int(fault_create(d.catalog, bad[i], source, &fault), -EINVAL, "\"%s\" is refused", bad[i]);
        ok(strstr(log_text(), "not understood"), "the log says so");
    }
    layer_destroy(source);
}

static void test_harm(void)
{
    struct layer *none = make("");
    is_int(get(none, "a/one"), 0, "no faults: get");
    is_int(read_into(none, "a/one"), 0, "no faults: read");
    layer_destroy(none);

    struct layer *fails = make("errno=EIO,match=a/*");
    is_int(get(fails, "a/one"), -EIO, "errno: get");
    is_int(read_into(fails, "a/one"), -EIO, "errno: read");
    is_int(get(fails, "b/two"), 0, "errno: not of another file");
    layer_destroy(fails);

    struct layer *every = make("errno=EACCES every=3");
    int failed = 0;
    for (int i = 0; i < 9; i++)
        failed += get(every, "a/one") == -EACCES;
    is_int(failed, 3, "every=3 of nine calls");
    layer_destroy(every);

    struct layer *flips = make("flip=2");
    is_int(get(flips, "a/one"), 0, "flip=2: the first is right");
    is_int(get(flips, "a/one"), -EBADMSG, "the second is not");
    is_int(read_into(flips, "a/one"), 0, "the third is right");
    is_int(read_into(flips, "a/one"), -EBADMSG, "the fourth is not");
    layer_destroy(flips);

    struct layer *shorts = make("truncate=1");
    is_int(get(shorts, "a/one"), -EBADMSG, "truncate: a byte is missing");
    layer_destroy(shorts);
}

static _Atomic long slept; /* milliseconds, in all */

int nanosleep(const struct timespec *time, struct timespec *left)
{
    atomic_fetch_add(&slept, time->tv_sec * 1000 + time->tv_nsec / 1000000);
    return clock_nanosleep(CLOCK_MONOTONIC, 0, time, left) ? -1 : 0;
}

static void test_delay(void)
{
    struct layer *slow = make("delay=50,delay_match=b/*");
    is_int(get(slow, "a/one"), 0, "an answer of another file is right");
    is_int(atomic_load(&slept), 0, "and not slow");
    is_int(get(slow, "b/two"), 0, "a slow answer is right");
    is_int(atomic_load(&slept), 50, "and slow");
    layer_destroy(slow);
}

struct hung {
    struct layer *layer;
    atomic_int error; /* 1: not yet */
};

static void *read_hung(void *argument)
{
    struct hung *h = argument;
    atomic_store(&h->error, get(h->layer, "a/one"));
    return NULL;
}

static void test_file(void)
{
    char specification[4096];
    snprintf(specification, sizeof specification, "errno=ENOMEM,file=%s", test_path("faults"));
    struct layer *layer = make(specification);
    is_int(get(layer, "a/one"), -ENOMEM, "without the file the specification itself holds");
    faults_set("");
    is_int(get(layer, "a/one"), 0, "an empty file: no faults");
    faults_set("errno=EDQUOT\n");
    is_int(get(layer, "a/one"), -EDQUOT, "another text, another fault");
    faults_set("errno=EDQUOT,nonsense\n");
    log_text();
    is_int(get(layer, "a/one"), -EDQUOT, "a text with an error changes nothing");
    ok(strstr(log_text(), "nonsense: not understood"), "and is logged");

    faults_set("hang=a/*");
    is_int(get(layer, "b/two"), 0, "what does not match does not hang");
    struct hung hung = {.layer = layer};
    atomic_init(&hung.error, 1);
    pthread_t thread;
    pthread_create(&thread, NULL, read_hung, &hung);
    is_int(get(layer, "b/two"), 0, "nor while another hangs");
    is_int(atomic_load(&hung.error), 1, "which has no answer");
    faults_set("");
    pthread_join(thread, NULL);
    is_int(atomic_load(&hung.error), 0, "until the fault is lifted");
    unlink(test_path("faults"));
    is_int(get(layer, "a/one"), -ENOMEM, "the file is gone: the specification holds again");
    layer_destroy(layer);
}

int main(void)
{
    log_to_file();
    dataset_begin(&d);
    dataset_add(&d, "a/one", 1000);
    dataset_add(&d, "b/two", 1000);
    dataset_scan(&d);
    test_refused();
    test_harm();
    test_delay();
    test_file();
    dataset_end(&d);
    return done_testing();
}
