/* Bytes that concurrent work may use together: never more, unless one alone needs more. Each gets its turn. */
#include "fs/image/allowance.h"

#include "fs/base/thread.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>

enum { THREADS = 8, ROUNDS = 1000, MOST = 100, LARGE = 250 };

static struct allowance allowance;
static atomic_int used, wrong, looks;
static atomic_bool gone, granted;

static void *take_often(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        int bytes = i % 50 == 0 ? LARGE : 1 + i % 60;
        wrong += allowance_take(&allowance, (uint64_t)bytes, NULL, NULL) != 0;
        int now = atomic_fetch_add(&used, bytes) + bytes;
        wrong += now > MOST && now != LARGE;
        sched_yield();
        atomic_fetch_sub(&used, bytes);
        allowance_give(&allowance, (uint64_t)bytes);
    }
    return NULL;
}

static bool gave_up(void *unused)
{
    (void)unused;
    atomic_fetch_add(&looks, 1);
    return atomic_load(&gone);
}

static void *take_large(void *unused)
{
    (void)unused;
    if (allowance_take(&allowance, MOST, gave_up, NULL) == 0) {
        atomic_store(&granted, true);
        allowance_give(&allowance, MOST);
    }
    return NULL;
}

static void await_looks(int more)
{
    for (int until = atomic_load(&looks) + more; atomic_load(&looks) < until;)
        sched_yield();
}

static void test_turn(void)
{
    pthread_t first;
    is_int(allowance_take(&allowance, 60, NULL, NULL), 0, "a part");
    pthread_create(&first, NULL, take_large, NULL);
    await_looks(2);
    ok(!atomic_load(&granted), "what does not fit waits");
    atomic_store(&gone, true);
    pthread_join(first, NULL);
    ok(!atomic_load(&granted), "until it gives up");
    is_int(allowance_take(&allowance, 60, gave_up, NULL), -EINTR, "so does another one");
    atomic_store(&gone, false);
    is_int(allowance_take(&allowance, 40, gave_up, NULL), 0, "then the others have the rest");
    allowance_give(&allowance, 40);
    pthread_create(&first, NULL, take_large, NULL);
    await_looks(2);
    allowance_give(&allowance, 60);
    pthread_join(first, NULL);
    ok(atomic_load(&granted), "it is granted when the others have ended");
}

int main(void)
{
    pthread_t thread[THREADS];
    allowance_init(&allowance, MOST);
    test_turn();
    threads_join(thread, threads_start(thread, THREADS, "taker", take_often, NULL));
    is_int(wrong, 0, "%d threads never have more, except one alone", THREADS);
    is_uint(allowance.used, 0, "all is given back");
    allowance_fini(&allowance);
    return done_testing();
}
