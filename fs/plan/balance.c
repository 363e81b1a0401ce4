/* Keeps surpluses and deficits in two heaps. */
#include "fs/plan/balance.h"

#include <errno.h>
#include <stdlib.h>

enum { NODE_BITS = 16, NODE_MASK = (1 << NODE_BITS) - 1 };

int balance_init(struct balance *b, uint32_t nodes)
{
    *b = (struct balance){.nodes = nodes};
    b->surplus = malloc(nodes * sizeof *b->surplus);
    b->deficit = malloc(nodes * sizeof *b->deficit);
    b->transfer = malloc(2 * (size_t)nodes * sizeof *b->transfer);
    if (b->surplus && b->deficit && b->transfer)
        return 0;
    balance_fini(b);
    return -ENOMEM;
}

void balance_fini(struct balance *b)
{
    free(b->surplus);
    free(b->deficit);
    free(b->transfer);
    *b = (struct balance){0};
}

static uint64_t heap_entry(uint32_t size, uint32_t node)
{
    return (uint64_t)size << NODE_BITS | (NODE_MASK - node);
}

static uint32_t entry_size(uint64_t e)
{
    return (uint32_t)(e >> NODE_BITS);
}

static uint32_t entry_node(uint64_t e)
{
    return NODE_MASK - (uint32_t)(e & NODE_MASK);
}

static void sift_down(uint64_t *heap, uint32_t n, uint32_t at)
{
    uint64_t e = heap[at];
    for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && heap[child + 1] > heap[child])
            child++;
        if (heap[child] <= e)
            break;
        heap[at] = heap[child];
    }
    heap[at] = e;
}

static void make_heap(uint64_t *heap, uint32_t n)
{
    for (uint32_t at = n / 2; at-- > 0;)
        sift_down(heap, n, at);
}

/* Decrease the largest entry, or remove it. */
static void heap_take(uint64_t *heap, uint32_t *n, uint32_t size)
{
    heap[0] -= (uint64_t)size << NODE_BITS;
    if (entry_size(heap[0]) == 0)
        heap[0] = heap[--*n];
    if (*n > 0)
        sift_down(heap, *n, 0);
}

static uint32_t add_transfer(struct balance *b, uint32_t from, uint32_t most)
{
    uint32_t wanted = entry_size(b->deficit[0]), size = most < wanted ? most : wanted;
    b->transfer[b->transfers++] = (struct transfer){from, entry_node(b->deficit[0]), size};
    heap_take(b->deficit, &b->deficits, size);
    return size;
}

static void fill_heaps(struct balance *b, const uint32_t *count, const uint32_t *target)
{
    b->surpluses = b->deficits = 0;
    b->moved = 0;
    for (uint32_t v = 0; v < b->nodes; v++) {
        if (count[v] > target[v]) {
            b->surplus[b->surpluses++] = heap_entry(count[v] - target[v], v);
            b->moved += count[v] - target[v];
        } else if (count[v] < target[v]) {
            b->deficit[b->deficits++] = heap_entry(target[v] - count[v], v);
        }
    }
    make_heap(b->surplus, b->surpluses);
    make_heap(b->deficit, b->deficits);
}

void balance_run(struct balance *b, const uint32_t *count, const uint32_t *target)
{
    fill_heaps(b, count, target);
    b->transfers = 0;
    for (uint32_t left = count[b->nodes]; left > 0;)
        left -= add_transfer(b, b->nodes, left);
    b->first = b->transfers;
    while (b->surpluses > 0) {
        uint64_t giver = b->surplus[0];
        uint32_t size = add_transfer(b, entry_node(giver), entry_size(giver));
        heap_take(b->surplus, &b->surpluses, size);
    }
}
