/* Blocks by address, with the server that owns them: open addressing, no gaps. Memory that the C library or RocksDB
 * allocates for itself is not counted; blocks that they return and the product frees are not in this table. */
#include "tests/sim/memory.h"

#include "tests/lib/tap.h"
#include "tests/sim/faults.h"
#include "tests/sim/node.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    SLOTS = 1 << 15,
    RULE_KIB = 64 << 10, /* rule 9 of the design: so much, */
    RULE_FILE = 100,     /* and bytes per file */
    IDLE_KIB = 4 << 10,  /* tables of segments, 1 MiB per tier; 1/4 MiB of pictures; plans, lists, records of files */
};

struct block {
    const void *at; /* NULL: the slot is free */
    uint32_t n;
    uint16_t node, server;
};

static struct {
    struct block block[SLOTS];
    uint32_t blocks;
    bool begun;
    uint16_t server[NET_NODES]; /* the number of this node's server */
    uint64_t held[NET_NODES], most;
} memory;

static uint32_t home_of(const void *at)
{
    return (uint32_t)(((uintptr_t)at >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 49);
}

/* Where it is, or would be. */
static uint32_t find_slot(const void *at)
{
    uint32_t i = home_of(at);
    while (memory.block[i].at && memory.block[i].at != at)
        i = (i + 1) % SLOTS;
    return i;
}

static void check(uint32_t node, uint64_t most, const char *when)
{
    if (memory.held[node] > most)
        sim_fail("node %u: its server has %" PRIu64 " bytes of memory %s", node, memory.held[node], when);
}

static void *note_block(void *at, size_t n)
{
    const struct sim_node *node = at && memory.begun ? &sim_nodes[sim_node()] : NULL;
    if (!node || sim_allocates || sim_process_self() != node->server)
        return at;
    uint64_t *held = &memory.held[node->number], files = catalog_files(sim_dataset.catalog);
    if (++memory.blocks > SLOTS / 2)
        bail_out("too many blocks of memory");
    memory.block[find_slot(at)] = (struct block){at, (uint32_t)n, (uint16_t)node->number, memory.server[node->number]};
    *held += n;
    if (*held > memory.most)
        effects[EFFECT_MEMORY] = (memory.most = *held) / 1024;
    check(node->number, RULE_KIB * 1024 + RULE_FILE * files, "at once");
    return at;
}

static void forget_block(const void *at)
{
    uint32_t i = find_slot(at), hole = i;
    struct block b = memory.block[i];
    if (!at || !b.at)
        return;
    memory.blocks--;
    if (b.server == memory.server[b.node])
        memory.held[b.node] -= b.n;
    memory.block[i].at = NULL;
    while (memory.block[i = (i + 1) % SLOTS].at) { /* those after it come closer to their home */
        uint32_t home = home_of(memory.block[i].at);
        if ((i - home) % SLOTS < (i - hole) % SLOTS)
            continue;
        memory.block[hole] = memory.block[i];
        memory.block[i].at = NULL;
        hole = i;
    }
}

void memory_begin(uint32_t node)
{
    memory.begun = true;
    memory.server[node]++;
    memory.held[node] = 0;
}

bool memory_is_idle(uint32_t node, uint64_t spare)
{
    return memory.held[node] <= IDLE_KIB * 1024 + spare;
}

void memory_check_idle(uint32_t node, uint64_t spare)
{
    check(node, IDLE_KIB * 1024 + spare, "and nothing to do");
}

void memory_check_ended(uint32_t node)
{
    check(node, 0, "after it has freed all");
}

/* --- what the product calls --- */

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_malloc(size_t n)
{
    return faults_memory(n) ? NULL : note_block(__real_malloc(n), n);
}

void *__real_calloc(size_t count, size_t n);
void *__wrap_calloc(size_t count, size_t n);
void *__wrap_calloc(size_t count, size_t n)
{
    return faults_memory(count * n) ? NULL : note_block(__real_calloc(count, n), count * n);
}

void *__real_aligned_alloc(size_t alignment, size_t n);
void *__wrap_aligned_alloc(size_t alignment, size_t n);
void *__wrap_aligned_alloc(size_t alignment, size_t n)
{
    return faults_memory(n) ? NULL : note_block(__real_aligned_alloc(alignment, n), n);
}

void *__real_realloc(void *was, size_t n);
void *__wrap_realloc(void *was, size_t n);
void *__wrap_realloc(void *was, size_t n)
{
    void *is = faults_memory(n) ? NULL : __real_realloc(was, n);
    if (is)
        forget_block(was);
    return note_block(is, n);
}

void __real_free(void *at);
void __wrap_free(void *at);
void __wrap_free(void *at)
{
    forget_block(at);
    __real_free(at);
}
