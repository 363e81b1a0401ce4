/* What nodes that resize together tell each other: the conversation with a courier, which is the test here, and the
 * parts that nodes get. */
#include "fs/resize/partners.h"
#include "fs/wire/message.h"
#include "tests/fs/catalog/source.h"

#include <pthread.h>
#include <sys/socket.h>

enum { FILES = 8 };

static const struct derived_terms terms = {.side = 256, .quality = 90, .library = "a library"};
static const uint64_t whole = UINT64_C(1) << 32;

/* --- parts --- */

static void test_parts(const char *what, const struct resizing_knows *nodes, uint32_t count, const uint32_t *percent)
{
    uint64_t at = 0;
    bool right = true;
    for (uint32_t i = 0; i < count; i++) {
        struct resizing_part part = resizing_part_of(nodes, count, i);
        uint64_t share = (part.to - part.from) * 100 / whole;
        right &= part.from == at && part.to >= part.from && share <= percent[i] && share + 1 >= percent[i];
        at = part.to;
    }
    ok(right && at == whole, "parts: %s", what);
}

static void test_all_parts(void)
{
    struct resizing_knows nodes[4] = {{.bytes = 1000, .room = 5000}, {.room = 5000}, {.room = 5000}, {.room = 5000}};
    test_parts("rooms for all", nodes, 4, (const uint32_t[]){25, 25, 25, 25});
    test_parts("one node", nodes, 1, (const uint32_t[]){100});
    nodes[3].room = 300;
    test_parts("room for its part", nodes, 4, (const uint32_t[]){25, 25, 25, 25});
    nodes[3].room = 100;
    test_parts("room for less", nodes, 4, (const uint32_t[]){30, 30, 30, 10});
    nodes[3].room = 0;
    test_parts("none", nodes, 4, (const uint32_t[]){34, 34, 34, 0});
    nodes[0].room = nodes[1].room = 10;
    nodes[2].room = 20;
    test_parts("far too little", nodes, 4, (const uint32_t[]){25, 25, 50, 0});
    nodes[0].room = nodes[1].room = nodes[2].room = 0;
    test_parts("nowhere any", nodes, 4, (const uint32_t[]){25, 25, 25, 25});
    for (int i = 0; i < 4; i++)
        nodes[i] = (struct resizing_knows){.bytes = UINT64_MAX, .room = UINT64_MAX};
    test_parts("huge ones", nodes, 4, (const uint32_t[]){25, 25, 25, 25});
    nodes[0].bytes = 0;
    test_parts("of nothing", nodes, 4, (const uint32_t[]){25, 25, 25, 25});

    uint32_t count[3] = {0}, twice = 0;
    for (uint32_t place = 0; place < 3000; place++) {
        uint32_t in = 0;
        nodes[0] = nodes[1];
        for (uint32_t i = 0; i < 3; i++) {
            struct resizing_part part = resizing_part_of(nodes, 3, i);
            bool is = resizing_is_in(&part, place);
            count[i] += is;
            in += is;
        }
        twice += in != 1;
    }
    is_uint(twice, 0, "every place is in one part");
    for (uint32_t i = 0; i < 3; i++)
        ok(count[i] > 980 && count[i] < 1020, "part %u has a third of them: %u", i, count[i]);
}

/* --- records --- */

static struct derived *create(void)
{
    CLEANUP_CLOSE int fd = open(test_path("catalog"), O_RDONLY);
    struct derived *d = NULL;
    if (derived_create(fd, &terms, &d))
        bail_out("no catalog");
    return d;
}

static void make(struct derived *d, uint32_t file, uint64_t hash)
{
    d->record[file].hash = hash;
    d->record[file].size = 10;
    d->record[file].outcome = DERIVED_MADE;
}

static struct resizing_record record_of(const struct derived *d, uint32_t file)
{
    struct resizing_record r = {.file = file};
    memcpy(r.word, &d->record[file], sizeof r.word);
    return r;
}

/* The resizer, in a thread of its own; the test is its courier. */
struct talk {
    struct derived *derived;
    uint32_t file[FILES], files; /* begin: 0 files */
    bool end;
    struct resizing_part part;
    int theirs, ours, result;
    pthread_t thread;
};

static void *talk_body(void *user)
{
    struct talk *t = user;
    t->result = t->end ? partners_end(t->theirs, t->derived, t->file, t->files)
                       : partners_begin(t->theirs, t->derived, 99, &t->part);
    return NULL;
}

static void talk_begin(struct talk *t)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        bail_out("socketpair");
    t->ours = ends[0];
    t->theirs = ends[1];
    if (pthread_create(&t->thread, NULL, talk_body, t))
        bail_out("pthread_create");
}

static int talk_over(struct talk *t)
{
    close(t->ours);
    pthread_join(t->thread, NULL);
    close(t->theirs);
    return t->result;
}

static void say(const struct talk *t, enum resizing_kind kind, const void *payload, size_t n)
{
    if (message_send(t->ours, (enum message_kind)kind, payload, n, NULL))
        diag("it does not listen");
}

static void *hear(const struct talk *t, enum resizing_kind wanted, size_t *n)
{
    void *payload = NULL;
    uint32_t kind = 0;
    if (message_receive(t->ours, &kind, &payload, n, NULL))
        bail_out("it says nothing");
    is_uint(kind, wanted, "it says %d", wanted);
    return payload;
}

static void test_begin(void)
{
    struct talk t = {.derived = create()};
    struct derived *other = create();
    struct resizing_part part = {3, 4};
    size_t n;
    make(t.derived, 1, 11);
    make(t.derived, 2, 12);
    make(other, 2, 22);
    make(other, 5, 25);
    talk_begin(&t);
    struct resizing_knows *knows = hear(&t, RESIZING_KNOWS, &n);
    is_uint(n, sizeof *knows, "what it knows");
    ok(knows->known == 2 && knows->room == 99 && knows->side == 256 && strcmp(knows->library, "a library") == 0,
       "is so much, by these terms");
    free(knows);
    say(&t, RESIZING_SHARE, NULL, 0);
    struct resizing_record *mine = hear(&t, RESIZING_RECORDS, &n);
    ok(n == 2 * sizeof *mine && mine[0].file == 1 && mine[1].file == 2, "its records");
    const struct resizing_record others[] = {record_of(other, 2), record_of(other, 5)};
    say(&t, RESIZING_RECORDS, others, sizeof others);
    say(&t, RESIZING_RECORDS, mine, n);
    say(&t, RESIZING_BEGIN, &part, sizeof part);
    free(mine);
    is_int(talk_over(&t), 0, "then it begins");
    is_uint(t.part.to, 4, "with its part");
    ok(t.derived->record[1].hash == 11 && t.derived->record[5].hash == 25, "it knows what both knew");
    is_uint(t.derived->record[2].hash, 22, "of two that contradict each other, what was told first");
    is_uint(t.derived->record[0].outcome, DERIVED_UNKNOWN, "and of nobody's, nothing");

    talk_begin(&t);
    free(hear(&t, RESIZING_KNOWS, &n));
    say(&t, RESIZING_BEGIN, &part, sizeof part);
    is_int(talk_over(&t), 0, "where all know the same, nothing is told");
    is_uint(t.derived->record[5].hash, 25, "and nothing forgotten");
    derived_close(t.derived);
    derived_close(other);
}

static void test_end(void)
{
    struct talk t = {.derived = create(), .end = true, .file = {0, 3}, .files = 2};
    struct derived *other = create();
    size_t n;
    make(t.derived, 0, 10);
    make(t.derived, 3, 13);
    make(t.derived, 7, 17);
    make(other, 3, 23);
    make(other, 7, 27);
    talk_begin(&t);
    say(&t, RESIZING_SHARE, NULL, 0);
    struct resizing_record *mine = hear(&t, RESIZING_RECORDS, &n);
    is_uint(n, 2 * sizeof *mine, "what was made here is told, and no more");
    const struct resizing_record others[] = {record_of(other, 3), record_of(other, 7)};
    say(&t, RESIZING_RECORDS, others, sizeof others);
    say(&t, RESIZING_RECORDS, mine, n);
    say(&t, RESIZING_END, NULL, 0);
    free(mine);
    is_int(talk_over(&t), 0, "the end");
    ok(t.derived->record[0].hash == 10 && t.derived->record[3].hash == 23, "what the first has made counts");
    is_uint(t.derived->record[7].hash, 17, "what was known before stays");

    talk_begin(&t);
    say(&t, RESIZING_RECORDS, others, sizeof others[0]);
    is_int(talk_over(&t), -ECONNRESET, "a courier that goes before the end");
    ok(t.derived->record[0].hash == 10 && t.derived->record[3].outcome == DERIVED_MADE, "costs nothing of ours");
    derived_close(t.derived);
    derived_close(other);
}

/* Each of these records is refused, with all that come with it. */
static void test_refused(void)
{
    struct talk t = {.derived = create(), .end = true};
    struct derived *other = create();
    size_t n;
    make(other, 1, 1);
    make(other, 2, 2);
    const struct {
        const char *what;
        uint32_t file, zero, outcome, cut;
        uint64_t key;
    } wrong[] = {
        {"of a file that is not there", FILES, 0, DERIVED_MADE, 0, 0},
        {"with something where nothing is to be", 1, 1, DERIVED_MADE, 0, 0},
        {"of something unknown", 1, 0, DERIVED_UNKNOWN, 0, 0},
        {"of an outcome that there is not", 1, 0, 1000, 0, 0},
        {"of another version of the file", 1, 0, DERIVED_MADE, 0, 1},
        {"that is cut", 1, 0, DERIVED_MADE, 1, 0},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct resizing_record records[] = {record_of(other, 2), record_of(other, 1)};
        struct derived_record record = other->record[1];
        record.outcome = wrong[i].outcome;
        record.key += wrong[i].key;
        memcpy(records[1].word, &record, sizeof record);
        records[1].file = wrong[i].file;
        records[1].zero = wrong[i].zero;
        talk_begin(&t);
        say(&t, RESIZING_RECORDS, records, sizeof records - wrong[i].cut);
        is_int(talk_over(&t), -EBADMSG, "a record %s", wrong[i].what);
        is_uint(t.derived->record[2].outcome, DERIVED_UNKNOWN, "and nothing is taken");
    }
    talk_begin(&t);
    say(&t, RESIZING_BEGIN, NULL, 0);
    is_int(talk_over(&t), -EBADMSG, "what was not asked for");
    t.end = false;
    talk_begin(&t);
    free(hear(&t, RESIZING_KNOWS, &n));
    say(&t, RESIZING_BEGIN, &t, 1);
    is_int(talk_over(&t), -EBADMSG, "half a part");
    derived_close(t.derived);
    derived_close(other);
}

static void test_left(void)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        bail_out("socketpair");
    ok(!partners_left(ends[1]), "a courier that is there");
    close(ends[0]);
    ok(partners_left(ends[1]), "one that has gone");
    is_int(partners_tell(ends[1], &(struct resizing_progress){0}, true), -ECONNRESET, "is not told anything");
    close(ends[1]);
}

int main(void)
{
    source_add_many(test_path("source"), FILES, 1000);
    catalog_close(source_catalog(test_path("source"), test_path("catalog")));
    test_all_parts();
    test_begin();
    test_end();
    test_refused();
    test_left();
    return done_testing();
}
