/* Rejected requests: those of the mount's owner and of others, the last ones, and in the order of their times. */
#include "fs/control/refusals.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "tests/lib/tap.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct refusals refusals;

static void add(bool other, unsigned second)
{
    struct str text = STR_INIT;
    refusal_begin(&text, "plan", 4);
    str_addf(&text, "of second %u", second);
    refusals_add(&refusals, other,
                 (struct refusal){.time = second * SECOND, .uid = other ? 7 : 0, .pid = 9, .text = text.data});
}

static void test_order(void)
{
    CLEANUP_STR struct str text = STR_INIT;
    refusals_init(&refusals);
    refusals_text(&refusals, &text);
    is_str(text.data, "", "nothing was rejected");
    add(false, 1);
    add(true, 2);
    add(false, 3);
    refusals_text(&refusals, &text);
    is_str(text.data,
           "1970-01-01T00:00:01.000Z\t0\t9\tplan\tof second 1\n1970-01-01T00:00:02.000Z\t7\t9\tplan\tof second 2\n"
           "1970-01-01T00:00:03.000Z\t0\t9\tplan\tof second 3\n",
           "three, in the order of their times");
    for (unsigned i = 4; i < 4 + REFUSALS; i++)
        add(true, i);
    str_clear(&text);
    refusals_text(&refusals, &text);
    is_uint(refusals_count(&refusals), 3 + REFUSALS, "all are counted");
    ok(strstr(text.data, "second 1\n") && strstr(text.data, "second 3\n"), "others do not displace the owner's");
    ok(!strstr(text.data, "second 2\n"), "but their own");
    refusals_fini(&refusals);
}

/* --- a reader during a change --- */

static struct {
    struct str text;
    _Atomic pid_t thread;
    atomic_bool done;
} reader = {.text = STR_INIT};

static void *read_text(void *unused)
{
    atomic_store(&reader.thread, gettid());
    refusals_text(&refusals, &reader.text);
    atomic_store(&reader.done, true);
    return unused;
}

/* Is the reader's thread asleep? */
static bool reader_sleeps(void)
{
    CLEANUP_STR struct str stat = STR_INIT;
    char path[64];
    pid_t thread = atomic_load(&reader.thread);
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    if (!thread || file_read(AT_FDCWD, path, 4096, &stat))
        return false;
    const char *name_end = strrchr(stat.data, ')');
    return name_end && strncmp(name_end, ") S", 3) == 0;
}

static void test_reader_waits(void)
{
    pthread_t thread;
    refusals_init(&refusals);
    add(false, 1);
    pthread_mutex_lock(&refusals.lock);
    if (pthread_create(&thread, NULL, read_text, NULL))
        bail_out("no thread");
    while (!atomic_load(&reader.done) && !reader_sleeps() && test_patience() > 1)
        clock_sleep(MILLISECOND);
    ok(!atomic_load(&reader.done), "a reader waits while a request is added");
    pthread_mutex_unlock(&refusals.lock);
    pthread_join(thread, NULL);
    ok(strstr(reader.text.data, "of second 1\n"), "and then gets the text");
    str_fini(&reader.text);
    refusals_fini(&refusals);
}

int main(void)
{
    test_order();
    test_reader_waits();
    return done_testing();
}
