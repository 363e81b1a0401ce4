/* Consistent copies of memory that another process writes.
 *
 * The writer makes the version odd, writes, and makes it even. A reader copies, and starts again if the version was odd
 * or has changed. All words are copied one by one with atomic accesses; torn copies are discarded. */
#include "fs/wire/feed.h"

#include <stddef.h>

enum { TRIES = 1000 };

static void copy_words(void *to, const void *from, size_t n)
{
    uint32_t *out = to;
    const uint32_t *in = from;
    for (size_t i = 0; i < n / sizeof *in; i++)
        __atomic_store_n(&out[i], __atomic_load_n(&in[i], __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

/* Each struct begins with its version. */
static bool copy_out(void *to, const void *from, size_t n)
{
    const _Atomic uint32_t *version = from;
    for (int i = 0; i < TRIES; i++) {
        uint32_t before = atomic_load_explicit(version, memory_order_acquire);
        if (before % 2 != 0)
            continue;
        copy_words(to, from, n);
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(version, memory_order_relaxed) == before)
            return true;
    }
    return false;
}

/* A writer that was killed in between left an odd version: it remains odd while the next one writes. */
static void copy_in(void *to, const void *from, size_t n)
{
    _Atomic uint32_t *version = to;
    uint32_t odd = atomic_load_explicit(version, memory_order_relaxed) | 1;
    atomic_store_explicit(version, odd, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    copy_words((uint32_t *)to + 1, (const uint32_t *)from + 1, n - sizeof *version);
    atomic_store_explicit(version, odd + 1, memory_order_release);
}

bool feed_plan_get(const struct feed *feed, unsigned i, struct feed_plan *copy)
{
    return copy_out(copy, &feed->plan[i % FEED_PLANS], sizeof *copy);
}

void feed_plan_put(struct feed *feed, unsigned i, const struct feed_plan *plan)
{
    copy_in(&feed->plan[i % FEED_PLANS], plan, sizeof *plan);
}

bool feed_report_get(const struct feed *feed, unsigned i, struct feed_report *copy)
{
    return copy_out(copy, &feed->report[i % FEED_REPORTS], sizeof *copy);
}

void feed_report_put(struct feed *feed, unsigned i, const struct feed_report *report)
{
    copy_in(&feed->report[i % FEED_REPORTS], report, sizeof *report);
}

void feed_note_add(struct feed *feed, const struct feed_answer *answer)
{
    uint64_t turn = atomic_fetch_add_explicit(&feed->notes, 1, memory_order_relaxed) + 1;
    struct feed_note *note = &feed->note[turn % FEED_NOTES];
    atomic_store_explicit(&note->turn, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&note->what, (uint64_t)answer->file << 32 | answer->bytes, memory_order_relaxed);
    atomic_store_explicit(&note->how, answer->waited << 8 | (uint64_t)answer->fed << 7 | (answer->place & 0x7f),
                          memory_order_relaxed);
    atomic_store_explicit(&note->turn, turn, memory_order_release);
}

bool feed_note_take(const struct feed *feed, uint64_t *taken, struct feed_answer *answer, uint64_t *lost)
{
    uint64_t written = atomic_load_explicit(&feed->notes, memory_order_acquire);
    if (*taken > written) /* an invalid value: start at the current position */
        *taken = written;
    if (written - *taken > FEED_NOTES) {
        *lost += written - FEED_NOTES - *taken;
        *taken = written - FEED_NOTES;
    }
    while (*taken < written) {
        const struct feed_note *note = &feed->note[(*taken + 1) % FEED_NOTES];
        uint64_t turn = atomic_load_explicit(&note->turn, memory_order_acquire);
        uint64_t what = atomic_load_explicit(&note->what, memory_order_relaxed);
        uint64_t how = atomic_load_explicit(&note->how, memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        if (turn == *taken + 1 && atomic_load_explicit(&note->turn, memory_order_relaxed) == turn) {
            *answer = (struct feed_answer){.file = (uint32_t)(what >> 32),
                                           .bytes = (uint32_t)what,
                                           .waited = how >> 8,
                                           .place = how & 0x7f,
                                           .fed = how >> 7 & 1};
            ++*taken;
            return true;
        }
        /* its writer is between two stores, or was killed there: the following notes show which */
        if (turn <= *taken && written - *taken < FEED_NOTES / 2)
            return false;
        ++*taken, ++*lost;
    }
    return false;
}
