/* READs that wait: which are given back, seen by a store that holds all of them. */
#include "fs/fuse/reads.h"

#include "fs/fuse/session.h"
#include "fs/wire/feed.h"
#include "fs/wire/lane.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT = 8, AHEAD = 128 << 10 };

struct fuse_req {
    atomic_int error; /* of the reply */
};

/* The one who asks. */
static struct fuse_ctx asker;
static uint64_t unique;
static atomic_int replies;

const struct fuse_ctx *fuse_req_ctx(fuse_req_t req)
{
    (void)req;
    return &asker;
}

struct session_request session_request(void)
{
    return (struct session_request){.unique = unique};
}

int fuse_reply_err(fuse_req_t req, int error)
{
    atomic_store(&req->error, error);
    atomic_fetch_add(&replies, 1);
    return 0;
}

int fuse_reply_iov(fuse_req_t req, const struct iovec *iov, int count)
{
    (void)iov;
    (void)count;
    return fuse_reply_err(req, 0);
}

static struct feed feed;
static bool at_hand; /* is what is asked for */
static bool was_fed; /* the latest */

int store_read(struct store *store, struct store_read *read)
{
    (void)store;
    answer_init(&read->answer);
    was_fed = read->fed;
    if (at_hand)
        return 0;
    read->waiting = true;
    read->waits(read);
    return -EINPROGRESS;
}

bool store_cancel(struct store *store, struct store_read *read)
{
    (void)store;
    (void)read;
    return true;
}

static void ask(struct reads *r, struct fuse_req *req, pid_t thread, uint64_t number, size_t size)
{
    const struct fuse_file_info cached = {0};
    const struct reads_request request = {
        .req = req,
        .span = {.file = 1, .offset = number * AHEAD, .length = (uint32_t)size},
        .size = size,
        .info = &cached,
    };
    asker.pid = thread;
    unique = number;
    reads_begin(r, NULL, &request);
}

static bool come(int count)
{
    while (atomic_load(&replies) < count && test_patience() > 1)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return atomic_load(&replies) >= count;
}

static void test_fed(void)
{
    const struct feed_served *served = &feed.served;
    struct fuse_req kept = {0}, now = {0}, other = {0}, nobody = {0};
    struct reads *r;
    if (reads_create(LIMIT, &feed, &r))
        bail_out("reads_create");
    at_hand = true;
    ask(r, &nobody, 0, 100, AHEAD);
    ok(!was_fed, "while there is no feeder, nobody is it, also not who has no number");
    atomic_store(&feed.feeder, 9);
    ask(r, &other, 8, 102, AHEAD);
    ok(!was_fed, "who is not the feeder");
    ask(r, &now, 9, 104, AHEAD);
    ok(was_fed, "the feeder");
    is_int(atomic_load(&served->waits.all), 0, "what is answered is not in progress");
    at_hand = false;
    ask(r, &kept, 9, 106, AHEAD);
    is_int(atomic_load(&served->waits.all), 1, "what waits is");
    is_int((int)atomic_load(&served->begun), 2, "its READs are counted");
    is_int((int)atomic_load(&served->done), 1, "and those that are answered");
    ok(reads_cancel(r, 106), "it gives up");
    is_int(atomic_load(&served->waits.all), 0, "that counts as an answer, too");
    is_int((int)atomic_load(&served->done), 2, "which is counted");
    ask(r, &other, 8, 108, AHEAD);
    at_hand = true;
    ask(r, &now, 8, 110, AHEAD);
    ok(!was_fed, "who reads after the feeder is not taken for it");
    ok(reads_cancel(r, 108), "a reader gives up");
    is_int((int)atomic_load(&served->done), 2, "of whom nothing is counted here");
    at_hand = false;
    atomic_store(&feed.feeder, 0);
    atomic_store(&replies, 0);
    reads_destroy(r);
}

static int count_errors(struct fuse_req *req, int count, int error)
{
    int found = 0;
    for (int i = 0; i < count; i++)
        found += atomic_load(&req[i].error) == error;
    return found;
}

/* READs in the foreground, of as many threads: half of the slots that readahead leaves, and no more. */
static void test_users(void)
{
    enum { ROOM = DATA_SLOTS - LIMIT / 2, SHARE = ROOM / 2, MORE = 10 };
    static struct fuse_req first[SHARE + MORE], second[SHARE / 2 + MORE];
    struct reads *r;
    if (reads_create(LIMIT, &feed, &r))
        bail_out("reads_create");
    asker.uid = 1000;
    for (int i = 0; i < SHARE + MORE; i++)
        ask(r, &first[i], 10000 + i, 1000 + 2 * (uint64_t)i, 4096);
    ok(come(MORE), "one user's READs beyond half of the slots are answered");
    is_int(count_errors(first, SHARE + MORE, EBUSY), MORE, "with EBUSY");
    is_int(count_errors(first, SHARE, EBUSY), 0, "the latest of them");
    asker.uid = 1001;
    for (int i = 0; i < SHARE / 2 + MORE; i++)
        ask(r, &second[i], 20000 + i, 100000 + 2 * (uint64_t)i, 4096);
    ok(come(2 * MORE), "another user's, beyond half of the rest");
    is_int(count_errors(second, SHARE / 2 + MORE, EBUSY), MORE, "not sooner");
    for (uint64_t i = 0; i < SHARE / 2; i++)
        reads_cancel(r, 100000 + 2 * i);
    asker.uid = 1000;
    reads_cancel(r, 1000);
    atomic_store(&first[SHARE].error, -1);
    ask(r, &first[SHARE], 10000, 1000, 4096);
    ok(reads_cancel(r, 1000), "when they have ended, there is room for one in the place of another");
    is_int(atomic_load(&first[SHARE].error), EINTR, "which waits");
    for (uint64_t i = 1; i < SHARE; i++)
        reads_cancel(r, 1000 + 2 * i);
    atomic_store(&replies, 0);
    reads_destroy(r);
}

int main(void)
{
    test_fed();
    test_users();
    struct fuse_req waits = {0}, late = {0}, later = {0}, others[2 * LIMIT] = {{0}};
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct reads *r;
    if (reads_create(LIMIT, &feed, &r))
        bail_out("reads_create");
    ask(r, &waits, 7, 10, page);
    ask(r, &late, 7, 12, AHEAD); /* asked for before, and sent when there was room again */
    for (int i = 0; i < LIMIT; i++)
        ask(r, &others[i], 8, 20 + 2 * (uint64_t)i, AHEAD);
    ok(come(1 + LIMIT - LIMIT / 2), "readahead beyond half of the limit is given back");
    is_int(atomic_load(&late.error), EIO, "the oldest first");
    is_int(atomic_load(&waits.error), 0, "but none that its thread may wait for, though it was numbered before");
    ask(r, &later, 7, 60, page);
    for (int i = LIMIT; i < 2 * LIMIT; i++)
        ask(r, &others[i], 8, 60 + 2 * (uint64_t)i, AHEAD);
    ok(come(2 + LIMIT + LIMIT / 2), "more is");
    is_int(atomic_load(&waits.error), EIO, "with what two later ones show not to be waited for");
    is_int(atomic_load(&later.error), 0, "and without what may be");
    _exit(done_testing()); /* the rest waits still */
}
