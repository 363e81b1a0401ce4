/* What peers, couriers and the source can do to a world: bad answers, lies, wrong questions. Reads stay right. */
#include "tests/fs/world/peering.h"

#include "tests/lib/tap.h"

#include <errno.h>

static void test_bad(enum fake_fault fault, const char *what)
{
    struct fake f;
    peering_join(&f, 2, LONG);
    uint32_t file = peering_owned(&f, 1, 0);
    peering_harm(&f, 1, 1, fault);
    peering_reads(&f, 0, file, PLACE_SOURCE, what, "it went to the source");
    is_uint(peering_counts(&f, 0).bad, fault != FAKE_ERROR, "it was counted");
    peering_reads(&f, 0, file, PLACE_PEER, "the next read is right", "and comes from the peer again");
    fake_end(&f);
}

/* Of the same base name, size and time: only the directory tells them apart. */
static void test_namesake(void)
{
    struct fake f;
    enum place place;
    peering_join(&f, 2, LONG);
    uint32_t file = dataset_file(&dataset, NAMESAKE_A);
    for (uint32_t node = 0; node < 2; node++)
        peering_harm(&f, node, 1, FAKE_NAMESAKE);
    bool right = true;
    for (uint32_t node = 0; node < 2; node++)
        right &= peering_read(&f, node, file, &place) == 0;
    ok(right, "a namesake's value in place of the file's: every read is right");
    is_uint(peering_counts(&f, 0).bad + peering_counts(&f, 1).bad, 1, "it was counted");
    fake_end(&f);
}

static void test_twice(void)
{
    struct fake f;
    enum place place;
    peering_join(&f, 2, LONG);
    peering_harm(&f, 1, 1000, FAKE_TWICE);
    bool right = true;
    for (uint32_t i = 0; i < 40; i++)
        right &= peering_read(&f, 0, peering_owned(&f, 1, i % 4), &place) == 0 && place == PLACE_PEER;
    ok(right, "answers that come twice count once");
    is_int(peering_state(&f, 0), WORLD_JOINED, "and do no harm");
    fake_end(&f);
}

/* A file with a lease, or a source that is strange: EAGAIN must not become a promise. */
static void test_source_again(void)
{
    struct fake f;
    peering_join_faulty(&f, 2, LONG);
    faults_set("errno=EAGAIN");
    is_int(fake_ask(&f, 0, peering_owned(&f, 0, 0), 0, 1), -EIO,
           "an owner whose source says EAGAIN says that it failed");
    faults_set("");
    is_int(fake_ask(&f, 0, peering_owned(&f, 0, 0), 0, 1), 0, "and is none the worse for it");
    fake_end(&f);
}

static void test_gone(void)
{
    struct fake f;
    peering_join(&f, 2, LONG);
    uint32_t file = peering_owned(&f, 1, 0);
    peering_harm(&f, 1, 1, FAKE_GONE);
    peering_reads(&f, 0, file, PLACE_SOURCE, "a peer that is said to be gone: the read is right", "from the source");
    is_int(peering_peer(&f, 0, 1), PEER_LOST, "it is lost");
    peering_reads(&f, 0, file, PLACE_SOURCE, "the next read is right", "and it is not asked again");
    peering_part(&f);
    fake_join(&f, 1);
    peering_reads(&f, 0, file, PLACE_PEER, "until the next world", "in which it is");
    fake_end(&f);
}

/* Lies of a courier end its world, and nothing else. */
static void test_lies(void)
{
    static const struct {
        struct ring_message message;
        const char *what;
    } lie[] = {
        {{.kind = RING_FETCHED, .slot = RING_IN}, "a slot that is none"},
        {{.kind = RING_FETCHED, .slot = 3000000000u}, "nor that"},
        {{.kind = RING_FETCHED, .slot = 0, .length = RING_SLOT + 1}, "more than a slot holds"},
        {{.kind = RING_FETCHED, .slot = 0, .status = 5}, "a status above zero"},
        {{.kind = RING_SENT, .slot = RING_IN}, "sent what was not"},
        {{.kind = RING_SENT, .slot = 0}, "a slot of the other kind"},
        {{.kind = RING_SERVE, .node = 2, .count = 1}, "a node that is none"},
        {{.kind = RING_SERVE, .node = 0, .count = 1}, "this node itself"},
        {{.kind = RING_COMMAND, .value = 99}, "a command that is none"},
        {{.kind = 77}, "a message that is none"},
    };
    struct fake f;
    peering_begin(&f, 2, LONG);
    for (size_t i = 0; i < sizeof lie / sizeof *lie; i++) {
        fake_join(&f, 1);
        fake_push(&f, 0, &lie[i].message);
        peering_await(&f, 0, WORLD_DEGRADED);
        pass("%s: the server hangs up", lie[i].what);
        peering_part(&f);
    }
    fake_join(&f, 1);
    ok(peering_read_all(&f, 0), "all is right in the end");
    fake_end(&f);
}

/* Another node may ask for anything. */
static void test_wrong_questions(void)
{
    static const struct {
        uint32_t file, value, count;
    } wrong[] = {
        {4000000000u, 0, 1}, {0, 4000000000u, 1}, {0, 0, RING_VALUES + 1},      {0, 0, 0},
        {0, 0, 4000000000u}, {0, 1, 1},           {0, UINT32_MAX, RING_VALUES},
    };
    struct fake f;
    peering_join(&f, 2, LONG);
    uint32_t large = dataset_file(&dataset, "sparse-large");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        is_int(fake_ask(&f, 0, wrong[i].file, wrong[i].value, wrong[i].count), -EINVAL, "question %zu is refused", i);
    is_int(fake_ask(&f, 0, large, EXTENT_BYTES / VALUE_BYTES - 1, 2), -EINVAL, "so is one across two extents");
    is_int(fake_ask(&f, 0, large, EXTENT_BYTES / VALUE_BYTES - 2, 2), 0, "a right one is answered");
    is_int(fake_ask(&f, 0, dataset_file(&dataset, "empty"), 0, 1), -EINVAL, "an empty file has no values");
    is_int(peering_state(&f, 0), WORLD_JOINED, "and the world goes on");
    fake_end(&f);
}

int main(void)
{
    peering_set_up();
    test_bad(FAKE_DAMAGE, "a wrong checksum: the read is right");
    test_bad(FAKE_SHORT, "a wrong length: the read is right");
    test_bad(FAKE_OTHER_FILE, "another file: the read is right");
    test_bad(FAKE_ERROR, "an error: the read is right");
    test_namesake();
    test_twice();
    test_gone();
    test_source_again();
    test_lies();
    test_wrong_questions();
    return peering_done();
}
