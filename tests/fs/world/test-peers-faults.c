/* What peers, couriers and the source can do to a world: bad answers, lies, wrong questions. Reads stay right. */
#include "tests/fs/world/peering.h"

#include "tests/lib/tap.h"

#include <errno.h>

static void test_bad(enum fake_fault fault, const char *what)
{
    struct fake f;
    peering_join(&f, 2, LONG);
    uint32_t file = peering_owned(&f, 1, 0);
    bool again = fault != FAKE_ERROR; /* after an error there is nothing to verify */
    peering_harm(&f, 1, again ? 2 : 1, fault);
    peering_reads(&f, 0, file, PLACE_SOURCE, what, "it went to the source");
    is_uint(peering_counts(&f, 0).bad, again ? 2 : 0, "it was counted");
    peering_harm(&f, 1, again, fault);
    peering_reads(&f, 0, file, PLACE_PEER, "once only: the read is right", "the peer was asked again");
    peering_reads(&f, 0, file, PLACE_PEER, "the next read is right", "and comes from the peer again");
    fake_end(&f);
}

/* A node that reads 4 KiB of a large file which another node owns. */
static void test_bad_blocks(enum fake_fault fault, const char *what)
{
    struct fake f;
    struct span span = {.file = dataset_file(&dataset, "middle"), .offset = 5 * MIB - 4096, .length = 4096};
    enum place place = PLACES;
    peering_join(&f, 2, LONG);
    read_check(f.node[0].store, &dataset, &span, &place);
    uint32_t reader = place != PLACE_PEER;
    is_int(read_check(f.node[reader].store, &dataset, &span, &place), 0, "blocks of a large file are read");
    is_int(place, PLACE_PEER, "they come from the owner");
    for (uint32_t times = 1; times <= 2; times++) {
        peering_harm(&f, !reader, times, fault);
        is_int(read_check(f.node[reader].store, &dataset, &span, &place), 0, "%s: the read is right", what);
        is_int(place, times == 1 ? PLACE_PEER : PLACE_SOURCE, "it went to the peer again, then to the source");
    }
    is_uint(peering_counts(&f, reader).bad, 3, "all were counted");
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
    is_int(fake_ask(&f, 0, &(struct ring_message){.file = peering_owned(&f, 0, 0), .count = 1}), -EIO,
           "an owner whose source says EAGAIN says that it failed");
    faults_set("");
    is_int(fake_ask(&f, 0, &(struct ring_message){.file = peering_owned(&f, 0, 0), .count = 1}), 0,
           "and is none the worse for it");
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
    const uint32_t large = dataset_file(&dataset, "sparse-large"), middle = dataset_file(&dataset, "middle");
    const uint32_t extent = EXTENT_BYTES / VALUE_BYTES, last = 5 * MIB / VALUE_BYTES; /* it has 77 bytes */
    const struct {
        int error;
        struct ring_message question;
        const char *what;
    } ask[] = {
        {-EINVAL, {.file = 4000000000u, .count = 1}, "of a file that there is not"},
        {-EINVAL, {.flags = FETCH_MANY, .count = 2, .slot = RING_LISTS}, "for many in a list that there is not"},
        {-EINVAL, {.flags = FETCH_MANY, .count = 2}, "for many, in an empty list"},
        {-EINVAL, {.flags = FETCH_MANY, .count = MANY_MOST + 1}, "for more than there may be"},
        {-EINVAL, {.value = 4000000000u, .count = 1}, "far behind the end"},
        {-EINVAL, {.value = 1, .count = 1}, "behind the end"},
        {-EINVAL, {.value = UINT32_MAX, .count = RING_VALUES}, "behind all that can be"},
        {-EINVAL, {.count = RING_VALUES + 1}, "for too many values"},
        {-EINVAL, {.count = 4000000000u}, "for far too many"},
        {-EINVAL, {.count = 0}, "for none"},
        {-EINVAL, {.file = large, .value = extent - 1, .count = 2}, "across two extents"},
        {0, {.file = large, .value = extent - 2, .count = 2}, "that is right"},
        {-EINVAL, {.file = dataset_file(&dataset, "empty"), .count = 1}, "of an empty file"},
        {0, {.file = middle, .count = 1, .flags = 31 << FETCH_HEAD}, "for the last block of a value"},
        {0, {.file = middle, .count = 1, .flags = 3 << FETCH_HEAD | 28 << FETCH_TAIL}, "for one in its middle"},
        {-EINVAL, {.file = middle, .count = 1, .flags = 4 << FETCH_HEAD | 28 << FETCH_TAIL}, "for no block"},
        {0, {.file = middle, .count = 2, .flags = 31 << FETCH_HEAD | 31 << FETCH_TAIL}, "for two blocks"},
        {0, {.file = middle, .value = last - 1, .count = 2, .flags = 9 << FETCH_HEAD}, "for blocks up to the end"},
        {-EINVAL, {.file = middle, .value = last, .count = 1, .flags = 1 << FETCH_HEAD}, "for a block behind it"},
        {-EINVAL, {.file = middle, .value = last - 1, .count = 2, .flags = 1 << FETCH_TAIL}, "for no last value"},
        {-EINVAL, {.file = 0, .count = 1, .flags = 1 << FETCH_TAIL}, "for blocks of a small file"},
        {-EINVAL, {.file = middle, .count = 1, .flags = 32 << FETCH_HEAD}, "with a flag that there is not"},
    };
    struct fake f;
    peering_join(&f, 2, LONG);
    for (size_t i = 0; i < sizeof ask / sizeof *ask; i++) {
        int error = fake_ask(&f, 0, &ask[i].question);
        is_int(error == -ENOENT ? 0 : error, ask[i].error, "a question %s", ask[i].what);
    }
    is_int(peering_state(&f, 0), WORLD_JOINED, "and the world goes on");
    fake_end(&f);
}

int main(void)
{
    peering_set_up();
    test_bad_blocks(FAKE_DAMAGE, "damaged blocks");
    test_bad_blocks(FAKE_SHORT, "blocks that end too early");
    test_bad_blocks(FAKE_CUT, "blocks that are said to be a whole value");
    test_bad(FAKE_CUT, "a whole value that is said to be blocks");
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
