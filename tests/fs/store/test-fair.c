/* Whose turn it is: readers, pulls, and what is fed. */
#include "fs/store/fair.h"

#include "fs/base/clock.h"
#include "tests/lib/tap.h"

enum { READS = 40 };

static struct store_read reads[READS];
static struct fair_queue queue;
static struct fair_turns turns;

static void begin(void)
{
    fair_init(&queue);
    turns = (struct fair_turns){0};
}

/* Read number i: 'r' a reader's, 'p' a pull, 'f' fed; asked at millisecond `asked`. */
static void add(int i, char kind, uint64_t asked)
{
    reads[i] = (struct store_read){.fed = kind == 'f', .pulled = kind == 'p', .asked = asked * MILLISECOND};
    fair_add(&queue, &reads[i]);
}

/* -1: nothing may go. */
static int take(enum fair_room fed)
{
    struct store_read *read = fair_take(&queue, &turns, fed);
    if (read)
        fair_went(&turns, read->fed);
    return read ? (int)(read - reads) : -1;
}

static void test_order(void)
{
    begin();
    add(0, 'r', 0);
    add(1, 'p', 0);
    add(2, 'p', 1);
    add(3, 'r', 49);
    add(4, 'r', 50);
    is_int(take(FAIR_FULL), 0, "the first reader goes first");
    is_int(take(FAIR_FULL), 3, "a reader overtakes pulls");
    is_int(take(FAIR_FULL), 1, "but none that has waited for 50 ms");
    is_int(take(FAIR_FULL), 4, "the next one still");
    is_int(take(FAIR_FULL), 2, "which is the last");
    is_int(take(FAIR_WITHIN), -1, "then the queue is empty");
}

static void test_fed(void)
{
    begin();
    add(0, 'f', 0);
    add(1, 'r', 0);
    add(2, 'f', 0);
    is_int(take(FAIR_WITHIN), 1, "a reader goes before what is fed");
    is_int(take(FAIR_BEYOND), -1, "what is fed does not go beyond its share");
    is_int(take(FAIR_WITHIN), 0, "within its share it goes");
    ok(!fair_is_next(&queue, &turns, true, FAIR_WITHIN), "another fed read would wait behind it");
    ok(fair_is_next(&queue, &turns, false, FAIR_FULL), "a reader would not");
    ok(fair_remove(&queue, &reads[2]), "it gives up");
    ok(!fair_remove(&queue, &reads[2]) && fair_is_empty(&queue), "and is gone");
    ok(fair_is_next(&queue, &turns, true, FAIR_WITHIN) && !fair_is_next(&queue, &turns, true, FAIR_BEYOND),
       "a fed read goes at once only within its share");
}

/* Which of the next reads is the first that is fed; the share is used up. */
static int readers_before_fed(enum fair_room fed)
{
    int n = 0;
    for (int i; (i = take(fed)) >= 0; n++)
        if (reads[i].fed)
            return n;
    return -1;
}

static void test_yields(void)
{
    begin();
    for (int i = 0; i < 20; i++)
        add(i, 'r', 0);
    add(20, 'f', 0);
    add(21, 'f', 0);
    is_int(readers_before_fed(FAIR_BEYOND), MOST_YIELDS, "after eight readers a fed read goes, beyond its share");
    is_int(readers_before_fed(FAIR_WITHIN), MOST_YIELDS, "within its share it waits for eight readers, too");
    add(22, 'f', 0);
    is_int(readers_before_fed(FAIR_FULL), -1, "where there is no room for it, never");
    is_int(readers_before_fed(FAIR_BEYOND), -1, "four readers went since, so it waits for its share");
    is_int(take(FAIR_WITHIN), 22, "and then goes");
}

int main(void)
{
    test_order();
    test_fed();
    test_yields();
    return done_testing();
}
