/* The plans that are kept: made once for all who ask, made again after a failure, dropped when there is no room. */
#include "fs/control/plans.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { ASKERS = 8, ROUNDS = 200, ENTRIES = 1000 };

static struct plans *plans;
static pthread_barrier_t round_begins;
static atomic_int made, failed, waiting;

static struct digest key(uint32_t number)
{
    struct digest d = {{0}};
    memcpy(d.byte, &number, sizeof number);
    return d;
}

static void make(struct planned *p, uint32_t number)
{
    p->epoch = number;
    p->shape = (struct plan_shape){.ranks = 1, .last = ENTRIES, .uses = 1};
    p->lists = p->memory.bytes = calloc(ENTRIES, sizeof *p->lists);
    for (int i = 0; i < ENTRIES; i++)
        p->lists[i] = number;
    atomic_fetch_add(&made, 1);
}

/* All ask for the same plan at once, then for the next; every fifth one fails at first. */
static void *ask(void *user)
{
    const struct asker patient = {0};
    uintptr_t wrong = 0;
    (void)user;
    for (uint32_t number = 0; number < ROUNDS; number++) {
        struct digest k = key(number);
        struct planned *p;
        int turn;
        pthread_barrier_wait(&round_begins);
        while ((turn = plans_get(plans, &k, &patient, &p)) == 1) {
            if (number % 5 == 0 && atomic_fetch_add(&failed, 1) % 2 == 0) {
                plans_failed(plans, p);
                continue;
            }
            make(p, number);
            plans_made(plans, p);
            break;
        }
        if (turn < 0 || p->epoch != number || p->lists[ENTRIES - 1] != number)
            wrong++;
        else
            plans_put(plans, p);
    }
    return (void *)wrong;
}

static void test_together(void)
{
    pthread_t thread[ASKERS];
    void *wrong;
    plans = plans_create(3 * ENTRIES * sizeof(uint32_t));
    pthread_barrier_init(&round_begins, NULL, ASKERS);
    for (int i = 0; i < ASKERS; i++)
        pthread_create(&thread[i], NULL, ask, NULL);
    for (int i = 0; i < ASKERS; i++) {
        pthread_join(thread[i], &wrong);
        ok(wrong == NULL, "asker %d got what it asked for", i);
    }
    is_int(atomic_load(&made), ROUNDS, "each was made once");
    is_int(atomic_load(&failed), 2 * (ROUNDS / 5), "except for the fifths, which failed once and were begun again");
    is_uint(plans->made, ROUNDS, "and counted");
    pthread_barrier_destroy(&round_begins);
    plans_destroy(plans);
}

static bool impatient(void *user)
{
    (void)user;
    atomic_fetch_add(&waiting, 1);
    return true;
}

static void *ask_briefly(void *user)
{
    const struct asker asker = {.gave_up = impatient};
    struct digest k = key(1);
    struct planned *p;
    (void)user;
    return (void *)(intptr_t)plans_get(plans, &k, &asker, &p);
}

static void test_impatient(void)
{
    const struct asker patient = {0};
    struct digest k = key(1);
    struct planned *p, *again;
    pthread_t thread;
    void *result;
    plans = plans_create(0);
    is_int(plans_get(plans, &k, &patient, &p), 1, "one is being made");
    pthread_create(&thread, NULL, ask_briefly, NULL);
    for (uint32_t number = 100; atomic_load(&waiting) == 0; number++) {
        struct digest other = key(number);
        if (plans_get(plans, &other, &patient, &again) == 1)
            plans_failed(plans, again);
    }
    pthread_join(thread, &result);
    is_int((intptr_t)result, -EINTR, "who waits for it may give up, however often others wake it");
    make(p, 1);
    plans_made(plans, p);
    is_int(plans_get(plans, &k, &patient, &again), 0, "there it is");
    ok(again == p, "the same");
    plans_put(plans, p);
    is_uint(again->lists[0], 1, "it stays while somebody reads it, however large");
    plans_put(plans, again);
    is_int(plans_get(plans, &k, &patient, &p), 0, "and while no other plan is used");
    k = key(2);
    is_int(plans_get(plans, &k, &patient, &again), 1, "another plan");
    make(again, 2);
    plans_made(plans, again);
    is_uint(p->lists[0], 1, "does not take the memory of one that is read");
    plans_put(plans, p);
    plans_put(plans, again);
    k = key(1);
    is_int(plans_get(plans, &k, &patient, &p), 1, "that goes when nobody reads it");
    plans_failed(plans, p);
    plans_destroy(plans);
}

static void test_oldest(void)
{
    const struct asker patient = {0};
    struct planned *p;
    plans = plans_create(UINT64_MAX);
    for (uint32_t number = 0; number < PLANS_KEPT + 1; number++) {
        struct digest k = key(number), first = key(0);
        is_int(plans_get(plans, &k, &patient, &p), 1, "plan %u is new", number);
        make(p, number);
        plans_made(plans, p);
        plans_put(plans, p);
        is_int(plans_get(plans, &first, &patient, &p), 0, "the first is asked for repeatedly");
        plans_put(plans, p);
    }
    struct digest second = key(1), last = key(PLANS_KEPT);
    is_int(plans_get(plans, &last, &patient, &p), 0, "the last one is there");
    plans_put(plans, p);
    is_int(plans_get(plans, &second, &patient, &p), 1, "the least recently asked for has gone");
    plans_failed(plans, p);
    plans_destroy(plans);
}

int main(void)
{
    test_together();
    test_impatient();
    test_oldest();
    return done_testing();
}
