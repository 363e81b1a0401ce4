/* Threads that put, read, drop, flush and reclaim the same parts at once: every answer is right or absent, and in the
 * end the counts agree. `stress-shard N` goes on for N times as long. */
#include "tests/fs/store/filling.h"

#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define MIB ((uint64_t)1 << 20)
enum { FILES = 160, FILLERS = 3, READERS = 3 };
enum { FILLED = 12000, READ = 12000, DROPPED = 400 }; /* at least, before it ends */

static struct filling filling;
static struct shard *shard;
static atomic_bool stop;
static atomic_ulong filled, reads, drops, wrong, refused;

static uint32_t any_file(unsigned *seed)
{
    return (uint32_t)rand_r(seed) % FILES;
}

static uint64_t any_piece(uint32_t file, unsigned *seed, uint32_t *length)
{
    uint64_t size = filling_size(&filling, file);
    uint64_t pieces = (size + PIECE_BYTES - 1) / PIECE_BYTES;
    uint64_t offset = (uint64_t)rand_r(seed) % pieces * PIECE_BYTES;
    *length = size - offset < PIECE_BYTES ? (uint32_t)(size - offset) : PIECE_BYTES;
    return offset;
}

static void *fill(void *number)
{
    unsigned seed = (unsigned)(uintptr_t)number;
    struct value_codec_state *codec = value_codec_create(1);
    struct room room;
    while (!atomic_load(&stop)) {
        uint32_t file = any_file(&seed), length;
        uint64_t offset = any_piece(file, &seed, &length);
        if (rand_r(&seed) % 10 == 0 && shard_reserve(shard, file, offset, length, &room) == 0) {
            shard_abandon(&room);
            continue;
        }
        int error = filling_put(&filling, shard, codec, file, offset, length);
        atomic_fetch_add(error ? &refused : &filled, 1);
        atomic_fetch_add(&wrong, error && error != -ENOSPC);
    }
    value_codec_destroy(codec);
    return NULL;
}

static void *read_spans(void *number)
{
    unsigned seed = (unsigned)(uintptr_t)number;
    while (!atomic_load(&stop)) {
        uint32_t file = any_file(&seed);
        uint64_t size = filling_size(&filling, file), offset = (uint64_t)rand_r(&seed) % size;
        uint64_t length = 1 + (uint64_t)rand_r(&seed) % SPAN_BYTES;
        if (length > size - offset)
            length = size - offset;
        int error = filling_check(&filling, shard, file, offset, (uint32_t)length);
        atomic_fetch_add(&reads, error == 0);
        atomic_fetch_add(&wrong, error && error != -ENOENT);
    }
    return NULL;
}

static void *drop(void *number)
{
    unsigned seed = (unsigned)(uintptr_t)number;
    while (!atomic_load(&stop)) {
        uint32_t file = any_file(&seed);
        atomic_fetch_add(&drops, shard_drop(shard, file, (uint64_t)rand_r(&seed) % filling_size(&filling, file)));
        unsigned what = (unsigned)rand_r(&seed) % 256;
        if (what == 0)
            shard_flush(shard);
        else if (what == 1)
            shard_reclaim(shard);
    }
    return NULL;
}

static uint64_t held_parts(void)
{
    uint64_t held = 0, from;
    for (uint64_t part = 0; part < filling.parts.pieces; part++) {
        uint32_t file = cut_file(&filling.parts, part, &from);
        held += shard_where(shard, file, from) != TIERS;
    }
    return held;
}

static void check_end(void)
{
    struct tier_status status[TIERS];
    shard_flush(shard);
    shard_reclaim(shard);
    for (int i = 0; i < TIERS; i++) {
        shard_status(shard, (enum tier_name)i, &status[i]);
        ok(status[i].state == TIER_OPEN && !status[i].bad_values, "the %s tier is well", tier_names[i]);
        ok(status[i].held <= status[i].capacity, "and in its budget");
    }
    is_uint(status[0].parts + status[1].parts, held_parts(), "the parts counted are the parts held");
}

int main(int argc, char **argv)
{
    static const uint64_t sizes[] = {3000, 100000, 300000, 1000000, 5000000, 9000000};
    unsigned long times = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    const char *ram = filling_ram();
    char name[64];
    filling_begin(&filling);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "%s-%03d", i % 4 ? "random" : "text", i);
        filling_add(&filling, name, sizes[i % 6] + (uint64_t)i);
    }
    filling_scan(&filling);
    shard = filling_open(&filling, ram, 40 * MIB, test_path("ssd"), 60 * MIB);
    pthread_t thread[FILLERS + READERS + 1];
    int threads = 0;
    for (int i = 0; i < FILLERS; i++, threads++)
        pthread_create(&thread[threads], NULL, fill, (void *)(uintptr_t)(i + 1));
    for (int i = 0; i < READERS; i++, threads++)
        pthread_create(&thread[threads], NULL, read_spans, (void *)(uintptr_t)(i + 100));
    pthread_create(&thread[threads++], NULL, drop, (void *)(uintptr_t)1000);
    while ((filled < times * FILLED || reads < times * READ || drops < times * DROPPED) && !atomic_load(&wrong))
        filling_check(&filling, shard, 0, 0, 1);
    atomic_store(&stop, true);
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    is_uint(atomic_load(&wrong), 0, "nothing was wrong");
    pass("%lu puts, %lu refused, %lu reads, %lu drops", filled, refused, reads, drops);
    check_end();
    shard_close(shard);
    shard = filling_open(&filling, ram, 40 * MIB, test_path("ssd"), 60 * MIB);
    check_end();
    int bad = 0;
    for (uint32_t file = 0; file < FILES; file++) {
        int error = filling_check(&filling, shard, file, 0, 1000);
        bad += error && error != -ENOENT;
    }
    is_int(bad, 0, "right after a restart");
    shard_close(shard);
    filling_end(&filling);
    return done_testing();
}
