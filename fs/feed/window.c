/* Implements the rules of the window. */
#include "fs/feed/window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    SPAN_LEAST = 32,
    SPAN_MOST = 1024,  /* maximum distance between workers of one loader */
    HOLES_MOST = 2048, /* positions behind the loader that may still be unread */
    JUMP_READS = 6,    /* reads of the last WINDOW_FARS that must be close together for a jump */
    STRAYS_MOST = 32,  /* with more stray than expected reads, the list is not being read in this order */
    TRUST_FIRST = 64,  /* after a jump */
    TRUST_GROWS = 8,
    WORD = 64,
};

static uint32_t words_of(const struct window *w)
{
    return w->count / WORD + 1;
}

static bool has_bit(const uint64_t *bits, uint32_t i)
{
    return bits[i / WORD] >> i % WORD & 1;
}

static void set_bit(uint64_t *bits, uint32_t i)
{
    bits[i / WORD] |= UINT64_C(1) << i % WORD;
}

static uint64_t *fed_bits(const struct window *w)
{
    return w->marks + words_of(w);
}

bool window_is_read(const struct window *w, uint32_t position)
{
    return has_bit(w->marks, position);
}

static bool was_fed(const struct window *w, uint32_t position)
{
    return has_bit(fed_bits(w), position);
}

static uint64_t bytes_at(const struct window *w, uint32_t position)
{
    return w->files->bytes(w->files->user, w->file[position]);
}

static uint32_t window_span(const struct window *w)
{
    uint32_t span = w->count / 16;
    return span < SPAN_LEAST ? SPAN_LEAST : span > SPAN_MOST ? SPAN_MOST : span;
}

int window_init(struct window *w, const struct window_files *files, const uint32_t *file, uint32_t count)
{
    *w = (struct window){.files = files, .file = file, .count = count, .trust = UINT32_MAX};
    w->marks = calloc(2ul * words_of(w), sizeof *w->marks);
    return w->marks ? 0 : -ENOMEM;
}

void window_fini(struct window *w)
{
    free(w->marks);
    w->marks = NULL;
}

void window_restart(struct window *w)
{
    uint64_t *marks = w->marks;
    memset(marks, 0, 2ul * words_of(w) * sizeof *marks);
    *w = (struct window){
        .files = w->files, .file = w->file, .count = w->count, .room = w->room, .trust = UINT32_MAX, .marks = marks};
}

void window_resume(struct window *w, uint32_t reached)
{
    w->base = w->reached = w->fed = reached < w->count ? reached : w->count;
}

void window_leave(struct window *w)
{
    memset(fed_bits(w), 0, words_of(w) * sizeof *w->marks);
    w->base = w->reached = w->fed = w->count;
    w->ahead = w->passed = 0;
}

/* --- what is ahead --- */

static bool counts_as_ahead(const struct window *w, uint32_t position)
{
    return position >= w->base && was_fed(w, position) && !window_is_read(w, position);
}

static void uncount(struct window *w, uint32_t position)
{
    uint64_t bytes = bytes_at(w, position);
    w->ahead -= bytes;
    if (position < w->reached)
        w->passed -= bytes;
}

static void move_base(struct window *w)
{
    while (w->base < w->reached &&
           (window_is_read(w, w->base) || w->passed > w->room / 4 || w->reached - w->base > HOLES_MOST)) {
        if (counts_as_ahead(w, w->base))
            uncount(w, w->base);
        w->base++;
    }
}

/* The loader has passed these positions. If reads of a file cannot be seen, it counts as read. */
static void reach(struct window *w, uint32_t to)
{
    for (; w->reached < to; w->reached++) {
        uint32_t p = w->reached;
        if (!counts_as_ahead(w, p))
            continue;
        if (w->files->visible(w->files->user, w->file[p])) {
            w->passed += bytes_at(w, p);
        } else {
            uncount(w, p);
            set_bit(w->marks, p);
        }
    }
    if (w->fed < w->reached)
        w->fed = w->reached; /* overtaken: files that are being read are no longer fed */
    move_base(w);
}

void window_told(struct window *w, uint32_t position)
{
    uint32_t to = position < w->count ? position : w->count;
    if (to < w->reached) {
        window_restart(w);
        window_resume(w, to);
    }
    for (uint32_t p = w->reached; p < to; p++)
        w->late += !was_fed(w, p);
    reach(w, to);
    w->read = to;
}

/* --- reads --- */

static bool is_recent(const struct window *w, uint32_t position)
{
    uint32_t n = w->count / 4 < WINDOW_RECENT ? w->count / 4 : WINDOW_RECENT;
    n = n < w->recents ? n : w->recents;
    for (uint32_t i = 1; i <= n; i++)
        if (w->recent[(w->recents - i) % WINDOW_RECENT] == position)
            return true;
    return false;
}

static bool is_close(const struct window *w, uint32_t position)
{
    uint32_t span = window_span(w);
    return position + (uint64_t)span >= w->base && position < w->fed + (uint64_t)span;
}

enum window_rate window_rate(const struct window *w, uint32_t position)
{
    if (is_recent(w, position))
        return WINDOW_RECENTLY;
    if (window_is_read(w, position) || !is_close(w, position))
        return WINDOW_STRAY;
    return was_fed(w, position) ? WINDOW_AHEAD : WINDOW_NEAR;
}

static void note_read(struct window *w, uint32_t position)
{
    if (counts_as_ahead(w, position))
        uncount(w, position);
    w->late += !was_fed(w, position);
    w->read++;
    set_bit(w->marks, position);
    w->recent[w->recents++ % WINDOW_RECENT] = position;
}

void window_read(struct window *w, uint32_t position)
{
    note_read(w, position);
    w->fars = 0;
    w->strays -= w->strays > 0;
    if (w->strays <= STRAYS_MOST / 2 && w->trust < UINT32_MAX - TRUST_GROWS)
        w->trust += TRUST_GROWS;
    if (position >= w->reached)
        reach(w, position + 1);
    else
        move_base(w);
}

/* May this read be a sign of a jump? Repeated reads close behind the loader are not: some files take several reads. */
static bool tells_of_jump(const struct window *w, uint32_t position)
{
    return !window_is_read(w, position) || position + (uint64_t)window_span(w) < w->reached || w->reached == w->count;
}

static bool find_jump(const struct window *w, uint32_t position, uint32_t *first, uint32_t *last)
{
    uint32_t span = window_span(w), close = 0;
    *first = *last = position;
    for (uint32_t i = 0; i < WINDOW_FARS && i < w->fars; i++) {
        uint32_t p = w->far[i];
        if (p + (uint64_t)span < position || p > position + (uint64_t)span)
            continue;
        close++;
        *first = p < *first ? p : *first;
        *last = p > *last ? p : *last;
    }
    return close >= JUMP_READS;
}

/* If most of the jump's reads were of positions marked as read, the list is read again: unmark everything from
 * `first` on. */
static void forget_reads(struct window *w, uint32_t first, uint32_t last)
{
    uint32_t known = 0;
    for (uint32_t p = first; p <= last; p++)
        known += window_is_read(w, p);
    if (known <= (last - first) / 2)
        return;
    for (uint32_t p = first; p < w->count; p++)
        if (window_is_read(w, p)) {
            w->marks[p / WORD] &= ~(UINT64_C(1) << p % WORD);
            w->read--;
        }
}

static void jump(struct window *w, uint32_t first, uint32_t last)
{
    uint32_t far[WINDOW_FARS];
    memcpy(far, w->far, sizeof far);
    forget_reads(w, first, last);
    memset(fed_bits(w), 0, words_of(w) * sizeof *w->marks);
    w->ahead = w->passed = 0;
    w->base = first;
    w->reached = w->fed = last + 1;
    w->fars = 0;
    w->strays = STRAYS_MOST / 2;
    w->trust = TRUST_FIRST;
    for (int i = 0; i < WINDOW_FARS; i++)
        if (far[i] >= first && far[i] <= last && !window_is_read(w, far[i]))
            note_read(w, far[i]);
    move_base(w);
}

bool window_stray(struct window *w, uint32_t position)
{
    uint32_t first, last;
    bool again = window_is_read(w, position);
    w->again += again;
    if (!tells_of_jump(w, position))
        return false;
    if (w->strays < 2 * STRAYS_MOST)
        w->strays++;
    if (w->strays > STRAYS_MOST)
        w->trust = 0;
    w->far[w->fars++ % WINDOW_FARS] = position;
    if (!find_jump(w, position, &first, &last))
        return false;
    jump(w, first, last);
    return true;
}

/* --- feeding --- */

static void skip_read(struct window *w)
{
    while (w->fed < w->count && window_is_read(w, w->fed))
        if (w->fed % WORD == 0 && w->marks[w->fed / WORD] == UINT64_MAX)
            w->fed += WORD;
        else
            w->fed++;
    if (w->fed > w->count)
        w->fed = w->count;
}

bool window_take(struct window *w, uint32_t *position)
{
    skip_read(w);
    if (w->fed >= w->count || w->ahead >= w->room || w->fed - w->reached >= w->trust)
        return false;
    *position = w->fed++;
    set_bit(fed_bits(w), *position);
    w->ahead += bytes_at(w, *position);
    return true;
}
