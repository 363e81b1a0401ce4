/* The window against loaders that read forward, in several workers, jump, go backwards, stop, read again or read
 * another order altogether. */
#include "fs/feed/window.h"

#include "tests/lib/tap.h"

#include <stdlib.h>

enum { COUNT = 20000, ROOM = 1000, BLIND = 7 };

static bool blind; /* only each BLIND-th file is seen */

static uint64_t bytes_of(void *user, uint32_t file)
{
    (void)user;
    return 1 + file % 2;
}

static bool sees(void *user, uint32_t file)
{
    (void)user;
    return !blind || file % BLIND == 0;
}

static const struct window_files files = {bytes_of, sees, NULL};

struct scene {
    struct window w;
    uint32_t file[COUNT];
    uint32_t taken, wasted; /* positions that were fed; of these, after they had been read */
};

static struct scene *scene_begin(uint32_t count, uint64_t room)
{
    struct scene *s = calloc(1, sizeof *s);
    if (!s)
        bail_out("out of memory");
    for (uint32_t i = 0; i < COUNT; i++)
        s->file[i] = i;
    if (window_init(&s->w, &files, s->file, count))
        bail_out("out of memory");
    s->w.room = room;
    return s;
}

static void scene_end(struct scene *s)
{
    window_fini(&s->w);
    free(s);
}

/* All that there is room for. */
static uint32_t pour_out(struct scene *s)
{
    uint32_t position, n = 0;
    for (; window_take(&s->w, &position); n++)
        s->wasted += window_is_read(&s->w, position);
    s->taken += n;
    return n;
}

static void read_one(struct scene *s, uint32_t position)
{
    enum window_rate rate = window_rate(&s->w, position);
    if (blind && !sees(NULL, s->file[position]))
        return;
    if (rate == WINDOW_NEAR || rate == WINDOW_AHEAD)
        window_read(&s->w, position);
    else if (rate == WINDOW_STRAY)
        window_stray(&s->w, position);
}

/* What is counted as ahead is what is fed and unread from `base` on. */
static uint64_t recount(const struct window *w)
{
    uint64_t ahead = 0;
    const uint64_t *fed = w->marks + w->count / 64 + 1;
    for (uint32_t p = w->base; p < w->count; p++)
        if (fed[p / 64] >> p % 64 & 1 && !window_is_read(w, p))
            ahead += bytes_of(NULL, w->file[p]);
    return ahead;
}

static void check_sums(const struct scene *s, const char *what)
{
    const struct window *w = &s->w;
    ok(w->base <= w->reached && w->reached <= w->fed && w->fed <= w->count, "%s: base, reached and fed in order", what);
    is_uint(w->ahead, recount(w), "%s: what is ahead is counted right", what);
}

static void test_forward(void)
{
    struct scene *s = scene_begin(COUNT, ROOM);
    ok(pour_out(s) > 0, "the first window is fed before anything is read");
    ok(s->w.ahead >= ROOM && s->w.ahead <= ROOM + 2, "and is as large as its room");
    is_uint(pour_out(s), 0, "a loader that stands still gets no more");
    for (uint32_t p = 0; p < COUNT; p++) {
        read_one(s, p);
        pour_out(s);
    }
    is_uint(s->taken, COUNT, "forward: each sample is fed once");
    is_uint(s->w.late, 0, "none is late");
    is_uint(s->w.read, COUNT, "all are read");
    is_uint(s->w.ahead, 0, "nothing is ahead at the end");
    scene_end(s);
}

/* Four workers, each of them reading every fourth batch of 32. */
static void test_workers(void)
{
    enum { WORKERS = 4, BATCH = 32 };
    struct scene *s = scene_begin(COUNT, ROOM);
    uint32_t at[WORKERS];
    pour_out(s);
    for (uint32_t i = 0; i < WORKERS; i++)
        at[i] = i * BATCH;
    srandom(1);
    for (uint32_t left = COUNT; left > 0;) {
        uint32_t w = (uint32_t)random() % WORKERS;
        if (at[w] >= COUNT)
            continue;
        read_one(s, at[w]++);
        left--;
        if (at[w] % BATCH == 0)
            at[w] += (WORKERS - 1) * BATCH;
        pour_out(s);
    }
    ok(s->w.late < COUNT / 100, "several workers: %u of %u are late", s->w.late, COUNT);
    is_uint(s->w.read, COUNT, "and all are read");
    check_sums(s, "several workers");
    scene_end(s);
}

static void test_jump(void)
{
    struct scene *s = scene_begin(COUNT, ROOM);
    pour_out(s);
    for (uint32_t p = 0; p < 100; p++)
        read_one(s, p);
    for (uint32_t p = 15000; p < 15010; p++)
        read_one(s, p);
    pour_out(s);
    ok(s->w.reached > 15000 && s->w.fed > s->w.reached, "a loader that jumps forward is followed");
    for (uint32_t p = 15010; p < 16000; p++) {
        read_one(s, p);
        pour_out(s);
    }
    ok(s->w.late < 20 && s->w.ahead > ROOM / 2, "and is soon fed as before");
    check_sums(s, "jump forward");
    for (uint32_t p = 5000; p < 5100; p++) {
        read_one(s, p);
        pour_out(s);
    }
    ok(s->w.reached == 5100 && s->w.fed > 5100, "back, too");
    check_sums(s, "jump back");
    scene_end(s);
}

static void test_stray(void)
{
    struct scene *s = scene_begin(COUNT, ROOM);
    pour_out(s);
    for (uint32_t p = 0; p < 5000; p++) {
        read_one(s, p);
        if (p % 10 == 0)
            read_one(s, (p * 7919u) % COUNT);
        pour_out(s);
    }
    ok(s->w.reached >= 5000 && s->w.reached < 6100, "reads elsewhere in the list move nothing");
    scene_end(s);
}

static void test_backwards(void)
{
    struct scene *s = scene_begin(COUNT, ROOM);
    pour_out(s);
    for (uint32_t p = COUNT; p-- > 0;) {
        read_one(s, p);
        pour_out(s);
    }
    is_uint(s->w.read, COUNT, "backwards: all are read");
    ok(s->taken < COUNT / 4, "little is fed in vain: %u", s->taken);
    is_uint(s->wasted, 0, "and nothing that has been read");
    check_sums(s, "backwards");
    scene_end(s);
}

static void test_another_order(void)
{
    struct scene *s = scene_begin(COUNT, ROOM);
    pour_out(s);
    srandom(2);
    for (uint32_t i = 0; i < COUNT; i++) {
        read_one(s, (uint32_t)random() % COUNT);
        pour_out(s);
    }
    ok(s->taken < COUNT / 4, "another order: soon nothing is fed for it: %u of %u", s->taken, COUNT);
    check_sums(s, "another order");
    scene_end(s);
}

static void test_again(void)
{
    struct scene *s = scene_begin(COUNT, ROOM);
    for (int pass = 0; pass < 3; pass++)
        for (uint32_t p = 0; p < COUNT; p++) {
            pour_out(s);
            read_one(s, p);
        }
    ok(s->taken > 2 * COUNT, "who reads the list again is fed again: %u", s->taken);
    is_uint(s->w.read, COUNT, "each position counts once");
    check_sums(s, "again");
    scene_end(s);
}

/* Several reads of each file, by several readers in turn. */
static void test_pieces(void)
{
    struct scene *s = scene_begin(COUNT, ROOM);
    for (uint32_t p = 0; p + 8 <= COUNT; p += 8)
        for (int piece = 0; piece < 4; piece++)
            for (uint32_t i = 0; i < 8; i++) {
                pour_out(s);
                read_one(s, p + i);
            }
    is_uint(s->w.again, 0, "a file that is read in pieces is read once");
    is_uint(s->taken, COUNT, "and fed once");
    scene_end(s);
}

static void test_blind(void)
{
    blind = true;
    struct scene *s = scene_begin(COUNT, ROOM);
    for (uint32_t p = 0; p < COUNT; p++) {
        pour_out(s);
        read_one(s, p);
    }
    ok(s->taken >= COUNT - 2 * BLIND, "where few directories are watched all is fed: %u", s->taken);
    check_sums(s, "few are seen");
    scene_end(s);
    blind = false;
}

static void test_holes(void)
{
    struct scene *s = scene_begin(COUNT, ROOM);
    for (uint32_t p = 0; p < COUNT; p++) {
        pour_out(s);
        if (p % 3)
            read_one(s, p);
    }
    ok(s->w.reached > COUNT - 3 && s->taken >= COUNT - 3, "a loader that leaves samples out is fed to the end");
    check_sums(s, "holes");
    scene_end(s);
}

static void test_small(void)
{
    for (uint32_t count = 0; count <= 10; count++) {
        struct scene *s = scene_begin(count, ROOM);
        is_uint(pour_out(s), count, "%u samples: all are fed", count);
        for (int pass = 0; pass < 3; pass++)
            for (uint32_t p = 0; p < count; p++)
                read_one(s, p);
        is_uint(s->w.read, count, "%u samples: all are read", count);
        check_sums(s, "small");
        scene_end(s);
    }
}

static void test_leave(void)
{
    struct scene *s = scene_begin(COUNT, ROOM);
    pour_out(s);
    window_leave(&s->w);
    is_uint(s->w.ahead, 0, "what is left is not ahead");
    is_uint(pour_out(s), 0, "nor fed");
    window_restart(&s->w);
    s->w.room = ROOM;
    ok(pour_out(s) > 0, "until it begins again");
    scene_end(s);
}

static bool sees_none(void *user, uint32_t file)
{
    (void)user, (void)file;
    return false;
}

/* Records: nothing is seen, their loader says how many it has read. */
static void test_told(void)
{
    static const struct window_files unseen = {bytes_of, sees_none, NULL};
    struct scene *s = scene_begin(COUNT, ROOM);
    s->w.files = &unseen;
    uint32_t first = pour_out(s);
    window_told(&s->w, 100);
    is_uint(s->w.reached, 100, "as far as it says");
    is_uint(s->w.ahead, recount(&s->w), "what it has read is not ahead");
    ok(pour_out(s) > 0 && s->w.fed > first, "and leaves room for what comes next");
    window_told(&s->w, 5000);
    is_uint(s->w.late, 5000 - s->taken, "what it overtook was late");
    window_told(&s->w, 10);
    is_uint(s->w.read, 10, "it may go back");
    is_uint(s->w.ahead, 0, "and nothing is ahead");
    pour_out(s);
    ok(s->w.fed > 10 && s->w.fed <= 10 + ROOM, "until it is fed again");
    window_told(&s->w, UINT32_MAX);
    is_uint(s->w.reached, COUNT, "no further than the end");
    is_uint(s->w.read + s->w.ahead, COUNT, "where all is read");
    is_uint(pour_out(s), 0, "and nothing is left to be fed");
    scene_end(s);
}

int main(void)
{
    test_forward();
    test_workers();
    test_jump();
    test_stray();
    test_backwards();
    test_another_order();
    test_again();
    test_pieces();
    test_blind();
    test_holes();
    test_small();
    test_leave();
    test_told();
    return done_testing();
}
