/* Turns of a world, as they are asked for, told of and planned from, against peers that are made up. */
#include "fs/control/control-private.h"
#include "fs/control/texts.h"
#include "fs/control/verbs.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/json.h"
#include "tests/fs/control/fake-node.h"
#include "tests/lib/tap.h"

#include <string.h>

static void test_turn_refused(struct control *control)
{
    static const struct {
        const char *request;
        int error;
        const char *why;
    } refused[] = {
        {"exchange fraction=0.1\n", -EINVAL, "`exchange` needs `epoch="},
        {"exchange epoch=1\n", -EINVAL, "`exchange` needs `fraction="},
        {"exchange epoch=-1 fraction=0.1\n", -EINVAL, "`epoch=-1`: must be a whole number"},
        {"exchange epoch=1 fraction=1.1\n", -ERANGE, "`fraction=1.1`: must be 0 to 1"},
        {"exchange epoch=1 fraction=.1\n", -EINVAL, "`fraction=.1`"},
        {"exchange epoch=1 fraction=0.1234567\n", -EINVAL, "at most six decimals"},
        {"exchange epoch=1 fraction=0.1 seed=x\n", -EINVAL, "`seed=x`"},
        {"exchange epoch=1 fraction=0.1\nmore\n", -EINVAL, "takes nothing after"},
        {"exchange epoch=1 fraction=0.1 wait=0\n", -ERANGE, "`wait=0`: must be 1 to 3600 seconds"},
        {"shuffle seed=1 wait=3601\n", -ERANGE, "`wait=3601`"},
        {"shuffle\n", -EINVAL, "`shuffle` needs `seed="},
        {"shuffle seed=\n", -EINVAL, "`seed=`"},
        {"shuffle seed=1 fraction=0.1\n", -EINVAL, "fraction"},
    };
    CLEANUP_STR struct str reply = STR_INIT;
    fake_reset();
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        is_int(fake_run(control, refused[i].request, &reply), refused[i].error, "refused: %s", refused[i].request);
        ok(strstr(reply.data, refused[i].why), "says why: %s", reply.data);
    }
    is_int(others.asked, 0, "nobody was asked for anything");
}

static void set_next_turn(const struct layout *before, const struct layout *after)
{
    others.next.before = *layout_digest(before);
    others.next.after = *layout_digest(after);
}

static void check_reply(const struct str *reply, const char *turn, const char *samples, const char *bytes)
{
    CLEANUP_STR struct str quoted = STR_INIT;
    char digest[DIGEST_TEXT];
    str_addf(&quoted, "\"%s\"", digest_format(&others.next.after, digest));
    fake_check(reply, "nodes", "3");
    fake_check(reply, "turn", turn);
    fake_check(reply, "layout", quoted.data);
    fake_check(reply, "samples", samples);
    fake_check(reply, "bytes", bytes);
    is_int(reply->data[reply->length - 1], '\n', "a line");
}

static void test_turn(struct control *control)
{
    CLEANUP_STR struct str reply = STR_INIT;
    const struct turn *turn = &world.last.turn;
    fake_reset();
    set_next_turn(layout, later);
    is_int(fake_run(control, "exchange epoch=7 fraction=0.25 seed=5\n", &reply), 0, "exchange");
    check_reply(&reply, "1", "2", "150");
    ok(turn->cause == TURN_EXCHANGE && turn->fraction == 250000 && turn->epoch == 7 && turn->seed == 5,
       "as it was meant");
    is_uint(others.seconds, 60, "it waits for a minute");
    is_int(fake_run(control, "exchange epoch=7 fraction=0.25 seed=5 wait=5\n", &reply), 0, "the same again");
    check_reply(&reply, "1", "2", "150");
    is_uint(others.seconds, 5, "or as long as is wished");
    set_next_turn(later, later);
    is_int(fake_run(control, "exchange epoch=8 fraction=0\n", &reply), 0, "one that moves nothing");
    check_reply(&reply, "2", "0", "0");
    set_next_turn(later, layout);
    is_int(fake_run(control, "shuffle seed=3\n", &reply), 0, "shuffle");
    check_reply(&reply, "3", "2", "150");
    ok(turn->cause == TURN_SHUFFLE && turn->fraction == TURN_WHOLE && turn->epoch == 0 && turn->seed == 3, "is whole");
    others.next.before.byte[0] ^= 1;
    is_int(fake_run(control, "shuffle seed=4\n", &reply), 0, "from a layout that is not kept any more");
    fake_checks(&reply, "turn=4 samples=");
}

static void test_turn_in_vain(struct control *control)
{
    CLEANUP_STR struct str reply = STR_INIT;
    static const char request[] = "shuffle seed=9";
    fake_reset();
    others.turn_error = -ETIMEDOUT;
    is_int(fake_run(control, request, &reply), -ETIMEDOUT, "what fails");
    is_str(reply.data, "told why", "fails with the peers' reason");
    fake_reset();
    world = (struct world_view){.state = WORLD_ALONE, .nodes = 1, .groups = 1};
    is_int(fake_run(control, request, &reply), 0, "alone");
    is_str(reply.data, "{\"nodes\":1,\"turn\":0,\"layout\":null,\"samples\":0,\"bytes\":0}\n", "nothing moves");
    is_int(others.asked, 0, "nor is anybody asked");
}

/* What went wrong is said until it has gone right. */
static void test_turn_health(struct control *control)
{
    CLEANUP_STR struct str json = STR_INIT;
    fake_reset();
    world.failed = (struct turn_outcome){.record = {.turn = {TURN_EXCHANGE, 1, 2, 3}}, .status = -ENOMEM, .node = 2};
    world.unsaved = -ENOSPC;
    fake_status(control, &json);
    fake_check(&json, "turn.failed", "\"exchange\"");
    ok(strstr(json.data, "the last change of owners (exchange) failed because of node 2: Cannot allocate memory"),
       "health names the turn, the node and why");
    ok(strstr(json.data, "the world cannot be saved in") && strstr(json.data, "No space left on device"),
       "and the directory that takes nothing");
    world.failed.node = UINT32_MAX;
    fake_status(control, &json);
    ok(strstr(json.data, "(exchange) took too long"), "where no node is to blame it names none");
    fake_reset();
    fake_status(control, &json);
    ok(!strstr(json.data, "change of owners") && !strstr(json.data, "cannot be saved"), "else it says nothing");
}

static void test_move(struct control *control)
{
    CLEANUP_STR struct str json = STR_INIT, metrics = STR_INIT;
    fake_reset();
    fake_status(control, &json);
    fake_check(&json, "turn", "{\"number\": 0, \"cause\": null, \"before\": null, \"failed\": null}");
    fake_check(&json, "move.state", "\"none\"");
    world.last = (struct turn_record){.k = 4, .turn = {TURN_EXCHANGE, 250000, 9, 2}};
    peer[0].news.turn = peer[1].news.turn = 4;
    peer[0].news.move = (struct move_news){.samples = 5, .bytes = 100, .come_bytes = 40, .nanoseconds = 70};
    peer[1].news.move = (struct move_news){.samples = 6, .bytes = 200, .come_bytes = 200, .nanoseconds = 60};
    peer[1].news.moved = 4;
    peer[2].news.turn = peer[2].news.moved = 3;
    peer[2].news.move.bytes = 1000;
    fake_status(control, &json);
    fake_checks(&json, "turn.number=4 turn.cause='exchange' turn.epoch=9 turn.fraction=0.250000 turn.seed=2 "
                       "move.state='moving' move.waiting_for=2 move.samples=11 move.bytes=300 move.come_bytes=240 "
                       "move.elapsed=70 world.2.turn=3 world.1.moved=4 world.1.move.bytes=200");
    is_int(control_metrics(control, &metrics), 0, "metrics");
    ok(strstr(metrics.data, "\ndealfs_turn 4\n") && strstr(metrics.data, "\ndealfs_moving 0\n"), "the turn");
    ok(strstr(metrics.data, "\ndealfs_move_bytes{of=\"come\"} 200\n"), "and this node's move");
    world.state = WORLD_DEGRADED;
    fake_status(control, &json);
    fake_check(&json, "move.state", "\"ended\"");
    peer[0].news.moved = peer[2].news.turn = peer[2].news.moved = 4;
    fake_status(control, &json);
    fake_checks(&json, "move.state='done' move.bytes=1300");
}

/* From which layout is a plan? None is waited for, and nothing is begun. */
static void check_plan(struct control *control, const char *keys, const struct layout *expected, const char *what)
{
    CLEANUP_STR struct str request = STR_INIT, reply = STR_INIT, quoted = STR_INIT;
    char digest[DIGEST_TEXT];
    str_addf(&request, "plan ranks=3 batch=1 mode=local reply=summary %s\n", keys);
    is_int(fake_run(control, request.data, &reply), 0, "plan %s, %s", keys, what);
    str_addf(&quoted, "\"%s\"", digest_format(layout_digest(expected), digest));
    fake_check(&reply, "layout", quoted.data);
}

static void now_in(const struct layout *now)
{
    world.layout = *layout_digest(now);
    world.owners = now;
}

static void test_plans(struct control *control)
{
    CLEANUP_STR struct str pinned = STR_INIT, reply = STR_INIT;
    char digest[DIGEST_TEXT];
    fake_reset();
    check_plan(control, "epoch=0", layout, "the layout of now");
    now_in(later);
    check_plan(control, "epoch=0", later, "when it has changed");
    str_addf(&pinned, "epoch=1 layout=%s", digest_format(layout_digest(layout), digest));
    check_plan(control, pinned.data, layout, "from the layout before, as it is named");
    is_int(fake_run(control, "plan epoch=0 ranks=3 batch=1 mode=local exchange=0.5", &reply), -EINVAL,
           "exchange= is no key");
    ok(strstr(reply.data, "unknown key `exchange`"), "of a plan: %s", reply.data);
    is_int(others.asked, 0, "no plan asks for a turn");
    now_in(layout);
}

static void check_class(const char *request, enum work_class class, const char *what)
{
    is_int(verbs_class(request, request ? strlen(request) : 0), class, "%s: %s", what, request ? request : "");
}

static void test_classes(void)
{
    check_class("exchange epoch=9 fraction=0.1\n", WORK_TURN, "waits for a turn");
    check_class(" shuffle seed=1", WORK_TURN, "this, too");
    check_class("plan ranks=3 batch=1 mode=local epoch=2\n", WORK_LONG, "a plan waits for none");
    check_class("where\na\n", WORK_QUICK, "other verbs are quick");
    check_class("exchanges\n", WORK_QUICK, "so is what is refused");
    check_class(NULL, WORK_QUICK, "and nothing at all");
}

int main(void)
{
    fake_begin();
    struct control *control = fake_create(true);
    test_turn_refused(control);
    test_turn(control);
    test_turn_in_vain(control);
    test_turn_health(control);
    test_plans(control);
    test_move(control);
    control_destroy(control);
    test_classes();
    fake_end();
    return done_testing();
}
