#include "tests/fs/control/fake-store.h"

#include <errno.h>

const char *const place_names[PLACES] = {"ram", "ssd", "peer", "source"};
struct fake_store fake;

void store_stats(struct store *store, struct store_stats *stats)
{
    (void)store;
    *stats = fake.stats;
}

int store_where(struct store *store, uint32_t file, uint64_t offset, enum tier_name *tier)
{
    (void)store, (void)offset;
    *tier = fake.tier;
    return file == fake.file ? 0 : -ENOENT;
}

int store_read(struct store *store, struct store_read *read)
{
    (void)store, (void)read;
    return -EIO;
}

bool store_cancel(struct store *store, struct store_read *read)
{
    (void)store, (void)read;
    return false;
}

int store_stage_start(struct store *store, uint64_t round, struct samples *chosen)
{
    (void)store;
    fake.chosen = chosen ? samples_count(chosen) : 0;
    for (uint32_t i = 0; i < fake.chosen && i < FAKE_CHOSEN; i++)
        fake.file_at[i] = samples_file(chosen, i);
    if (!fake.start_error) {
        fake.progress.state = STAGE_RUNNING;
        fake.progress.round = round;
    }
    return fake.start_error;
}

void store_stage_stop(struct store *store)
{
    (void)store;
    fake.stops++;
    fake.progress.state = STAGE_STOPPED;
}

void store_stage_progress(struct store *store, struct stage_progress *now)
{
    (void)store;
    *now = fake.progress;
}
