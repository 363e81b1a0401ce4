/* What the courier reads of a real shard's RAM tier: right values, nothing else, while the shard changes. */
#include "mpi/tier-view.h"

#include "fs/base/file.h"
#include "fs/base/thread.h"
#include "tests/fs/store/filling.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)
enum { SMALL = 100 << 10, FILES = 200, BUFFERS = 64, FED_BUFFERS = 48, LAST = FILES - 1 };

struct seen {
    struct filling f;
    struct shard *shard;
    struct tier_view *view;
    int file; /* the last one that the shard shared */
};

static void close_both(int fd[SHARE_FDS])
{
    for (int i = 0; i < SHARE_FDS; i++)
        if (fd[i] >= 0)
            close(fd[i]);
}

static void seen_begin(struct seen *s)
{
    struct message_shared m;
    int fd[SHARE_FDS];
    filling_begin(&s->f);
    filling_add_many(&s->f, "a", FILES, SMALL);
    filling_add(&s->f, "large", 10 * MIB);
    filling_add(&s->f, "text", 3 * MIB);
    filling_add_many(&s->f, "z", 3, 2 * VALUE_BYTES + 5);
    filling_scan(&s->f);
    s->shard = filling_open_tier(&s->f, TIER_RAM, filling_ram(), 128 * MIB);
    s->file = -1;
    if (tier_view_create(3, &s->view))
        bail_out("no memory");
    is_int(shard_share(s->shard, &m, fd), 0, "the map of a dataset of small files is shared");
    is_int(tier_view_open(s->view, &m, sizeof m, fd), 0, "the courier takes it");
    is_int(tier_view_open(s->view, &m, sizeof m, fd), -EBADMSG, "once");
    close_both(fd);
}

static void seen_end(struct seen *s)
{
    if (s->file >= 0)
        close(s->file);
    tier_view_destroy(s->view);
    shard_close(s->shard);
    filling_end(&s->f);
}

static uint32_t file_of(const struct seen *s, const char *name)
{
    return filling_file(&s->f, name);
}

static struct wire_message question(uint32_t file, uint32_t value, uint32_t count, uint32_t flags)
{
    return (struct wire_message){.kind = WIRE_FETCH, .file = file, .value = value, .count = count, .flags = flags};
}

/* Are these exactly the checked values of a question? */
static bool is_right(const struct seen *s, const void *bytes, size_t n, uint32_t file, uint32_t first, uint32_t count)
{
    struct payload_value value[RING_VALUES];
    if (payload_parse(bytes, n, &(struct value_run){file, first, count}, value))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t at = (uint64_t)(first + i) * VALUE_BYTES, size = filling_size(&s->f, file);
        size_t raw = size - at < VALUE_BYTES ? size - at : VALUE_BYTES;
        uint64_t seed = value_seed(catalog_file_seed(s->f.catalog, file), first + i);
        if (value_check(value[i].bytes, value[i].length, seed, raw))
            return false;
    }
    return true;
}

/* Pass on what the view asks for, as courier and server do: the result of tier_view_add, and whether a file came. */
static int pass_segment(struct seen *s, uint32_t number, bool *came)
{
    struct message_segment m;
    int fd[SHARE_FDS] = {-1, -1};
    *came = shard_share_segment(s->shard, number, &m, fd) == 0;
    if (!*came)
        m = (struct message_segment){.number = number};
    int copy = *came ? dup(fd[SHARE_FILE]) : -1, error = tier_view_add(s->view, &m, sizeof m, fd);
    close_both(fd);
    if (*came && s->file >= 0)
        close(s->file);
    s->file = *came ? copy : s->file;
    return error;
}

/* False: it asks for nothing, or got nothing. */
static bool bring_segment(struct seen *s)
{
    uint32_t number;
    bool came;
    if (!tier_view_wants(s->view, &number))
        return false;
    int error = pass_segment(s, number, &came);
    is_int(error, 0, "segment %u is asked for: the server has %s file of it", number, came ? "a" : "no");
    return came;
}

/* 1: a right answer; 0: the server must answer; -1: a wrong answer. */
static int answer(struct seen *s, const struct wire_message *q)
{
    void *bytes;
    size_t n = tier_view_answer(s->view, q, 0, &bytes);
    if (!n != !bytes)
        fail("bytes without a length, or a length without bytes");
    if (n && !payload_is_shared(bytes, n))
        fail("an answer that does not show who made it");
    int right = n == 0 ? 0 : is_right(s, bytes, n, q->file, q->value, q->count) ? 1 : -1;
    if (n)
        tier_view_give_back(s->view, bytes);
    return right;
}

static int ask(struct seen *s, const char *name, uint32_t value, uint32_t count, uint32_t flags)
{
    const struct wire_message q = question(file_of(s, name), value, count, flags);
    int got = answer(s, &q);
    if (!got && bring_segment(s))
        got = answer(s, &q);
    return got;
}

static void put_all(struct seen *s)
{
    is_int(filling_put_all(&s->f, s->shard), 0, "all files are cached");
    is_int(shard_flush(s->shard), 0, "and stored");
}

static void test_values(struct seen *s)
{
    is_int(ask(s, "a-000", 0, 1, 0), 0, "what is not cached");
    ok(!bring_segment(s), "no segment is wanted for it");
    is_int(filling_put_file(&s->f, s->shard, file_of(s, "a-000")), 0, "a file is cached");
    is_int(ask(s, "a-000", 0, 1, 0), 0, "what is cached but not stored");
    is_int(ask(s, "a-000", 0, 1, 0), 0, "its segment is not asked for again at once");
    is_int(shard_flush(s->shard), 0, "it is stored");
    while (!ask(s, "a-000", 0, 1, 0))
        usleep(1000);
    pass("then the courier answers");
    put_all(s);
    is_int(ask(s, "a-001", 0, 1, FETCH_FED), 1, "for the feeder");
    is_int(ask(s, "z-002", 0, 3, 0), 1, "all values of a file behind a large one");
    is_int(ask(s, "z-001", 1, 2, 0), 1, "its last two values");
    is_int(ask(s, "text", 0, 9, 0), 1, "nine compressed values");
    is_int(ask(s, "large", 70, 9, 0), 1, "nine values of a large file");
    is_int(ask(s, "a-001", 0, 1, FETCH_SHARED), 1, "for a node that does not ask the server");
    is_int(ask(s, "a-001", 0, 1, FETCH_SHARED | FETCH_FED), 1, "also for its feeder");
    is_int(ask(s, "a-002", 0, 1, FETCH_VERIFY), 0, "what must be verified");
    is_int(ask(s, "a-002", 0, 1, FETCH_BEFORE), 0, "questions of a move");
    is_int(ask(s, "a-002", 0, 1, FETCH_BLOB), 0, "another object");
    is_int(ask(s, "large", 70, 1, 3 << FETCH_HEAD), 0, "a part of a value");
}

static void test_bounds(struct seen *s)
{
    ok(ask(s, "large", 80, 1, 0) <= 0, "past the end of a large file there is none of its values");
    ok(ask(s, "a-000", 5, 1, 0) <= 0, "nor past the end of another one");
    const struct wire_message past = question(catalog_files(s->f.catalog), 0, 1, 0);
    is_int(answer(s, &past), 0, "a file that does not exist");
    const struct wire_message far = question(UINT32_MAX, UINT32_MAX - 9, 9, 0);
    is_int(answer(s, &far), 0, "numbers out of all bounds");
    const struct wire_message places = question(file_of(s, "a-000"), 70000, 1, 0);
    is_int(answer(s, &places), 0, "a place out of bounds");
}

static void test_many(struct seen *s)
{
    struct wire_message q = question(0, 0, 3, FETCH_MANY);
    const char *const name[] = {"a-003", "z-000", "a-150"};
    struct payload_part part[MANY_MOST];
    void *bytes = NULL;
    size_t n = 0;
    for (uint32_t i = 0; i < 3; i++)
        q.part[i] = (struct fetch_part){file_of(s, name[i]), i == 1 ? 2 : 0, 1, 0};
    for (int tries = 0; tries < 8 && !(n = tier_view_answer(s->view, &q, 0, &bytes)); tries++)
        bring_segment(s);
    is_int(payload_many_parse(bytes, n, 3, part), 0, "three parts in one answer");
    ok(payload_is_shared(bytes, n), "which shows that the courier made it");
    for (uint32_t i = 0; n && i < 3; i++)
        ok(is_right(s, part[i].bytes, part[i].length, q.part[i].file, q.part[i].value, 1), "part %u is right", i);
    if (n)
        tier_view_give_back(s->view, bytes);
    q.part[1].file = file_of(s, "a-199");
    q.part[1].value = 0;
    ok(shard_drop(s->shard, q.part[1].file, 0), "a part is dropped");
    is_int((int)tier_view_answer(s->view, &q, 0, &bytes), 0, "then the server must answer");
}

static void test_buffers(struct seen *s)
{
    const struct wire_message q = question(file_of(s, "a-004"), 0, 1, 0);
    const struct wire_message fed = question(file_of(s, "a-004"), 0, 1, FETCH_FED);
    void *bytes[BUFFERS + 1];
    int n = 0, all;
    while (n <= BUFFERS && tier_view_answer(s->view, &fed, 0, &bytes[n]))
        n++;
    is_int(n, FED_BUFFERS, "the feeder's answers use three quarters of the buffers");
    while (n <= BUFFERS && tier_view_answer(s->view, &q, 0, &bytes[n]))
        n++;
    is_int(n, BUFFERS, "readers' answers use all");
    for (all = n; n > 0; n--)
        tier_view_give_back(s->view, bytes[n - 1]);
    is_int(answer(s, &q), 1, "they are used again");
    ok(all == BUFFERS && answer(s, &fed) == 1, "also for the feeder");
    while (n <= BUFFERS && tier_view_answer(s->view, &q, (unsigned)n, &bytes[n]))
        n++;
    is_int(n, BUFFERS / 2, "one peer gets half of them");
    is_int(answer(s, &q), 1, "the next one is answered");
    while (n > 0)
        tier_view_give_back(s->view, bytes[--n]);
}

/* --- while the shard changes --- */

static uint64_t memory_of(int fd)
{
    struct stat st;
    return fstat(fd, &st) < 0 ? UINT64_MAX : (uint64_t)st.st_blocks * 512;
}

static void test_dropped(struct seen *s)
{
    char name[16];
    is_int(ask(s, "a-007", 0, 1, 0), 1, "a file is answered");
    int file = s->file, dropped = 0;
    s->file = -1;
    ok(memory_of(file) > 0, "the file of its segment has memory");
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "a-%03d", i);
        dropped += i != LAST && shard_drop(s->shard, file_of(s, name), 0);
    }
    ok(shard_drop(s->shard, file_of(s, "text"), 0), "most files are dropped");
    for (uint64_t at = 0; at < 10 * MIB; at += VALUE_BYTES)
        dropped += shard_drop(s->shard, file_of(s, "large"), at);
    is_int(dropped, FILES - 1 + 80, "with all values of the large one");
    is_int(ask(s, "a-007", 0, 1, 0), 0, "a dropped file is not answered");
    is_int(shard_reclaim(s->shard), 0, "their room is reclaimed");
    while (memory_of(file) && test_patience() > 1)
        usleep(5000);
    is_uint(memory_of(file), 0, "the memory of a dropped file is free although the courier has it open");
    close(file);
    is_int(ask(s, "z-000", 0, 3, 0), 1, "a file that has moved to another segment is answered from there");
}

/* A thread drops and caches files, and reclaims room, while this one asks. */
struct changing {
    struct seen *s;
    atomic_bool stop;
    atomic_int rounds;
};

static void *change_files(void *argument)
{
    struct changing *c = argument;
    struct value_codec_state *codec = value_codec_create(1);
    for (; !atomic_load(&c->stop); c->rounds++) {
        for (uint32_t file = (uint32_t)c->rounds % 3; file < FILES; file += 3) {
            shard_drop(c->s->shard, file, 0);
            filling_put(&c->s->f, c->s->shard, codec, file, 0, SMALL);
        }
        shard_flush(c->s->shard);
        shard_reclaim(c->s->shard);
    }
    value_codec_destroy(codec);
    return NULL;
}

static void test_changes(struct seen *s)
{
    struct changing c = {.s = s};
    pthread_t thread;
    int wrong = 0, right = 0, segments = 0;
    if (thread_create(&thread, "changes", change_files, &c))
        bail_out("no thread");
    for (uint32_t i = 0; (right < 20000 || c.rounds < 5) && (i % 65536 || test_patience() > 1); i++) {
        const struct wire_message q = question(i * 7 % FILES, 0, 1, 0);
        int got = answer(s, &q);
        right += got > 0;
        wrong += got < 0;
        uint32_t number;
        bool came;
        if (got || !tier_view_wants(s->view, &number))
            continue;
        wrong += pass_segment(s, number, &came) != 0;
        segments += came;
    }
    atomic_store(&c.stop, true);
    pthread_join(thread, NULL);
    ok(right >= 20000 && segments > 1 && c.rounds >= 5, "%d answers from %d segments in %d rounds of changes", right,
       segments, c.rounds);
    is_int(wrong, 0, "none of them is wrong");
}

/* --- lies --- */

static int open_lie(struct tier_view *view, struct message_shared m, size_t n, int map, int large)
{
    int fd[SHARE_FDS] = {map, large};
    return tier_view_open(view, &m, n, fd);
}

static void test_lies_about_map(struct seen *s, struct tier_view *view)
{
    struct message_shared m;
    int fd[SHARE_FDS];
    void *bytes;
    const struct wire_message q = question(file_of(s, "z-000"), 0, 1, 0);
    if (shard_share(s->shard, &m, fd))
        bail_out("nothing is shared");
    struct message_shared more_large = m, more_parts = m, too_many = m;
    more_large.large++;
    more_parts.pieces++;
    too_many.pieces = UINT64_MAX;
    is_int((int)tier_view_answer(view, &q, 0, &bytes), 0, "a view without a map answers nothing");
    is_int(open_lie(view, m, sizeof m, -1, fd[1]), -EBADMSG, "no descriptor of the map");
    is_int(open_lie(view, m, sizeof m, fd[0], -1), -EBADMSG, "none of the large files");
    is_int(open_lie(view, m, sizeof m - 1, fd[0], fd[1]), -EBADMSG, "a shorter message");
    is_int(open_lie(view, more_large, sizeof m, fd[0], fd[1]), -EBADMSG, "more large files than there are");
    is_int(open_lie(view, more_parts, sizeof m, fd[0], fd[1]), -EBADMSG, "more parts than the map has");
    is_int(open_lie(view, too_many, sizeof m, fd[0], fd[1]), -EBADMSG, "more parts than memory");
    is_int((int)tier_view_answer(view, &q, 0, &bytes), 0, "none of this is used");
    is_int(tier_view_open(view, &m, sizeof m, fd), 0, "the truth");
    close_both(fd);
}

static int add_lie(struct tier_view *view, struct message_segment m, size_t n, int file, int spots)
{
    int fd[SHARE_FDS] = {file, spots};
    return tier_view_add(view, &m, n, fd);
}

static void test_lies_about_segment(struct seen *s, struct tier_view *view)
{
    struct message_segment m;
    int fd[SHARE_FDS];
    void *bytes;
    uint32_t number = 0;
    const struct wire_message q = question(file_of(s, "z-000"), 0, 1, 0);
    is_int((int)tier_view_answer(view, &q, 0, &bytes), 0, "a question");
    ok(tier_view_wants(view, &number), "it wants a segment");
    ok(!tier_view_wants(view, &(uint32_t){0}), "one at a time");
    if (shard_share_segment(s->shard, number, &m, fd))
        bail_out("no segment %u", number);
    struct message_segment other = m, more = m;
    other.number++;
    is_int(add_lie(view, other, sizeof m, fd[0], fd[1]), -EBADMSG, "another segment");
    is_int(add_lie(view, m, sizeof m - 1, fd[0], fd[1]), -EBADMSG, "a shorter message");
    is_int(add_lie(view, m, sizeof m, -1, fd[1]), -EBADMSG, "places without a file");
    more.places++;
    is_int(add_lie(view, more, sizeof m, fd[0], fd[1]), -EBADMSG, "more places than there are");
    is_int((int)tier_view_answer(view, &q, 0, &bytes), 0, "the question again");
    while (!tier_view_wants(view, &number))
        usleep(1000);
    pass("it wants the segment again");
    const uint64_t past[] = {spot_make(1 << 30, VALUE_HEADER + 100)};
    m.places = 1;
    close(fd[1]);
    fd[1] = file_memory("spots", past, sizeof past);
    is_int(tier_view_add(view, &m, sizeof m, fd), 0, "values that are behind the end of the file");
    close_both(fd);
    is_int((int)tier_view_answer(view, &q, 0, &bytes), 0, "they are not read");
}

static void test_lies(struct seen *s)
{
    struct tier_view *view;
    void *bytes;
    const struct wire_message q = question(file_of(s, "z-000"), 0, 1, 0);
    if (tier_view_create(3, &view))
        bail_out("no memory");
    test_lies_about_map(s, view);
    test_lies_about_segment(s, view);
    is_int(add_lie(view, (struct message_segment){0}, sizeof(struct message_segment), -1, -1), -EBADMSG,
           "a segment that nobody asked for");
    tier_view_close(view);
    is_int((int)tier_view_answer(view, &q, 0, &bytes), 0, "a closed view answers nothing");
    tier_view_destroy(view);
    tier_view_destroy(NULL);
}

/* Few huge files: a shared map could cost more memory than the server may use per file. */
static void test_huge(void)
{
    struct filling f;
    struct message_shared m;
    int fd[SHARE_FDS];
    filling_begin(&f);
    filling_add(&f, "huge", UINT64_C(200) << 30);
    filling_scan(&f);
    struct shard *shard = filling_open_tier(&f, TIER_RAM, filling_ram(), 16 * MIB);
    is_int(shard_share(shard, &m, fd), -EOPNOTSUPP, "the map of one file of 200 GiB is private");
    shard_close(shard);
    filling_end(&f);
}

/* The last test: the limit stays. */
static void test_descriptors(struct seen *s)
{
    enum { NODES = 3, SPARE = 256 + 16 * NODES, ROOM = 2 };
    struct message_shared m;
    int fd[SHARE_FDS], other[SPARE], asked = 0, answered = 0, spare = 0;
    tier_view_destroy(s->view);
    int next = dup(0);
    const struct rlimit limit = {(rlim_t)(next + ROOM + SPARE), (rlim_t)(next + ROOM + SPARE)};
    close(next);
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0 || tier_view_create(NODES, &s->view))
        bail_out("no limit, or no memory");
    is_int(shard_share(s->shard, &m, fd), 0, "with few descriptors the map is shared");
    is_int(tier_view_open(s->view, &m, sizeof m, fd), 0, "and taken");
    close_both(fd);
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < FILES; i++) {
            const struct wire_message q = question(file_of(s, "a-000") + i, 0, 1, 0);
            answered += answer(s, &q) == 1;
            asked += bring_segment(s);
        }
    }
    ok(answered > 0 && answered < 2 * FILES, "some answers come from the view: %d", answered);
    ok(asked > 0 && asked <= ROOM + 1, "%d segments are asked for, and the last one may be refused", asked);
    while (spare < SPARE && (other[spare] = dup(0)) >= 0)
        spare++;
    ok(spare >= SPARE * 9 / 10, "others get %d of %d descriptors", spare, SPARE);
    while (spare > 0)
        close(other[--spare]);
}

int main(void)
{
    struct seen s;
    seen_begin(&s);
    test_values(&s);
    test_bounds(&s);
    test_buffers(&s);
    test_many(&s);
    test_lies(&s);
    test_dropped(&s);
    test_changes(&s);
    test_descriptors(&s);
    seen_end(&s);
    test_huge();
    return done_testing();
}
