/* A cut is made once for all readers, unless that fails or all places are in use. */
#include "fs/control/record-cuts.h"

#include "fs/base/thread.h"
#include "fs/records/tar-rename.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { THREADS = 8, RECORDS = 100 };

static struct record_cuts *cuts;
static atomic_int made, asked;
static atomic_bool gone;
static int makes; /* what a cut's `make` returns */

static int make_one(void *user, struct tar_cut **cut)
{
    (void)user;
    atomic_fetch_add(&made, 1);
    *cut = makes ? NULL : calloc(1, sizeof **cut);
    return makes;
}

/* Until the others have asked as well. */
static int make_late(void *user, struct tar_cut **cut)
{
    while (atomic_load(&asked) < THREADS)
        sched_yield();
    return make_one(user, cut);
}

static bool gave_up(void *user)
{
    (void)user;
    return atomic_load(&gone);
}

static struct record_cuts_wish wish_of(uint64_t position)
{
    return (struct record_cuts_wish){.stream = 3, .position = position, .make = make_one, .gave_up = gave_up};
}

static void *ask_late(void *user)
{
    struct record_cuts_wish wish = wish_of(7);
    struct kept_cut kept;
    wish.make = make_late;
    atomic_fetch_add(&asked, 1);
    *(int *)user = record_cuts_get(cuts, &wish, &kept);
    record_cuts_put(cuts, &kept);
    return NULL;
}

static void test_once(void)
{
    pthread_t thread[THREADS];
    int error[THREADS], failed = 0;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, ask_late, &error[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        failed += error[i] != 0;
    }
    is_int(failed, 0, "%d threads get the cut of a record", THREADS);
    is_int(atomic_load(&made), 1, "which was made once");
}

static void test_table(void)
{
    struct record_cuts_wish wish;
    struct kept_cut kept[RECORDS];
    int failed = 0;
    atomic_store(&made, 0);
    for (int i = 0; i < RECORDS; i++) {
        wish = wish_of(100 + (uint64_t)i);
        failed += record_cuts_get(cuts, &wish, &kept[i]) != 0;
    }
    is_int(failed, 0, "more cuts in use than there are places");
    is_int(atomic_load(&made), RECORDS, "each was made");
    for (int i = 0; i < RECORDS; i++)
        record_cuts_put(cuts, &kept[i]);
    record_cuts_get(cuts, &wish, &kept[0]);
    record_cuts_put(cuts, &kept[0]);
    is_int(atomic_load(&made), RECORDS + 1, "one that had no place is made again");
    record_cuts_get(cuts, &wish, &kept[0]);
    record_cuts_put(cuts, &kept[0]);
    is_int(atomic_load(&made), RECORDS + 1, "and then kept");
    wish.stream++;
    record_cuts_get(cuts, &wish, &kept[0]);
    record_cuts_put(cuts, &kept[0]);
    is_int(atomic_load(&made), RECORDS + 2, "a record of another stream has its own");
}

static void test_failure(void)
{
    struct record_cuts_wish wish = wish_of(1);
    struct kept_cut kept;
    makes = -EIO;
    is_int(record_cuts_get(cuts, &wish, &kept), -EIO, "an error");
    makes = 0;
    is_int(record_cuts_get(cuts, &wish, &kept), 0, "is not kept");
    record_cuts_put(cuts, &kept);
}

/* The cut is being made by a READ that waits for this one: only giving up ends that. */
static int make_inner(void *user, struct tar_cut **cut)
{
    struct record_cuts_wish wish = wish_of(2);
    struct kept_cut kept;
    atomic_store(&gone, true);
    *(int *)user = record_cuts_get(cuts, &wish, &kept);
    atomic_store(&gone, false);
    return make_one(NULL, cut);
}

static void test_gave_up(void)
{
    struct record_cuts_wish wish = wish_of(2);
    struct kept_cut kept;
    int inner = 0;
    wish.make = make_inner;
    wish.make_user = &inner;
    is_int(record_cuts_get(cuts, &wish, &kept), 0, "a cut that takes long");
    is_int(inner, -EINTR, "a reader that waits for it may give up");
    record_cuts_put(cuts, &kept);
}

int main(void)
{
    if (record_cuts_create(&cuts))
        bail_out("no memory");
    test_once();
    test_table();
    test_failure();
    test_gave_up();
    record_cuts_destroy(cuts);
    return done_testing();
}
