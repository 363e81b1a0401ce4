/* What is dealt to a node finds room in its tiers: extents whose costs add up to what extents_room promises are all
 * kept, whatever their sizes and order and however small the tiers are. */
#include "tests/fs/store/dataset.h"
#include "tests/lib/tap.h"

#include "fs/world/extents.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define MIB (1ull << 20)

static struct {
    struct dataset d;
    struct extents *extents;
    bool *chosen; /* by extent */
} world;

static bool keeps(void *user, uint32_t file, uint64_t offset)
{
    (void)user;
    return world.chosen[extents_at(world.extents, file, offset)];
}

static int nobody(void *user, struct store_read *read)
{
    (void)user, (void)read;
    return -ENOTCONN;
}

/* At random, until the next one would be too much. Returns their cost. */
static uint64_t choose(uint64_t room, uint64_t *random)
{
    uint64_t extents = extents_count(world.extents), cost = 0;
    for (uint64_t tries = 0; tries < 20 * extents; tries++) {
        uint64_t e = random_next(random) % extents, more = extents_cost(world.extents, e);
        if (world.chosen[e] || cost + more > room)
            continue;
        world.chosen[e] = true;
        cost += more;
    }
    return cost;
}

static bool is_held(struct store *store, uint64_t extent)
{
    uint64_t from, to;
    uint32_t file = extents_file(world.extents, extent, &from, &to);
    for (uint64_t at = from; at < to; at += 4096)
        if (!store_holds(store, file, at))
            return false;
    return true;
}

static uint64_t count_lacking(struct store *store)
{
    uint64_t lacking = 0;
    for (uint64_t e = 0; e < extents_count(world.extents); e++)
        lacking += world.chosen[e] && !is_held(store, e);
    return lacking;
}

static enum { RUNNING, DONE } state_of(struct store *store)
{
    struct stage_progress p;
    store_stage_progress(store, &p);
    return p.state == STAGE_DONE ? DONE : RUNNING;
}

static void test_tiers(const char *what, uint64_t ram, uint64_t ssd, uint64_t *random)
{
    uint64_t room = extents_room(world.extents, ram) + extents_room(world.extents, ssd);
    world.chosen = calloc(extents_count(world.extents), sizeof *world.chosen);
    if (!world.chosen)
        bail_out("no memory");
    uint64_t cost = choose(room, random);
    struct store *store = dataset_store(&world.d, ram, ssd, NULL, false);
    store_set_peers(store, &(struct store_peers){.keeps = keeps, .fetch = nobody});
    if (store_stage_start(store, 0, NULL))
        bail_out("no stage");
    wait_until(state_of(store) == DONE);
    is_uint(count_lacking(store), 0, "%s, tiers of %ju and %ju KiB: all is kept that was dealt, %ju of %ju KiB", what,
            (uintmax_t)ram / 1024, (uintmax_t)ssd / 1024, (uintmax_t)cost / 1024, (uintmax_t)room / 1024);
    store_close(store);
    free(world.chosen);
}

static void test_dataset(const char *what, int files, uint64_t least, uint64_t most)
{
    static const uint64_t tiers[][2] = {{2, 0}, {0, 3}, {5, 4}, {9, 17}, {20, 6}};
    uint64_t random = (uint64_t)files;
    dataset_begin(&world.d);
    for (int i = 0; i < files; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s-%d/random-%d", what, i % 7, i);
        dataset_add(&world.d, name, least + random_next(&random) % (most - least));
    }
    dataset_scan(&world.d);
    if (extents_create(world.d.catalog, &world.extents))
        bail_out("no memory");
    for (size_t i = 0; i < sizeof tiers / sizeof *tiers; i++)
        test_tiers(what, tiers[i][0] * MIB, tiers[i][1] * MIB, &random);
    extents_destroy(world.extents);
    dataset_end(&world.d);
}

int main(void)
{
    test_dataset("tiny", 8000, 1, 300);
    test_dataset("small", 3000, 1, 9000);
    test_dataset("middle", 400, 50000, 200000);
    test_dataset("large", 12, 3 * MIB, 6 * MIB);
    return done_testing();
}
