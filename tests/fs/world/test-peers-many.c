/* Small reads that go together: few questions, every byte right, and whatever befalls a question befalls no read more
 * than if it had been asked for alone. */
#include "tests/fs/base/moved-clock.h"
#include "tests/fs/world/peering.h"

#include "tests/lib/tap.h"

#include <errno.h>

enum { CROWD = 200, PIECE = 4096 };

struct member {
    struct store_read read;
    struct crowd *crowd;
    int error;
    bool right, over; /* `over`: the crowd's lock */
};

struct crowd {
    pthread_mutex_t lock;
    uint32_t ended;
    struct member member[CROWD];
};

static struct crowd crowd;
static uint32_t reader; /* the node that asks; the other one owns what it asks for */

static void member_ended(struct store_read *read, int error)
{
    struct member *m = (struct member *)(void *)((char *)read - offsetof(struct member, read));
    m->error = error;
    m->right = !error && dataset_matches(&dataset, &read->span, &read->answer);
    answer_release(&read->answer);
    pthread_mutex_lock(&m->crowd->lock);
    m->over = true;
    m->crowd->ended++;
    pthread_mutex_unlock(&m->crowd->lock);
}

static uint32_t crowd_ended(void)
{
    pthread_mutex_lock(&crowd.lock);
    uint32_t ended = crowd.ended;
    pthread_mutex_unlock(&crowd.lock);
    return ended;
}

/* The n-th of the files that the other node owns and of which pieces are small answers. */
static uint32_t small_file(struct fake *f, uint32_t n)
{
    for (uint32_t file = 0;; file = (file + 1) % catalog_files(dataset.catalog)) {
        uint64_t size = dataset_size(&dataset, file);
        bool small = (size > 0 && size < 60000) || (size > 4 * MIB && size < EXTENT_BYTES);
        if (small && peering_owns(f, !reader, file) && n-- == 0)
            return file;
    }
}

/* Pieces of them, asked for at once. */
static void crowd_begin(struct fake *f)
{
    uint32_t middle = dataset_file(&dataset, "middle");
    uint64_t random = 7;
    crowd.ended = 0;
    for (uint32_t i = 0; i < CROWD; i++) {
        struct member *m = &crowd.member[i];
        *m = (struct member){.crowd = &crowd, .read.done = member_ended};
        uint32_t file = i % 2 ? middle : small_file(f, i % 8);
        uint64_t size = dataset_size(&dataset, file);
        uint32_t length = size < PIECE ? (uint32_t)size : PIECE;
        m->read.span = (struct span){file, length, random_next(&random) % (size - length + 1)};
        answer_init(&m->read.answer);
    }
    for (uint32_t i = 0; i < CROWD; i++) {
        int error = store_read(f->node[reader].store, &crowd.member[i].read);
        if (error != -EINPROGRESS)
            member_ended(&crowd.member[i].read, error);
    }
}

/* How many came from there; all are right, or the test fails. */
static uint32_t crowd_end(enum place place, const char *what)
{
    uint32_t right = 0, from = 0;
    wait_until(crowd_ended() == CROWD);
    for (uint32_t i = 0; i < CROWD; i++) {
        right += crowd.member[i].right;
        from += crowd.member[i].read.place == place;
    }
    is_uint(right, CROWD, "%s: every byte is right", what);
    return from;
}

static void begin(struct fake *f)
{
    peering_join(f, 2, LONG);
    reader = peering_owns(f, 0, dataset_file(&dataset, "middle"));
}

static uint32_t asks(struct fake *f)
{
    return atomic_load(&f->node[reader].asks);
}

/* The next question of this node is held by the courier until the crowd stands behind it. */
static void crowd_gather(struct fake *f)
{
    peering_harm(f, !reader, 8, FAKE_HOLD);
    crowd_begin(f);
    wait_until(fake_held() == 8);
}

static void test_few_questions(void)
{
    struct fake f;
    begin(&f);
    peering_read_all(&f, 0);
    peering_read_all(&f, 1);
    uint32_t before = asks(&f);
    crowd_gather(&f);
    is_uint(asks(&f) - before, 8, "of %d small reads 8 are asked for, each alone", CROWD);
    fake_let_go(&f);
    is_uint(crowd_end(PLACE_PEER, "together"), CROWD, "and from the other node");
    uint32_t questions = asks(&f) - before;
    ok(atomic_load(&f.node[reader].asks_many) > 0 && questions <= CROWD / 5, "by %u questions", questions);
    is_uint(peering_counts(&f, reader).bad, 0, "none is bad");
    fake_end(&f);
}

/* What the other node does not have is asked for again, each by itself, and loaded there once. */
static void test_not_held(void)
{
    struct fake f;
    begin(&f);
    uint64_t most = catalog_bytes(dataset.catalog);
    crowd_gather(&f);
    fake_let_go(&f);
    is_uint(crowd_end(PLACE_PEER, "of what is not held"), CROWD, "and from the other node");
    ok(peering_source_bytes(&f) <= most, "which read it once");
    fake_end(&f);
}

static void test_no_list(void)
{
    struct fake f;
    begin(&f);
    peering_read_all(&f, 0);
    peering_read_all(&f, 1);
    atomic_store(&f.node[!reader].lists, 1);
    f.node[!reader].listed[0] = true; /* for good */
    crowd_gather(&f);
    fake_let_go(&f);
    is_uint(crowd_end(PLACE_PEER, "of a courier without a free list"), CROWD, "and from the other node");
    fake_end(&f);
}

/* A damaged part is asked for again. */
static void test_harm(enum fake_fault fault, bool bad, const char *what)
{
    struct fake f;
    begin(&f);
    peering_read_all(&f, 0);
    peering_read_all(&f, 1);
    crowd_gather(&f);
    peering_harm(&f, !reader, 1, fault); /* the next question, which is one for many */
    fake_let_go(&f);
    uint32_t from_source = crowd_end(PLACE_SOURCE, what);
    ok((from_source > 0) == (fault != FAKE_DAMAGE), "%u from the source", from_source);
    is_uint(peering_counts(&f, reader).bad > 0, bad, "%s",
            bad ? "and it is counted" : "and nothing is said of bad bytes");
    fake_end(&f);
}

/* Readers that give up leave the others in their question alone. */
static void test_cancel(void)
{
    struct fake f;
    uint32_t cancelled = 0;
    begin(&f);
    peering_read_all(&f, 0);
    peering_read_all(&f, 1);
    crowd_gather(&f);
    peering_harm(&f, !reader, 2, FAKE_HOLD); /* of those for many */
    fake_let_go(&f);
    wait_until(fake_held() == 2);
    for (uint32_t i = 0; i < CROWD; i += 3) {
        pthread_mutex_lock(&crowd.lock);
        bool over = crowd.member[i].over;
        pthread_mutex_unlock(&crowd.lock);
        if (over || !store_cancel(f.node[reader].store, &crowd.member[i].read))
            continue;
        cancelled++;
        answer_release(&crowd.member[i].read.answer);
        pthread_mutex_lock(&crowd.lock);
        crowd.member[i].right = crowd.member[i].over = true;
        crowd.ended++;
        pthread_mutex_unlock(&crowd.lock);
    }
    ok(cancelled > 0, "%u of %d are given up while others were asked for with them", cancelled, CROWD);
    fake_let_go(&f);
    crowd_end(PLACE_PEER, "those that were not");
    peering_part(&f);
    fake_end(&f);
}

/* A whole question that stays without an answer. */
static void test_silence(void)
{
    struct fake f;
    begin(&f);
    peering_read_all(&f, 0);
    peering_read_all(&f, 1);
    crowd_gather(&f);
    clock_stand();
    uint64_t last = peering_asking(&f, reader, 0).last;
    peering_harm(&f, !reader, 1000, FAKE_SWALLOW);
    fake_let_go(&f);
    wait_until(peering_asking(&f, reader, 0).first > last); /* what was held is answered */
    for (int i = 0; crowd_ended() < CROWD; i++) {
        clock_add(LONG / 4);
        wait_step(i, "all are answered");
    }
    clock_run();
    ok(crowd_end(PLACE_SOURCE, "of a node that falls silent") > 0, "some from the source");
    is_int(peering_peer(&f, reader, !reader), PEER_SUSPECT, "it is suspected");
    fake_end(&f);
}

int main(void)
{
    pthread_mutex_init(&crowd.lock, NULL);
    peering_set_up();
    test_few_questions();
    test_not_held();
    test_no_list();
    test_harm(FAKE_SHORT, true, "an answer of another length");
    test_harm(FAKE_DAMAGE, true, "a damaged one");
    test_harm(FAKE_GONE, false, "a node that is gone");
    test_harm(FAKE_ERROR, false, "a node that fails");
    test_cancel();
    test_silence();
    return peering_done();
}
