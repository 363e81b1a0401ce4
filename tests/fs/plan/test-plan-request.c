/* The words of a `plan` request: what each comes to, and what is refused with which reason. */
#include "fs/plan/list-format.h"
#include "fs/plan/plan-request.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MOST = 1024 };

static int parse(const char *line, struct plan_request *r, struct str *why)
{
    static char text[TEXT_MOST];
    struct key_value value[PLAN_KEYS] = {0};
    snprintf(text, sizeof text, "%s", line);
    int error = keys_parse(&(struct key_words){plan_keys, "plan", ' '}, text, strlen(text), value, why);
    return error ? error : plan_request_parse(value, r, why);
}

#define BASE "epoch=1 ranks=4 batch=8 "

static const struct {
    const char *line;
    int error;
    const char *why;
} refused[] = {
    {"ranks=4 batch=8", -EINVAL, "needs `epoch"},
    {"epoch=1 batch=8", -EINVAL, "needs `ranks"},
    {"epoch=1 ranks=4", -EINVAL, "needs `batch"},
    {"epoch=x ranks=4 batch=8", -EINVAL, "`epoch=x`"},
    {"epoch=-1 ranks=4 batch=8", -EINVAL, "`epoch=-1`"},
    {"epoch= ranks=4 batch=8", -EINVAL, "`epoch=`"},
    {"epoch=18446744073709551616 ranks=4 batch=8", -ERANGE, "0 to 18446744073709551615"},
    {"epoch=1 ranks=0 batch=8", -ERANGE, "1 to 1048576"},
    {"epoch=1 ranks=1048577 batch=8", -ERANGE, "`ranks=1048577`"},
    {"epoch=1 ranks=4 batch=0", -ERANGE, "`batch=0`"},
    {"epoch=1 ranks=4 batch=1073741825", -ERANGE, "`batch="},
    {"epoch=1 ranks=4 batch=1.5", -EINVAL, "`batch=1.5`"},
    {BASE "rank=4", -ERANGE, "0 to 3"},
    {BASE "rank=-1", -EINVAL, "`rank=-1`"},
    {BASE "reply=json", -EINVAL, "text|u32|u64|summary|bytes|spans"},
    {BASE "reply=bytes", -EINVAL, "`reply=bytes`: needs `rank=`"},
    {BASE "reply=spans", -EINVAL, "needs `rank=`"},
    {BASE "rank=1 workers=2", -EINVAL, "needs `worker=`"},
    {BASE "rank=1 worker=0", -EINVAL, "needs `workers=`"},
    {BASE "rank=1 workers=2 worker=2", -ERANGE, "0 to 1"},
    {BASE "rank=1 workers=0 worker=0", -ERANGE, "1 to 65536"},
    {BASE "rank=1 workers=65537 worker=0", -ERANGE, "1 to 65536"},
    {BASE "workers=2 worker=1", -EINVAL, "needs `rank=`"},
    {BASE "rank=1 workers=2 worker=1 reply=summary", -EINVAL, "cannot be combined with `reply=summary`"},
    {BASE "rank=1 workers=2 worker=1 reply=paths", -EINVAL, "cannot be combined with `reply=summary` or `paths`"},
    {BASE "balance=1.1", -EINVAL, "`balance=1.1`: needs `cost`"},
    {BASE "cost=none window=2", -EINVAL, "`window=2`: needs `cost`"},
    {BASE "cost=bytes window=4097", -ERANGE, "1 to 4096"},
    {BASE "cost=bytes balance=0.99", -ERANGE, "1 to 1000"},
    {BASE "step=4294967296", -ERANGE, "`step="},
    {BASE "steps=3", -EINVAL, "two whole numbers"},
    {BASE "steps=3-2", -EINVAL, "two whole numbers"},
    {BASE "steps=-2", -EINVAL, "two whole numbers"},
    {BASE "step=1 steps=1-2", -EINVAL, "only one of `step` and `steps`"},
    {BASE "step=1 feed=yes", -EINVAL, "`feed=yes`"},
    {BASE "rank=0 reply=bytes feed=yes", -EINVAL, "`feed=yes`: the server"},
    {BASE "reply=", -EINVAL, "`reply=`"},
    {BASE "reply=tex", -EINVAL, "`reply=tex`"},
    {BASE "order=random", -EINVAL, "u32|u64|text|natural"},
    {BASE "order=u32 seed=1", -EINVAL, "`seed=1`"},
    {BASE "seed=1e3", -EINVAL, "`seed=1e3`"},
    {BASE "count=4294967296", -ERANGE, "`count="},
    {BASE "distinct=maybe", -EINVAL, "yes|no"},
    {BASE "mode=global", -EINVAL, "locality|regular|local"},
    {BASE "tail=keep", -EINVAL, "pad|drop|short"},
    {BASE "skip=-3", -EINVAL, "`skip=-3`"},
    {BASE "echo=0.5", -ERANGE, "1 to 1000"},
    {BASE "echo=0", -ERANGE, "1 to 1000"},
    {BASE "echo=1000.000001", -ERANGE, "1 to 1000"},
    {BASE "echo=99999999999999999999999999", -ERANGE, "1 to 1000"},
    {BASE "echo=1.0000001", -EINVAL, "six decimals"},
    {BASE "echo=two", -EINVAL, "`echo=two`"},
    {BASE "echo=1.", -EINVAL, "`echo=1.`"},
    {BASE "echo=.5", -EINVAL, "`echo=.5`"},
    {BASE "echo=", -EINVAL, "`echo=`"},
    {BASE "echo=1.5.5", -EINVAL, "`echo="},
    {BASE "mode=local exchange=0.1", -EINVAL, "unknown key `exchange`"},
    {BASE "echo_at=sample", -EINVAL, "example|batch"},
    {BASE "echo_buffer=-1", -EINVAL, "`echo_buffer=-1`"},
    {BASE "feed=maybe", -EINVAL, "no|yes"},
    {BASE "layout=abc", -EINVAL, "32 hexadecimal"},
};

static void test_refused(void)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        CLEANUP_STR struct str why = STR_INIT;
        struct plan_request r = {.ranks = 77};
        is_int(parse(refused[i].line, &r, &why), refused[i].error, "%s", refused[i].line);
        ok(why.data && strstr(why.data, refused[i].why), "says why: %s", why.data ? why.data : "");
        ok(!strchr(why.data ? why.data : "\n", '\n'), "in one line");
        is_uint(r.ranks, 77, "and touches nothing");
    }
}

static void test_defaults(void)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct plan_request r;
    is_int(parse("epoch=3 ranks=4 batch=8", &r, &why), 0, "the least");
    is_uint(r.epoch, 3, "epoch");
    is_uint(r.seed, 0, "PyTorch's seed");
    is_uint(r.rank, PLAN_ALL_RANKS, "all ranks");
    is_int(r.reply, REPLY_TEXT, "text");
    is_int(r.order, PLAN_ORDER_SEED, "by seed");
    is_str(r.samples, "all", "all samples");
    ok(!r.under && !r.match && !r.nodes && !r.pinned, "nothing else is chosen");
    is_uint(r.count, UINT64_MAX, "no count");
    ok(r.distinct, "a permutation");
    is_int(r.mode, PLAN_LOCALITY, "locality");
    is_int(r.tail, TAIL_PAD, "pad");
    is_uint(r.skip, 0, "from the beginning");
    is_uint(r.echo, 1000000, "no echo");
    is_int(r.echo_at, ECHO_AT_EXAMPLE, "of examples");
    ok(!r.feed, "nothing is read ahead");
    ok(!plan_request_has_payload(&r), "no payload");
}

static void test_all(void)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct plan_request r;
    is_int(parse("epoch=18446744073709551615 ranks=1048576 batch=1073741824 rank=1048575 reply=summary order=text "
                 "samples=mine under=a/b match=*.jpg count=0 distinct=no mode=local tail=short skip=5 echo=2.25 "
                 "echo_at=batch "
                 "echo_buffer=7 nodes=0,1 layout=0123456789abcdef0123456789ABCDEF feed=yes",
                 &r, &why),
           0, "all of them");
    is_uint(r.epoch, UINT64_MAX, "epoch");
    is_uint(r.rank, 1048575, "rank");
    is_int(r.reply, REPLY_SUMMARY, "reply");
    is_int(r.order, PLAN_ORDER_TEXT, "order");
    is_str(r.under, "a/b", "under");
    is_uint(r.count, 0, "count");
    ok(!r.distinct, "distinct");
    is_int(r.mode, PLAN_LOCAL, "mode");
    is_int(r.tail, TAIL_SHORT, "tail");
    is_uint(r.echo, 2250000, "echo");
    is_int(r.echo_at, ECHO_AT_BATCH, "echo_at");
    is_uint(r.echo_buffer, 7, "echo_buffer");
    ok(r.pinned && r.layout.byte[0] == 0x01 && r.layout.byte[15] == 0xef, "layout");
    ok(r.feed, "feed");
    ok(plan_request_has_payload(&r), "payload");
    is_int(parse(BASE "echo=1000", &r, &why), 0, "echo=1000");
    is_uint(r.echo, 1000000000, "is the most");
    is_int(parse(BASE "echo=1.000001", &r, &why), 0, "echo=1.000001");
    is_uint(r.echo, 1000001, "is the finest");
    is_int(parse(BASE "order=natural", &r, &why), 0, "order=natural");
    ok(!plan_request_has_payload(&r), "has no payload");
}

/* Batches of three, the last of them shorter. */
static void test_part(void)
{
    CLEANUP_STR struct str why = STR_INIT;
    uint32_t list[11], part[11], seen = 0;
    for (uint32_t i = 0; i < 11; i++)
        list[i] = 100 + i;
    for (uint32_t workers = 1; workers <= 5; workers++)
        for (uint32_t worker = 0; worker < workers; worker++) {
            struct plan_request r = {.batch = 3, .workers = workers, .worker = worker};
            uint64_t n = format_part(&r, list, 11, part);
            for (uint64_t i = 0; i < n; i++)
                seen += (part[i] - 100) / 3 % workers == worker && (i == 0 || part[i] > part[i - 1]);
        }
    is_uint(seen, 5 * 11, "each entry is of one worker, in order");
    struct plan_request most = {.batch = 1 << 30, .workers = PLAN_WORKERS_MOST, .worker = PLAN_WORKERS_MOST - 1};
    is_uint(format_part(&most, list, 11, part), 0, "no batch is left for the last of them");
    struct plan_request r;
    is_int(parse(BASE "rank=1 workers=65536 worker=65535 reply=spans", &r, &why), 0, "as many workers as there may be");
    is_uint(r.worker, 65535, "and the last of them");
}

static const char *const hosts[] = {"red", "green", "twin", "twin"};

static const struct {
    const char *nodes;
    int error;
    const char *why;
    uint32_t node[3];
} places[] = {
    {"0,1,2", 0, "", {0, 1, 2}},
    {"green,red,3", 0, "", {1, 0, 3}},
    {"0,0,0", 0, "", {0, 0, 0}},
    {"0,1", -EINVAL, "fewer", {0}},
    {"0,1,2,3", -EINVAL, "more", {0}},
    {"0,1,4", -ENOENT, "rank 2 is on `4`", {0}},
    {"0,blue,1", -ENOENT, "`blue`", {0}},
    {"0,1,twin", -EINVAL, "several nodes", {0}},
    {"0,,1", -EINVAL, "rank 1", {0}},
    {"", -EINVAL, "rank 0", {0}},
    {"0+3,1,0+3", 0, "", {0, 1, 0}},
    {"3+1,2,0", 0, "", {1, 2, 0}},
    {"0+1,1+2,3", -EINVAL, "rank 1 is on `2`", {0}},
    {"0+1,0,3", -EINVAL, "only some", {0}},
    {"0,0+1,3", -EINVAL, "named twice", {0}},
    {"0+,1,3", -EINVAL, "rank 0", {0}},
    {"0+0,1,3", -EINVAL, "named twice", {0}},
    {"0+red,1,3", -EINVAL, "named twice", {0}},
    {"0,1,2,", -EINVAL, "more", {0}},
    {"0,1,99999999999999999999", -ENOENT, "rank 2", {0}},
};

static void test_nodes(void)
{
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        CLEANUP_STR struct str why = STR_INIT;
        struct plan_request r = {.ranks = 3, .nodes = places[i].nodes};
        uint32_t node[3] = {0}, unit[4];
        struct plan_places found = {node, unit, 0};
        is_int(plan_request_nodes(&r, hosts, 4, &found, &why), places[i].error, "nodes=%s", places[i].nodes);
        ok(strstr(why.data ? why.data : "", places[i].why), "says why: %s", why.data ? why.data : "");
        if (!places[i].error)
            is_mem(node, places[i].node, sizeof node, "they are there");
    }
}

static void test_format(void)
{
    static const uint32_t lists[] = {1, 20, 300, 4294967295u, 0};
    const struct plan_shape shape = {.ranks = 2, .last = 1, .full = 2, .uses = 1}; /* three and two */
    static const uint64_t wide[] = {1, 20, 300, 4294967295u, 0};
    CLEANUP_STR struct str text = STR_INIT;
    format_lists(&text, REPLY_TEXT, &shape, lists, PLAN_ALL_RANKS);
    is_str(text.data, "1 20 300\n4294967295 0\n", "all as text");
    str_clear(&text);
    format_lists(&text, REPLY_TEXT, &shape, lists, 1);
    is_str(text.data, "4294967295\n0\n", "one as text");
    str_clear(&text);
    format_lists(&text, REPLY_U32, &shape, lists, 0);
    is_uint(text.length, 12, "one as u32");
    is_mem(text.data, lists, 12, "is the first");
    str_clear(&text);
    format_lists(&text, REPLY_U64, &shape, lists, PLAN_ALL_RANKS);
    is_uint(text.length, sizeof wide, "all as u64");
    is_mem(text.data, wide, sizeof wide, "one after the other");
    str_clear(&text);
    const struct plan_shape none = {.ranks = 3};
    format_lists(&text, REPLY_TEXT, &none, lists, PLAN_ALL_RANKS);
    is_str(text.data, "\n\n\n", "an empty plan has a line per rank");
}

int main(void)
{
    test_refused();
    test_defaults();
    test_all();
    test_part();
    test_nodes();
    test_format();
    return done_testing();
}
