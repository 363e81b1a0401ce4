/* Buffers that a disk reads into: in one piece of memory where the machine has huge pages, and no more of them than
 * promised. */
#include "fs/store/pool.h"

#include "tests/lib/tap.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MANY = 60, THREADS = 4, ROUNDS = 20000, MOST = 5, HUGE = 2 << 20 };

static struct pool pool;

/* How many of these lie within the areas of the pool? */
static int count_shared(struct buffer *const buffer[], int n, enum pool_kind size)
{
    const struct pool_areas *a = &pool.areas[size];
    int shared = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < a->areas; j++)
            shared += buffer[i]->bytes >= a->area[j] &&
                      buffer[i]->bytes + pool_bytes[size] <= a->area[j] + pool_area_bytes[size];
    return shared;
}

static void get_all(struct buffer *buffer[], int n, enum pool_kind size)
{
    for (int i = 0; i < n; i++) {
        buffer[i] = pool_buffer_get(&pool, size);
        if (!buffer[i])
            bail_out("no memory for a buffer");
        memset(buffer[i]->bytes, i, pool_bytes[size]);
    }
}

/* Is each still as it was filled? */
static bool are_apart(struct buffer *const buffer[], int n, enum pool_kind size)
{
    bool good = true;
    for (int i = 0; i < n; i++)
        for (size_t at = 0; at < pool_bytes[size]; at += 512)
            good &= buffer[i]->bytes[at] == (char)i;
    return good;
}

static void put_all(struct buffer *buffer[], int n)
{
    for (int i = 0; i < n; i++)
        pool_buffer_put(buffer[i]);
}

/* Does the kernel back this address with huge pages when it can? -1: it has none. */
static int asks_for_huge(const void *address)
{
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[512];
    unsigned long from, to;
    bool ours = false;
    int asks = access("/sys/kernel/mm/transparent_hugepage", F_OK) ? -1 : 0;
    while (maps && asks == 0 && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            ours = (unsigned long)address >= from && (unsigned long)address < to;
        else if (ours && strncmp(line, "VmFlags:", 8) == 0)
            asks = strstr(line, " hg") != NULL;
    }
    if (maps)
        fclose(maps);
    return asks;
}

static void is_huge(const char *bytes, const char *what)
{
    int asks = asks_for_huge(bytes);
    is_uint((uintptr_t)bytes % HUGE, 0, "an area of %s begins at a huge page", what);
    if (asks < 0)
        skip(1, "this kernel has no huge pages");
    else
        ok(asks, "and consists of huge pages where there are any");
}

static void test_size(enum pool_kind size, const char *what, int areas, int shared)
{
    struct buffer *buffer[MANY];
    const struct pool_areas *a = &pool.areas[size];
    pool_init(&pool);
    is_int(a->areas, 0, "a pool without %s has no area for them", what);
    get_all(buffer, 1, size);
    is_int(a->areas, 1, "the first takes one");
    is_huge(a->area[0], what);
    put_all(buffer, 1);
    for (int turn = 0; turn < 3; turn++) {
        get_all(buffer, MANY, size);
        ok(are_apart(buffer, MANY, size), "no two buffers of %s overlap", what);
        is_int(a->areas, areas, "they take no more areas than promised");
        is_int(count_shared(buffer, MANY, size), shared, "as many as fit are in these");
        put_all(buffer, MANY);
    }
    is_int(pool.stripe[thread_stripe()].spares[size], POOL_SPARES, "except for the spares, the others are freed");
    pool_fini(&pool);
}

/* Gets some buffers, marks them and returns them, many times. Returns whether a mark was lost. */
static void *use_buffers(void *number)
{
    struct buffer *buffer[MOST];
    bool good = true;
    for (int i = 0; i < ROUNDS && good; i++) {
        int n = 1 + i % MOST;
        for (int j = 0; j < n; j++) {
            buffer[j] = pool_buffer_get(&pool, j ? POOL_VALUE : i % 2);
            memcpy(buffer[j]->bytes, &(uintptr_t){(uintptr_t)number << 8 | (unsigned)j}, sizeof(uintptr_t));
        }
        for (int j = 0; j < n; j++) {
            good &= *(uintptr_t *)buffer[j]->bytes == ((uintptr_t)number << 8 | (unsigned)j);
            pool_buffer_put(buffer[j]);
        }
    }
    return good ? number : NULL;
}

static void test_threads(void)
{
    pthread_t thread[THREADS];
    struct buffer *buffer[MANY];
    pool_init(&pool);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, use_buffers, (void *)(i + 1));
    for (uintptr_t i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(thread[i], &result);
        ok(result == (void *)(i + 1), "thread %d never shares a buffer", (int)i);
    }
    get_all(buffer, MANY, POOL_VALUE);
    int shared = count_shared(buffer, MANY, POOL_VALUE);
    ok(shared > 0 && shared >= 14 * pool.areas[POOL_VALUE].areas - POOL_SPARES * THREADS,
       "all are there again, except other threads' spares");
    put_all(buffer, MANY);
    pool_fini(&pool);
}

int main(void)
{
    test_size(POOL_VALUE, "values", 2, 28);
    test_size(POOL_SPAN, "spans", 4, 20);
    test_threads();
    return done_testing();
}
