/* How all nodes of a world stage, and take other commands, against peers that are made up. */
#include "fs/control/control-private.h"

#include "fs/base/cleanup.h"
#include "fs/base/json.h"
#include "tests/fs/base/moved-clock.h"
#include "tests/fs/control/fake-node.h"
#include "tests/lib/tap.h"

#include <string.h>

static void hear(int node, uint32_t state, uint64_t bytes)
{
    peer[node].news.stage_round = fake.progress.round;
    peer[node].news.staging = state;
    peer[node].news.stage_bytes = peer[node].news.stage_kept = bytes;
    peer[node].news.stage_total = 100;
    peer[node].news.stage_files = 1;
}

static void look(struct control *control, const char *expected)
{
    CLEANUP_STR struct str reply = STR_INIT;
    fake_run(control, "stage action=look\n", &reply);
    fake_checks(&reply, expected);
}

static void test_stage(struct control *control)
{
    CLEANUP_STR struct str reply = STR_INIT;
    fake_reset();
    is_int(fake_run(control, "stage action=look\n", &reply), 0, "look, before anything");
    fake_checks(&reply, "state='idle' nodes=1");
    uint64_t before = clock_realtime();
    is_int(fake_run(control, "stage\n", &reply), 0, "stage");
    is_uint(others.told, 1, "the others are told");
    ok(others.command == WORLD_STAGE && others.token >= before && others.token == fake.progress.round,
       "the same round as here");
    fake_checks(&reply, "state='running' nodes=3 waiting_for=2");
}

/* Goes on from there: this node is done, the others are heard of. */
static void test_stage_sums(struct control *control)
{
    fake.progress =
        (struct stage_progress){.state = STAGE_DONE, .bytes = 50, .bytes_total = 60, .files = 7, .round = others.token};
    peer[0].news.staging = peer[2].news.staging = STAGE_DONE; /* of an earlier one */
    look(control, "state='running'");
    hear(0, STAGE_RUNNING, 30);
    hear(2, STAGE_DONE, 100);
    look(control, "state='running' waiting_for=0 bytes=180 bytes_total=260 kept=130 files=9");
    hear(0, STAGE_DONE, 100);
    look(control, "state='done'");
    is_uint(others.told, 1, "nobody was told again");
}

static void test_stage_ends(struct control *control)
{
    CLEANUP_STR struct str reply = STR_INIT;
    hear(2, STAGE_STOPPED, 5);
    look(control, "state='stopped'");
    hear(2, STAGE_IDLE, 0); /* restarted since */
    look(control, "state='stopped'");
    peer[2].state = PEER_LOST;
    look(control, "state='done' nodes=2");
    peer[0].news.stage_failed = 3;
    fake_run(control, "stage action=look\n", &reply);
    fake_checks(&reply, "failed=3");
    fake_check(&reply, "error", "\"see `dealfs status` on alpha\"");
    hear(0, 77, 0);
    look(control, "state='failed'");
}

static void test_stage_round(struct control *control)
{
    CLEANUP_STR struct str reply = STR_INIT;
    uint64_t round = fake.progress.round =
        (clock_realtime() + UINT64_C(3600000000000)) & ~UINT64_C(1); /* by a node with another clock */
    fake_run(control, "stage\n", &reply);
    ok(fake.progress.round > round, "a new round is greater than all before");
}

/* All are done, and one file has no owner: node 0 has that dealt first. */
static void test_deal(struct control *control)
{
    CLEANUP_STR struct str reply = STR_INIT;
    fake_reset();
    fake_run(control, "stage\n", &reply);
    fake.progress = (struct stage_progress){.state = STAGE_DONE, .round = others.token};
    hear(0, STAGE_DONE, 100);
    hear(2, STAGE_DONE, 100);
    world.settled = others.token - 1;
    look(control, "state='running' waiting_for=0");
    peer[0].state = PEER_SUSPECT;
    look(control, "state='done'");
    peer[0].state = PEER_GOOD;
    world.state = WORLD_DEGRADED;
    look(control, "state='done'");
    world.state = WORLD_JOINED;
    world.settled = others.token;
    look(control, "state='done'");
    world.turning = true;
    look(control, "state='running'");
    world.turning = false;
    peer[0].news.stage_round = others.token - 1; /* it has not turned yet: what it had before counts */
    look(control, "state='running' waiting_for=1 bytes=200");
}

static void test_told_again(struct control *control)
{
    CLEANUP_STR struct str reply = STR_INIT;
    fake_reset();
    fake_run(control, "stage\n", &reply);
    fake_run(control, "stage action=look\n", &reply);
    is_uint(others.told, 1, "those that have not heard are given time");
    clock_add(4 * SECOND);
    fake_run(control, "stage action=look\n", &reply);
    is_uint(others.told, 2, "and are then told again");
    ok(others.command == WORLD_STAGE && others.token == fake.progress.round, "of the same round");
    fake_run(control, "stage action=look\n", &reply);
    is_uint(others.told, 2, "but not all the time");
}

static void test_stop(struct control *control)
{
    CLEANUP_STR struct str reply = STR_INIT;
    fake_reset();
    fake_run(control, "stage\n", &reply);
    is_int(fake_run(control, "stage action=stop\n", &reply), 0, "stop");
    ok(fake.stops == 1 && others.told == 2 && others.command == WORLD_STAGE_STOP && others.token == fake.progress.round,
       "all are stopped");

    fake_reset();
    others.tell_error = -EAGAIN;
    is_int(fake_run(control, "stage\n", &reply), -EAGAIN, "others that cannot be told");
    is_str(reply.data, "cannot start staging: Resource temporarily unavailable", "are a reason");
    is_int(fake.progress.state, STAGE_IDLE, "and nothing is begun");
    others.tell_error = -ENOTCONN;
    is_int(fake_run(control, "stage\n", &reply), 0, "a node that is alone stages alone");
    is_int(fake.progress.state, STAGE_RUNNING, "as it should");
    fake_reset();
    fake.start_error = -ENOMEM;
    is_int(fake_run(control, "stage\n", &reply), -ENOMEM, "when it fails here");
    ok(others.told == 2 && others.command == WORLD_STAGE_STOP, "it is called off elsewhere");
}

static void test_command(struct control *control)
{
    fake_reset();
    control_command(control, WORLD_STAGE, 12346);
    ok(fake.progress.state == STAGE_RUNNING && fake.progress.round == 12346, "another node's round begins here");
    is_int(others.told, 0, "and is not passed on");
    control_command(control, WORLD_STAGE_STOP, 12346);
    is_int(fake.stops, 1, "and stops");
    control_command(control, WORLD_UMOUNT, 0);
    ok(fake.stops == 1 && fake.progress.state == STAGE_STOPPED, "other commands are not for us");
}

static void test_umount(struct control *control)
{
    CLEANUP_STR struct str reply = STR_INIT;
    fake_reset();
    is_int(fake_run(control, "umount\n", &reply), 0, "umount");
    is_uint(reply.length, 0, "says nothing");
    ok(others.told == 1 && others.command == WORLD_UMOUNT, "the others are told");
    others.tell_error = -ENOTCONN;
    is_int(fake_run(control, "umount\n", &reply), -ENOTCONN, "a node that is alone tells nobody");
    is_int(fake_run(control, "umount now=1\n", &reply), -EINVAL, "it has no keys");
}

int main(void)
{
    clock_stand();
    fake_begin();
    struct control *control = fake_create(true);
    test_stage(control);
    test_stage_sums(control);
    test_stage_ends(control);
    test_stage_round(control);
    test_deal(control);
    test_told_again(control);
    test_stop(control);
    test_command(control);
    test_umount(control);
    control_destroy(control);
    fake_end();
    return done_testing();
}
