/* What a store keeps and lacks comes from the one that kept it before: as it is stored, checked, in the place of a read
 * of the source. And the room of what leaves. */
#include "tests/fs/base/moved-clock.h"
#include "tests/fs/store/dataset.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)

enum { SMALL = 60, SMALL_BYTES = 200000, NUMBER = 7, WAITERS = 64 };

static struct dataset d;

/* The store before, and what is wrong with it. */
static struct {
    struct store *store;
    _Atomic enum { HAS_ALL, HAS_NOTHING, LIES, IS_SILENT, BUSY } mood;
    atomic_bool held_up; /* it does not answer */
    atomic_int asked, pulled, failed, refused;
    _Atomic uint64_t pulled_bytes;
} before;

struct taker {
    stored_take take;
    void *to;
    int error;
};

static void put_value(void *user, uint32_t i, const void *bytes, uint32_t length, bool cut)
{
    char value[VALUE_MOST];
    struct taker *t = user;
    memcpy(value, bytes, length);
    value[length - 1] ^= atomic_load(&before.mood) == LIES;
    t->error = cut ? -EBADMSG : t->error ? t->error : t->take(t->to, i, value, length);
}

static int ask_before(void *user, const struct value_run *run, stored_take take, void *to)
{
    struct taker t = {take, to, 0};
    uint64_t offset = (uint64_t)run->first * VALUE_BYTES, left = dataset_size(&d, run->file) - offset;
    uint64_t length = (uint64_t)run->count * VALUE_BYTES;
    struct span span = {.file = run->file, .offset = offset, .length = (uint32_t)(length < left ? length : left)};
    int error;
    (void)user;
    atomic_fetch_add(&before.asked, 1);
    wait_until(!atomic_load(&before.held_up));
    switch (atomic_load(&before.mood)) {
    case HAS_NOTHING:
        return -ENOENT;
    case IS_SILENT:
        return -ETIMEDOUT;
    case BUSY:
        return -EBUSY;
    case HAS_ALL:
    case LIES:
        break;
    }
    error = store_stored(before.store, &span, false, put_value, &t);
    return error ? error : t.error;
}

static void note_pulled(void *user, uint32_t number, const struct span *span, int error)
{
    (void)user;
    if (number != NUMBER)
        bail_out("a pull of another number");
    before.pulled_bytes += error ? 0 : span->length;
    atomic_fetch_add(&before.refused, error == -ENOSPC);
    atomic_fetch_add(&before.failed, error && error != -ENOSPC);
    atomic_fetch_add(&before.pulled, 1);
}

static bool keep_all(void *user, uint32_t file, uint64_t offset)
{
    (void)user, (void)file, (void)offset;
    return true;
}

static int fetch_before(void *user, struct store_read *read)
{
    (void)user, (void)read;
    return -EHOSTUNREACH;
}

static struct store *open_after(uint64_t ram)
{
    struct store *s = dataset_store(&d, ram, 0, NULL, false);
    store_set_peers(s, &(struct store_peers){
                           .keeps = keep_all, .fetch = fetch_before, .before = ask_before, .pulled = note_pulled});
    before.mood = HAS_ALL;
    before.asked = before.pulled = before.failed = before.refused = 0;
    before.pulled_bytes = 0;
    return s;
}

static int pull_file(struct store *s, uint32_t file, uint64_t *held)
{
    uint64_t size = dataset_size(&d, file);
    int notices = 0;
    for (uint64_t at = 0; at < size; at += EXTENT_BYTES)
        notices += store_pull(s, NUMBER, file, at, size - at < EXTENT_BYTES ? size : at + EXTENT_BYTES, held);
    return notices;
}

static void pull_all(struct store *s)
{
    uint64_t held = 0;
    int notices = 0, had = before.pulled;
    for (uint32_t file = 0; file < catalog_files(d.catalog); file++)
        notices += pull_file(s, file, &held);
    wait_until(atomic_load(&before.pulled) - had == notices);
}

static bool all_right(struct store *s, enum place from)
{
    bool right = true;
    for (uint32_t file = 0; file < catalog_files(d.catalog); file++) {
        uint64_t size = dataset_size(&d, file);
        for (uint64_t at = 0; at < size; at += SPAN_BYTES) {
            enum place place;
            struct span span = {file, (uint32_t)(size - at < SPAN_BYTES ? size - at : SPAN_BYTES), at};
            right &= read_check(s, &d, &span, &place) == 0 && place == from;
        }
    }
    return right;
}

static void test_pull(void)
{
    struct store *s = open_after(128 * MIB);
    pull_all(s);
    is_int(before.failed, 0, "all was brought");
    is_uint(before.pulled_bytes, catalog_bytes(d.catalog), "every byte");
    is_uint(stats_of(s).source_samples, 0, "no file of the source was opened");
    ok(all_right(s, PLACE_RAM), "all is held and right");
    is_uint(stats_of(s).tier[TIER_RAM].held >> 20, stats_of(before.store).tier[TIER_SSD].held >> 20,
            "it is stored as it was");
    uint64_t held = 0;
    is_int(pull_file(s, dataset_file(&d, "large"), &held), 0, "what is held is not asked for");
    is_uint(held, dataset_size(&d, dataset_file(&d, "large")), "but counted");
    store_close(s);
}

/* What readers want also comes from there, and else from the source. */
static void test_readers(void)
{
    struct store *s = open_after(128 * MIB);
    struct span small = {.file = dataset_file(&d, "small-3"), .length = SMALL_BYTES};
    struct span large = {.file = dataset_file(&d, "large"), .length = SPAN_BYTES, .offset = 3 * MIB};
    enum place place;
    is_int(read_check(s, &d, &small, &place), 0, "a read while it is another's");
    is_int(place, PLACE_PEER, "comes from there");
    is_int(read_check(s, &d, &small, &place), 0, "the next");
    is_int(place, PLACE_RAM, "from the tier");
    is_int(read_check(s, &d, &large, &place), 0, "of a large file");
    is_int(place, PLACE_PEER, "as well");
    is_uint(stats_of(s).source_samples, 0, "nothing of the source");
    static const char *const moods[] = {
        [HAS_NOTHING] = "it has no more", [LIES] = "it lies", [IS_SILENT] = "is silent"};
    for (int mood = HAS_NOTHING; mood <= IS_SILENT; mood++) {
        before.mood = mood;
        small.file++;
        is_int(read_check(s, &d, &small, &place), 0, "%s: right all the same", moods[mood]);
        is_int(place, PLACE_SOURCE, "%s: from the source", moods[mood]);
        is_uint(stats_of(s).source_samples, mood, "%s: a file was opened", moods[mood]);
    }
    store_close(s);
}

static void *read_small(void *argument)
{
    struct span span = {.file = dataset_file(&d, "small-5"), .length = SMALL_BYTES};
    return (void *)(intptr_t)read_check(argument, &d, &span, NULL);
}

/* A pull alone never opens the source; but a reader meanwhile gets it. */
static void test_nothing_there(void)
{
    struct store *s = open_after(128 * MIB);
    uint64_t held = 0;
    pthread_t waiter[WAITERS];
    int wrong = 0;
    before.mood = HAS_NOTHING;
    pull_all(s);
    ok(before.failed == before.pulled, "nothing was brought");
    is_uint(stats_of(s).source_samples, 0, "and nothing read from the source");
    before.held_up = true;
    before.asked = 0;
    is_int(pull_file(s, dataset_file(&d, "small-5"), &held), 1, "a pull that waits");
    wait_until(atomic_load(&before.asked) > 0);
    for (int i = 0; i < WAITERS; i++)
        if (pthread_create(&waiter[i], NULL, read_small, s))
            bail_out("a thread");
    wait_until(stats_of(s).parked == WAITERS);
    before.held_up = false;
    for (int i = 0; i < WAITERS; i++) {
        void *error;
        pthread_join(waiter[i], &error);
        wrong += error != NULL;
    }
    is_int(wrong, 0, "64 readers that wait for it get it");
    is_uint(stats_of(s).source_samples, 1, "from the source, once");
    store_close(s);
}

static void test_stored(void)
{
    struct store *s = open_after(128 * MIB);
    uint32_t small = dataset_file(&d, "small-1"), large = dataset_file(&d, "large");
    uint64_t size = dataset_size(&d, large);
    ok(!store_is_stored(s, small, 0, SMALL_BYTES), "what is not held is not stored");
    uint64_t held = 0;
    clock_stand();
    pull_file(s, small, &held);
    wait_until(store_holds(s, small, 0));
    ok(!store_is_stored(s, small, 0, SMALL_BYTES), "nor what lies in a staging");
    clock_run();
    pull_all(s);
    store_make_room(s);
    ok(store_is_stored(s, small, 0, SMALL_BYTES) && store_is_stored(s, large, 0, EXTENT_BYTES) &&
           store_is_stored(s, large, EXTENT_BYTES, size),
       "but all, when it is ingested");
    is_uint(store_drop(s, large, EXTENT_BYTES, size), size - EXTENT_BYTES, "an extent is dropped");
    ok(!store_is_stored(s, large, EXTENT_BYTES, size), "and not stored any more");
    ok(store_is_stored(s, large, 0, EXTENT_BYTES), "the other one is");
    ok(store_holds(s, large, EXTENT_BYTES - 1) && !store_holds(s, large, EXTENT_BYTES), "and held");
    store_close(s);
}

/* A full tier: every tenth of what it holds goes, and as much comes. */
static void test_room(void)
{
    struct store *s = open_after(80 * MIB);
    uint64_t gone = 0, freed = 0;
    pull_all(s);
    ok(before.refused > 0, "there is no room for all");
    for (uint32_t i = 0; i < SMALL; i += 10) {
        char name[32];
        snprintf(name, sizeof name, "small-%u", i);
        gone += store_drop(s, dataset_file(&d, name), 0, SMALL_BYTES);
    }
    uint32_t large = dataset_file(&d, "large");
    for (uint64_t at = 0; at < EXTENT_BYTES; at += 20 * VALUE_BYTES)
        gone += store_drop(s, large, at, at + VALUE_BYTES);
    for (uint64_t bytes; (bytes = store_make_room(s));)
        freed += bytes;
    ok(freed > gone / 2, "the room of what was dropped is back: %llu of %llu", (unsigned long long)freed,
       (unsigned long long)gone);
    struct tier_status t = stats_of(s).tier[TIER_RAM];
    ok(t.rewritten > gone, "though more had to be written again: %llu", (unsigned long long)t.rewritten);
    ok(t.dead < t.held / 100, "little is dead");
    int refused = before.refused;
    uint64_t bytes = before.pulled_bytes;
    pull_all(s);
    ok(before.pulled_bytes - bytes > gone / 10 * 8, "as much comes instead: %llu",
       (unsigned long long)(before.pulled_bytes - bytes));
    ok(before.refused > refused, "and not more");
    store_close(s);
}

int main(void)
{
    dataset_begin(&d);
    for (int i = 0; i < SMALL; i++) {
        char name[32];
        snprintf(name, sizeof name, "small-%d", i);
        dataset_add(&d, name, SMALL_BYTES);
    }
    dataset_add(&d, "sparse-text", 3 * MIB);
    dataset_add(&d, "large", EXTENT_BYTES + 9 * MIB + 777);
    dataset_scan(&d);
    before.store = dataset_store(&d, 0, 256 * MIB, NULL, false);
    store_stage_start(before.store, 0, NULL);
    wait_until(progress_of(before.store).state != STAGE_RUNNING);
    test_pull();
    test_readers();
    test_nothing_there();
    test_stored();
    test_room();
    store_close(before.store);
    dataset_end(&d);
    return done_testing();
}
