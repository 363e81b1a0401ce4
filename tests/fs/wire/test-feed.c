/* What one process writes and others copy: never a mixture; notes in their order, and how many are gone. */
#include "fs/wire/feed.h"

#include "tests/lib/tap.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct feed *feed;
static atomic_bool stop;
static atomic_uint writing;

static void *write_plans(void *nothing)
{
    struct feed_plan *plan = calloc(1, sizeof *plan);
    for (uint64_t i = 1; plan && !atomic_load(&stop); i++) {
        plan->number = plan->epoch = i;
        for (int k = 0; k < FEED_RANKS; k++)
            plan->rank[k] = (uint32_t)i;
        feed_plan_put(feed, 3, plan);
    }
    free(plan);
    return nothing;
}

static void test_copies(void)
{
    enum { COPIES = 2000 };
    struct feed_plan *copy = calloc(1, sizeof *copy);
    unsigned got = 0, torn = 0;
    pthread_t writer;
    atomic_store(&stop, false);
    if (!copy || pthread_create(&writer, NULL, write_plans, NULL) != 0)
        return;
    while (got < COPIES) {
        if (!feed_plan_get(feed, 3, copy))
            continue;
        got++;
        torn += copy->number != copy->epoch || copy->rank[0] != (uint32_t)copy->epoch ||
                copy->rank[FEED_RANKS - 1] != (uint32_t)copy->epoch;
    }
    atomic_store(&stop, true);
    pthread_join(writer, NULL);
    is_int(torn, 0, "no copy of a plan is a mixture");

    atomic_fetch_add(&feed->plan[3].version, 1);
    ok(!feed_plan_get(feed, 3, copy), "what was left half written is not taken");
    copy->number = 7;
    feed_plan_put(feed, 3, copy);
    ok(feed_plan_get(feed, 3, copy) && copy->number == 7, "and can be written again");
    free(copy);
}

static void test_notes(void)
{
    struct feed_answer answer = {0};
    uint64_t taken = 0, lost = 0;
    ok(!feed_note_take(feed, &taken, &answer, &lost), "no note yet");
    feed_note_add(feed, &(struct feed_answer){.file = 5, .bytes = 100, .waited = 1ull << 40, .place = 3, .fed = true});
    feed_note_add(feed, &(struct feed_answer){.file = UINT32_MAX, .bytes = 1});
    ok(feed_note_take(feed, &taken, &answer, &lost) && answer.file == 5 && answer.bytes == 100 &&
           answer.waited == 1ull << 40 && answer.place == 3 && answer.fed,
       "the first one");
    ok(feed_note_take(feed, &taken, &answer, &lost) && answer.file == UINT32_MAX && !answer.fed && answer.place == 0,
       "the second one");
    ok(!feed_note_take(feed, &taken, &answer, &lost) && lost == 0, "no more");

    for (uint32_t i = 0; i < FEED_NOTES + 10; i++)
        feed_note_add(feed, &(struct feed_answer){.file = i});
    ok(feed_note_take(feed, &taken, &answer, &lost) && answer.file == 10 && lost == 10,
       "of too many the first are lost");
    unsigned more = 0;
    while (feed_note_take(feed, &taken, &answer, &lost))
        more++;
    is_int(more, FEED_NOTES - 1, "and the others come");

    atomic_fetch_add(&feed->notes, 1); /* its writer was killed */
    feed_note_add(feed, &(struct feed_answer){.file = 77});
    ok(!feed_note_take(feed, &taken, &answer, &lost), "one that is not written yet is waited for");
    for (uint32_t i = 0; i < FEED_NOTES / 2; i++)
        feed_note_add(feed, &(struct feed_answer){.file = i});
    ok(feed_note_take(feed, &taken, &answer, &lost) && answer.file == 77 && lost == 11, "but not for ever");
    taken = UINT64_MAX;
    ok(!feed_note_take(feed, &taken, &answer, &lost) && taken == atomic_load(&feed->notes),
       "a wrong place is put right");
}

static void *add_notes(void *from)
{
    for (uint32_t i = 0; i < 20000; i++)
        feed_note_add(feed, &(struct feed_answer){.file = i, .bytes = i, .waited = i, .place = *(unsigned *)from});
    atomic_fetch_sub(&writing, 1);
    return NULL;
}

static void test_many_writers(void)
{
    unsigned place[3] = {0, 1, 2};
    pthread_t thread[3];
    struct feed_answer answer;
    uint64_t taken = 0, lost = 0, come = 0, torn = 0;
    memset(feed, 0, sizeof *feed);
    atomic_store(&writing, 3);
    for (int i = 0; i < 3; i++)
        if (pthread_create(&thread[i], NULL, add_notes, &place[i]) != 0)
            return;
    /* A writer that sleeps while the others add FEED_NOTES notes destroys a newer one, which is then waited for. */
    for (bool over = false, some = true; some || !over;) {
        over = atomic_load(&writing) == 0;
        some = feed_note_take(feed, &taken, &answer, &lost);
        come += some;
        torn += some && (answer.file != answer.bytes || answer.file != answer.waited || answer.place > 2);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    ok(torn == 0 && come > 0, "none is a mixture of two");
    ok(come + lost == taken && taken > 60000 - FEED_NOTES / 2, "each one comes or is lost, or is among the last ones");
}

int main(void)
{
    feed = calloc(1, sizeof *feed);
    if (!feed)
        return 1;
    test_copies();
    test_notes();
    test_many_writers();
    free(feed);
    return done_testing();
}
