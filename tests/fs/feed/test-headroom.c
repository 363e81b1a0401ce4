/* The room against page caches of several sizes: how much is read twice, and how it shrinks and grows. */
#include "fs/feed/headroom.h"

#include "tests/lib/tap.h"

#include <stdlib.h>

enum { FILES = 20000, BYTES = 100 << 10, MOST = 32 << 20 };

/* A loader reads all files in their order, and the feeder is ahead by the room. The page cache holds the `cache` files
 * that were fed last: of the others the bytes come again. Files that were read from the source. */
struct pass {
    uint32_t fed, read, reads;
};

static void feed_ahead(struct headroom *room, struct pass *p)
{
    if (p->fed < p->read)
        p->fed = p->read;
    for (; p->fed < FILES && (uint64_t)(p->fed - p->read) * BYTES < headroom_bytes(room); p->fed++, p->reads++) {
        headroom_feed(room, p->fed);
        headroom_answer(room, p->fed, BYTES, true, 0);
    }
}

static uint32_t read_epoch(struct headroom *room, uint32_t cache)
{
    struct pass p = {0};
    for (; p.read < FILES; p.read++) {
        feed_ahead(room, &p);
        bool fed = p.read < p.fed;
        if (!fed || p.fed - p.read > cache) {
            headroom_answer(room, p.read, BYTES, false, (uint64_t)(p.fed - p.read) * BYTES);
            p.reads++;
        }
        headroom_read(room, p.read, BYTES);
    }
    return p.reads;
}

static void test_caches(void)
{
    static const uint32_t cache[] = {0, 1, 5, 20, 100, 300};
    for (size_t i = 0; i < sizeof cache / sizeof *cache; i++) {
        struct headroom room;
        if (headroom_init(&room, MOST, FILES))
            bail_out("out of memory");
        uint32_t first = read_epoch(&room, cache[i]), next = read_epoch(&room, cache[i]);
        ok(next <= FILES / 100 * 105, "room in the page cache for %u files: %u reads of %u files", cache[i], next,
           FILES);
        ok(first <= FILES / 100 * 105 + 2 * MOST / BYTES, "%u in the first epoch", first);
        ok(headroom_bytes(&room) < MOST, "the room has shrunk to %llu bytes",
           (unsigned long long)headroom_bytes(&room));
        read_epoch(&room, FILES);
        ok(headroom_bytes(&room) > HEADROOM_LEAST, "it grows when memory is there again, to %llu",
           (unsigned long long)headroom_bytes(&room));
        for (int epoch = 0; epoch < 3; epoch++)
            next = read_epoch(&room, FILES);
        ok(headroom_bytes(&room) == MOST && next == FILES, "in the end to all of it");
        headroom_fini(&room);
    }
}

static void test_one_loss(void)
{
    struct headroom room;
    if (headroom_init(&room, MOST, FILES))
        bail_out("out of memory");
    ok(read_epoch(&room, FILES) == FILES && headroom_bytes(&room) == MOST,
       "where nothing is lost it is all that it may be");
    headroom_feed(&room, 7);
    headroom_answer(&room, 7, BYTES, false, 0);
    ok(room.lost == 0, "a loader that comes before the feeder's READ has lost nothing");
    headroom_feed(&room, 7);
    headroom_answer(&room, 7, BYTES, true, 0);
    headroom_read(&room, 7, BYTES);
    headroom_answer(&room, 7, BYTES, false, 0);
    ok(room.lost == 0, "nor has one that reads a file again");
    headroom_feed(&room, 7);
    headroom_answer(&room, 7, BYTES, true, 0);
    headroom_answer(&room, 7, BYTES, false, 0);
    ok(room.lost > 0 && headroom_bytes(&room) == MOST, "one file that was dropped changes nothing");
    headroom_feed(&room, 7);
    headroom_answer(&room, 7, BYTES, true, 0);
    headroom_answer(&room, 7, MOST, false, UINT64_MAX);
    ok(headroom_bytes(&room) == MOST / 4 + MOST / 64, "many leave a quarter");
    headroom_answer(&room, FILES, BYTES, false, 0);
    headroom_answer(&room, UINT32_MAX, BYTES, true, 0);
    headroom_feed(&room, FILES);
    headroom_read(&room, UINT32_MAX, BYTES);
    pass("files that the catalog does not have are ignored");
    headroom_fini(&room);
    if (headroom_init(&room, HEADROOM_LEAST / 2, FILES))
        bail_out("out of memory");
    ok(headroom_bytes(&room) == HEADROOM_LEAST / 2, "a mount may have less than the least");
    headroom_feed(&room, 7);
    headroom_answer(&room, 7, BYTES, true, 0);
    headroom_begin(&room);
    headroom_answer(&room, 7, MOST, false, 0);
    ok(headroom_bytes(&room) == HEADROOM_LEAST / 2 && room.lost == 0, "what an earlier plan was fed is no loss");
    for (uint32_t file = 0; file < 40; file++) {
        headroom_feed(&room, file);
        headroom_answer(&room, file, BYTES, true, 0);
        headroom_answer(&room, file, 1, false, 0);
        room.lost += BYTES;
    }
    ok(headroom_bytes(&room) == 0, "losses repeatedly leave nothing");
    headroom_begin(&room);
    ok(headroom_bytes(&room) == HEADROOM_LEAST / 16, "the next plan tries the least");
    headroom_fini(&room);
    headroom_fini(&room);
}

int main(void)
{
    test_caches();
    test_one_loss();
    return done_testing();
}
