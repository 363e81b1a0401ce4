/* A table of 64 bits a place: the value's distance from the first one that was added, and its length. Zero is unknown. It is
 * a private mapping, so that only its touched pages are memory. */
#include "fs/store/known.h"

#include "fs/store/index.h"
#include "fs/store/segment.h"

#include <sys/mman.h>

enum { LENGTH_BITS = 20 };

struct known {
    const char *base;
    _Atomic uint64_t at[SEGMENT_PLACES];
};

static struct known *known_of(struct segment *s, const void *bytes)
{
    struct known *k = atomic_load_explicit(&s->known, memory_order_acquire);
    if (k)
        return k;
    struct known *made =
        mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED)
        return NULL;
    madvise(made, sizeof *made, MADV_NOHUGEPAGE); /* most of it stays untouched */
    made->base = bytes;
    if (atomic_compare_exchange_strong(&s->known, &k, made))
        return made;
    munmap(made, sizeof *made);
    return k;
}

bool known_find(const struct segment *s, uint32_t place, const void **bytes, size_t *n)
{
    const struct known *k = atomic_load_explicit(&s->known, memory_order_acquire);
    uint64_t at = k ? atomic_load_explicit(&k->at[place], memory_order_relaxed) : 0;
    if (!at)
        return false;
    *bytes = k->base + ((int64_t)at >> LENGTH_BITS);
    *n = at & ((1u << LENGTH_BITS) - 1);
    return true;
}

void known_add(struct segment *s, uint32_t place, const void *bytes, size_t n)
{
    struct known *k = known_of(s, bytes);
    if (!k || n == 0 || n >> LENGTH_BITS)
        return;
    int64_t distance = (const char *)bytes - k->base;
    atomic_store_explicit(&k->at[place], (uint64_t)distance << LENGTH_BITS | n, memory_order_relaxed);
}

void known_forget(struct segment *s)
{
    struct known *k = atomic_exchange(&s->known, NULL);
    if (k)
        munmap(k, sizeof *k);
}
