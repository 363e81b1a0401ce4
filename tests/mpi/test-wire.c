/* Messages between couriers: what is made is understood, and nothing that was altered anywhere is taken for another. */
#include "mpi/wire.h"

#include "mpi/spoil.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <string.h>

static const uint32_t kinds[] = {WIRE_FETCH, WIRE_WAIT,  WIRE_GONE,     WIRE_COMMAND, WIRE_NEWS, WIRE_QUIT, WIRE_TURN,
                                 WIRE_BEGIN, WIRE_READY, WIRE_COMPUTED, WIRE_SETTLED, WIRE_PING, WIRE_PONG};
enum { KINDS = sizeof kinds / sizeof *kinds };

static struct wire_message example(uint32_t kind)
{
    struct wire_message m = {.magic = WIRE_MAGIC, .kind = kind};
    if (kind == WIRE_FETCH || kind == WIRE_WAIT)
        m.tag = TAG_ANSWER + 5;
    if (kind == WIRE_FETCH) {
        m.file = UINT32_MAX;
        m.value = 17;
        m.count = RING_VALUES;
        m.flags = FETCH_BEFORE;
    }
    if (kind == WIRE_COMMAND) {
        m.command = WORLD_STAGE;
        m.token = UINT64_MAX;
    }
    if (kind >= WIRE_BEGIN && kind <= WIRE_COMPUTED)
        m.token = 12;
    if (kind == WIRE_TURN || kind == WIRE_BEGIN || kind == WIRE_SETTLED)
        m.turn = (struct turn){TURN_EXCHANGE, TURN_WHOLE / 10, UINT64_MAX, UINT64_MAX};
    if (kind == WIRE_TURN || kind == WIRE_BEGIN || kind == WIRE_SETTLED)
        m.k = UINT64_MAX;
    if (kind == WIRE_SETTLED) {
        m.status = -ENOMEM;
        m.token = 3;
    }
    if (kind == WIRE_READY)
        m.room = UINT64_MAX;
    if (kind == WIRE_COMPUTED)
        m.status = -EIO;
    if (kind == WIRE_COMPUTED || kind == WIRE_SETTLED)
        memset(&m.layout, 0x21, sizeof m.layout);
    if (kind == WIRE_NEWS)
        memset(&m.news, 0xab, sizeof m.news);
    return m;
}

static int parse(const struct wire_message *m, size_t n)
{
    struct wire_message to;
    return wire_message_parse(m, n, &to);
}

static void test_messages(void)
{
    for (int i = 0; i < KINDS; i++) {
        struct wire_message m = example(kinds[i]), to;
        size_t n = wire_length(&m);
        memset(&to, 0x55, sizeof to);
        is_int(wire_message_parse(&m, n, &to), 0, "kind %u is understood", kinds[i]);
        is_mem(&to, &m, sizeof m, "and is the same");
        for (size_t cut = 0; cut <= sizeof m + 8; cut++) {
            char bytes[sizeof m + 8] = {0};
            memcpy(bytes, &m, sizeof m);
            if (cut != n && wire_message_parse(bytes, cut, &to) != -EBADMSG)
                fail("kind %u of %zu bytes", kinds[i], cut);
        }
    }
}

static void refuse(struct wire_message m, const char *what)
{
    is_int(parse(&m, wire_length(&m)), -EBADMSG, "refused: %s", what);
}

#define REFUSE(kind, change, what)                                                                                     \
    do {                                                                                                               \
        struct wire_message m_ = example(kind);                                                                        \
        m_.change;                                                                                                     \
        refuse(m_, what);                                                                                              \
    } while (0)

static struct wire_message many_parts(uint32_t count)
{
    struct wire_message many = example(WIRE_FETCH);
    many.flags = FETCH_MANY;
    many.file = many.value = 0;
    many.count = count;
    for (uint32_t i = 0; i < count && i < MANY_MOST; i++)
        many.part[i] = (struct fetch_part){i, i, 1 + i % RING_VALUES, i % 2 ? 0 : 1 << FETCH_TAIL};
    return many;
}

static void test_many(void)
{
    struct wire_message many = many_parts(MANY_MOST), to;
    size_t n = wire_length(&many);
    is_uint(n, WIRE_LONG, "the longest question for many");
    is_int(wire_message_parse(&many, n, &to), 0, "is understood");
    is_mem(&to, &many, sizeof many, "and is the same");
    is_int(parse(&many, n - sizeof *many.part), -EBADMSG, "not without its last part");
    refuse(many_parts(1), "one part alone");
    refuse(many_parts(MANY_MOST + 1), "more parts than there may be");
#define REFUSE_MANY(change, what)                                                                                      \
    do {                                                                                                               \
        many = many_parts(3);                                                                                          \
        many.change;                                                                                                   \
        refuse(many, what);                                                                                            \
    } while (0)
    REFUSE_MANY(file = 1, "many with a file of their own");
    REFUSE_MANY(value = 1, "many with a value of their own");
    REFUSE_MANY(flags |= FETCH_FED, "many for the feeder");
    REFUSE_MANY(flags |= 1 << FETCH_HEAD, "many without a block");
    REFUSE_MANY(part[2].flags = FETCH_BEFORE, "a part that is BEFORE");
    REFUSE_MANY(part[2].flags = FETCH_MANY, "a part that has parts");
    REFUSE_MANY(part[2].flags = FETCH_STORED, "a part that asks for what is stored");
    REFUSE_MANY(part[2].count = 0, "a part of no value");
    REFUSE_MANY(part[2].count = RING_VALUES + 1, "a part of too many values");
}

static void test_wrong_head(void)
{
    REFUSE(WIRE_FETCH, magic++, "another magic number");
    REFUSE(WIRE_FETCH, kind = 0, "no kind");
    REFUSE(WIRE_FETCH, kind = WIRE_PONG + 1, "an unknown kind");
    REFUSE(WIRE_FETCH, tag = TAG_ANSWER - 1, "a tag that is not an answer's");
    REFUSE(WIRE_FETCH, tag = (uint32_t)INT32_MAX + 1, "a tag that MPI cannot have");
}

static void test_wrong_fetch(void)
{
    REFUSE(WIRE_FETCH, count = 0, "no values");
    REFUSE(WIRE_FETCH, count = RING_VALUES + 1, "more values than a slot holds");
    REFUSE(WIRE_FETCH, value = UINT32_MAX - 3, "values beyond the last number");
    REFUSE(WIRE_FETCH, command = WORLD_STAGE, "a fetch with a command");
    REFUSE(WIRE_FETCH, token = 1, "a fetch with a token");
    REFUSE(WIRE_FETCH, flags = 128, "a fetch with a flag that there is not");
    REFUSE(WIRE_FETCH, flags = FETCH_SHARED | FETCH_VERIFY, "a courier that verifies");
    REFUSE(WIRE_FETCH, flags = FETCH_SHARED | FETCH_BEFORE, "a courier that answers for a move");
    REFUSE(WIRE_FETCH, flags = FETCH_BEFORE | FETCH_STORED, "a fetch with two flags that exclude each other");
    REFUSE(WIRE_FETCH, flags = FETCH_FED | FETCH_STORED, "and two others");
    struct wire_message blocks = example(WIRE_FETCH);
    blocks.count = 1;
    blocks.flags = FETCH_FED | 30 << FETCH_HEAD | 1 << FETCH_TAIL;
    is_int(parse(&blocks, WIRE_SHORT), 0, "a fetch of one block");
    blocks.flags += 1 << FETCH_TAIL;
    refuse(blocks, "one of no block");
    REFUSE(WIRE_FETCH, flags = 1 << (FETCH_TAIL + 5), "a fetch that leaves out more than a value");
    REFUSE(WIRE_FETCH, flags = FETCH_STORED | 1 << FETCH_HEAD, "a question for what is stored that leaves out blocks");
    REFUSE(WIRE_FETCH, zero = 1, "something in a place for nothing");
    struct wire_message stored = example(WIRE_FETCH);
    stored.flags = FETCH_STORED;
    stored.value = UINT32_MAX;
    stored.count = STORED_MOST;
    is_int(parse(&stored, WIRE_SHORT), 0, "a question for what is stored");
    stored.count++;
    refuse(stored, "one for too much");
    stored.count = 0;
    refuse(stored, "one for nothing");
    struct wire_message blob = example(WIRE_FETCH);
    blob.flags = FETCH_BLOB;
    blob.value = blob.count = UINT32_MAX;
    is_int(parse(&blob, WIRE_SHORT), 0, "a question for a blob");
    blob.count = 0;
    refuse(blob, "one for no piece of it");
    REFUSE(WIRE_FETCH, flags = FETCH_BLOB | FETCH_FED, "a blob for the feeder");
    test_many();
}

static void test_wrong_word(void)
{
    REFUSE(WIRE_WAIT, flags = FETCH_BEFORE, "WAIT with flags");
    REFUSE(WIRE_WAIT, tag = 0, "WAIT for nothing");
    REFUSE(WIRE_WAIT, file = 1, "WAIT with a file");
    REFUSE(WIRE_GONE, tag = TAG_ANSWER, "GONE with a tag");
    REFUSE(WIRE_COMMAND, command = 0, "no command");
    REFUSE(WIRE_COMMAND, command = WORLD_UMOUNT + 1, "an unknown command");
    REFUSE(WIRE_COMMAND, command = WORLD_TURN, "a command that is no command between couriers");
    REFUSE(WIRE_COMMAND, status = -EIO, "a command with an error");
    REFUSE(WIRE_NEWS, tag = TAG_ANSWER, "news with a tag");
    REFUSE(WIRE_QUIT, token = 1, "QUIT with a token");
    REFUSE(WIRE_PING, token = 1, "PING with a token");
    REFUSE(WIRE_PONG, status = -EIO, "PONG with an error");
}

static void test_wrong_turn(void)
{
    REFUSE(WIRE_TURN, k = 0, "a turn that is asked for without a number");
    REFUSE(WIRE_TURN, turn.cause = 0, "one without a cause");
    REFUSE(WIRE_TURN, turn.cause = TURN_SHUFFLE + 1, "or with an unknown one");
    REFUSE(WIRE_TURN, turn.cause = TURN_SHUFFLE, "a shuffle of a part");
    REFUSE(WIRE_TURN, turn.cause = TURN_ROOM, "a turn for room of a part");
    REFUSE(WIRE_TURN, turn.fraction = TURN_WHOLE + 1, "an exchange of more than all");
    REFUSE(WIRE_BEGIN, room = 1, "a question for room that has some");
    REFUSE(WIRE_BEGIN, k = 0, "a turn to the layout that was joined with");
    REFUSE(WIRE_READY, status = 1, "a positive error");
    REFUSE(WIRE_READY, status = -4096, "an error that there is not");
    REFUSE(WIRE_READY, layout.byte[15] = 1, "room with a layout");
    REFUSE(WIRE_READY, turn.seed = 1, "or with a turn");
    REFUSE(WIRE_COMPUTED, room = 1, "a layout with room");
    REFUSE(WIRE_COMPUTED, k = 1, "or with the number of a turn");
    REFUSE(WIRE_SETTLED, status = 1, "a settlement with a positive error");
    REFUSE(WIRE_SETTLED, status = 0, "a node where nothing failed");
}

static void test_failures(void)
{
    static const struct {
        int status, sent;
    } table[] = {{-EIO, -EIO},  {-EHOSTDOWN, -EHOSTDOWN}, {-4095, -4095}, {0, -EIO}, {5, -EIO},
                 {-4096, -EIO}, {-EAGAIN, -EIO}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct wire_failure f = wire_failure_make(table[i].status);
        int status = 1;
        ok(wire_failure_parse(&f, sizeof f, &status) == 0 && status == table[i].sent, "failure %d is sent as %d",
           table[i].status, table[i].sent);
    }
    struct wire_failure f = wire_failure_make(-EIO);
    int status;
    is_int(wire_failure_parse(&f, sizeof f - 1, &status), -EBADMSG, "a failure that is cut off is none");
    f.zero = 1;
    is_int(wire_failure_parse(&f, sizeof f, &status), -EBADMSG, "nor one with something behind it");
    ok(sizeof f < sizeof(struct payload_header) && sizeof f < payload_stored_length(1),
       "no payload is as short as a failure");
    f = wire_failure_make(-ENOENT);
    ok(wire_failure_parse(&f, sizeof f, &status) == 0 && status == -ENOENT, "that nothing is held is a failure");
}

static void test_rooms(void)
{
    struct {
        struct wire_rooms head;
        uint64_t room[3];
    } r = {.head = {.magic = WIRE_MAGIC, .nodes = 3, .number = 9}};
    is_int(wire_rooms_check(&r.head, sizeof r, 3), 0, "the rooms of three nodes");
    is_int(wire_rooms_check(&r.head, sizeof r, 2), -EBADMSG, "are not those of two");
    is_int(wire_rooms_check(&r.head, sizeof r - 8, 3), -EBADMSG, "nor are two");
    is_int(wire_rooms_check(&r.head, 0, 3), -EBADMSG, "nor is nothing");
    r.head.nodes = 2;
    is_int(wire_rooms_check(&r.head, sizeof r, 3), -EBADMSG, "nor those that say that they are of two");
    r.head = (struct wire_rooms){.nodes = 3};
    is_int(wire_rooms_check(&r.head, sizeof r, 3), -EBADMSG, "nor what has no magic number");
}

static void test_news(void)
{
    struct node_news from, to;
    struct wire_news news;
    memset(&from, 0x17, sizeof from);
    memset(&to, 0x42, sizeof to);
    wire_news_from(&news, &from);
    uint64_t version = to.version;
    wire_news_to(&to, &news);
    ok(to.version == version && to.held == from.held && to.stage_round == from.stage_round,
       "news pass, except for the version");
}

static void test_join(void)
{
    struct wire_greeting g = {.magic = WIRE_MAGIC, .version = WIRE_VERSION, .release = "1.0", .host = "a"};
    is_uint(sizeof g, 128, "a greeting has the same length for ever");
    is_int(wire_greeting_check(&g), 0, "a greeting");
    g.version++;
    is_int(wire_greeting_check(&g), -EPROTO, "of another version");
    g.magic = __builtin_bswap32(g.magic);
    is_int(wire_greeting_check(&g), -EBADMSG, "of a machine with another order of bytes");
    g = (struct wire_greeting){.magic = WIRE_MAGIC, .version = WIRE_VERSION};
    memset(g.host, 'h', sizeof g.host);
    is_int(wire_greeting_check(&g), -EBADMSG, "with a host that does not end");
    memset(g.host, 0, sizeof g.host);
    g.host[0] = '\n';
    is_int(wire_greeting_check(&g), -EBADMSG, "with a host that would forge a line");

    struct wire_verdict v = {.magic = WIRE_MAGIC};
    is_int(wire_verdict_check(&v), 0, "a step that went well");
    v.why[0] = 'x';
    is_int(wire_verdict_check(&v), -EBADMSG, "and yet has a reason");
    v.status = -EIO;
    is_int(wire_verdict_check(&v), 0, "one that did not");
    v.status = EIO;
    is_int(wire_verdict_check(&v), -EBADMSG, "a positive error");
}

static void test_member(void)
{
    struct wire_member m = {.magic = WIRE_MAGIC, .state = MEMBER_LIVE, .node = {.host = "a"}};
    is_int(wire_member_check(&m), -EBADMSG, "a live mount without an id");
    memset(m.node.id, 'f', NODE_ID - 1);
    is_int(wire_member_check(&m), 0, "with one");
    m.node.id[3] = 'g';
    is_int(wire_member_check(&m), -EBADMSG, "with one that is not hexadecimal");
    m.node.id[3] = 'f';
    m.state = MEMBER_UNMOUNTED;
    is_int(wire_member_check(&m), -EBADMSG, "an id without a mount");
    m.state = MEMBER_LIVE + 1;
    is_int(wire_member_check(&m), -EBADMSG, "an unknown state");
    m.state = MEMBER_LIVE;
    m.groups = NODES_MOST + 1;
    is_int(wire_member_check(&m), -EBADMSG, "more groups than nodes can be");
    m.groups = 0;
    m.resize = 256;
    is_int(wire_member_check(&m), -EBADMSG, "images without a quality");
    m.quality = 101;
    is_int(wire_member_check(&m), -EBADMSG, "of too high a one");
    m.quality = 100;
    is_int(wire_member_check(&m), 0, "of the highest");
    m.zero = 1;
    is_int(wire_member_check(&m), -EBADMSG, "something in a place for nothing");

    struct wire_bell b = {.magic = WIRE_MAGIC, .addresses = BELL_ADDRESSES};
    is_int(wire_bell_check(&b), 0, "a bell");
    b.addresses++;
    is_int(wire_bell_check(&b), -EBADMSG, "with too many addresses");
    b.addresses = 1;
    b.address[0].prefix = 129;
    is_int(wire_bell_check(&b), -EBADMSG, "with a network that cannot be");
}

static void test_spoil(void)
{
    struct spoil f;
    static const char *const wrong[] = {"damage",  "damage:",  "damage:0", "damage:x",
                                        "often:3", "short:1x", ":3",       "short:1 "};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        is_int(spoil_parse(wrong[i], &f), -EINVAL, "spoilt answers: %s", wrong[i]);
    is_int(spoil_parse(NULL, &f), 0, "none are spoilt");
    is_int(spoil_next(&f), SPOIL_NONE, "are none");
    is_int(spoil_parse("damage:2,never:3", &f), 0, "two");
    static const enum spoil_way come[] = {SPOIL_NONE, SPOIL_DAMAGE, SPOIL_NEVER, SPOIL_DAMAGE, SPOIL_NONE, SPOIL_NEVER};
    for (size_t i = 0; i < sizeof come / sizeof *come; i++)
        is_int(spoil_next(&f), come[i], "answer %zu", i + 1);
}

int main(void)
{
    test_messages();
    test_wrong_head();
    test_wrong_fetch();
    test_wrong_word();
    test_wrong_turn();
    test_failures();
    test_rooms();
    test_news();
    test_join();
    test_member();
    test_spoil();
    return done_testing();
}
