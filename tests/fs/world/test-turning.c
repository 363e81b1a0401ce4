/* A turn of the layout in a living world: what servers answer, when they turn, and that reads are right meanwhile. */
#include "tests/fs/world/fake.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/world/layout.h"
#include "tests/lib/tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (1ull << 20)
#define LONG 60000000000ull /* a timeout that no test waits for */

enum { FILES = 60, NODES = 2, READERS = 4 };

static struct dataset set;
static const uint64_t ram[NODES] = {12 * MIB, 12 * MIB};

/* All that can be compressed to next to nothing: a part of it fits, as it is, and all of it in the end. */
static void make_dataset(void)
{
    dataset_begin(&set);
    for (int i = 0; i < FILES; i++) {
        char name[32];
        snprintf(name, sizeof name, "d%d/sparse-%02d", i % 3, i);
        dataset_add(&set, name, MIB - (uint64_t)i);
    }
    dataset_scan(&set);
}

static struct world_view view_of(struct fake *f, uint32_t node)
{
    struct world_view view;
    if (peers_view(f->node[node].peers, &view) || !view.known)
        bail_out("node %u has no world", node);
    return view;
}

static struct digest layout_of(struct fake *f, uint32_t node)
{
    struct world_view view = view_of(f, node);
    struct digest digest = view.layout;
    peers_view_release(&view);
    return digest;
}

static uint64_t unowned(struct fake *f, uint32_t node)
{
    struct world_view view = view_of(f, node);
    uint64_t count = layout_unowned(view.owners);
    peers_view_release(&view);
    return count;
}

static uint64_t settled(struct fake *f, uint32_t node)
{
    struct world_view view = view_of(f, node);
    uint64_t round = view.settled;
    peers_view_release(&view);
    return round;
}

static bool same(const struct digest *a, const struct digest *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static bool has(struct fake *f, uint32_t node, const struct digest *digest)
{
    struct digest now = layout_of(f, node);
    return same(&now, digest);
}

static bool is_staged(struct fake *f, uint32_t node, uint64_t round)
{
    struct stage_progress p;
    store_stage_progress(f->node[node].store, &p);
    return p.state == STAGE_DONE && p.round == round;
}

static void stage(struct fake *f, uint64_t round)
{
    for (uint32_t i = 0; i < f->nodes; i++)
        if (store_stage_start(f->node[i].store, round, NULL))
            bail_out("no stage");
    for (uint32_t i = 0; i < f->nodes; i++)
        wait_until(is_staged(f, i, round));
}

static void begin(struct fake *f)
{
    fake_begin(f, &set, NODES, ram, LONG, NULL);
    fake_join(f, 1);
}

static struct turn for_room(uint64_t round)
{
    return (struct turn){.cause = TURN_ROOM, .epoch = round};
}

/* Once it has seen that the move before is done. */
static bool is_ready(struct fake *f, uint32_t node, const struct turn *turn, uint64_t *room)
{
    int status = fake_ready(f, node, turn, room);
    if (status && status != -EBUSY)
        bail_out("node %u is not ready: %s", node, strerror(-status));
    return status == 0;
}

/* A turn up to what would be the layout; false: the servers do not agree. */
static bool compute(struct fake *f, const struct turn *turn, struct digest *layout)
{
    uint64_t room[FAKE_NODES];
    bool agree = true;
    for (uint32_t i = 0; i < f->nodes; i++)
        wait_until(is_ready(f, i, turn, &room[i]));
    for (uint32_t i = 0; i < f->nodes; i++) {
        struct digest one;
        agree &= fake_compute(f, i, turn, room, &one) == 0 && (i == 0 || same(layout, &one));
        *layout = one;
    }
    return agree;
}

static bool deal(struct fake *f, uint64_t round, struct digest *layout)
{
    struct turn turn = for_room(round);
    return compute(f, &turn, layout);
}

static void settle_one(struct fake *f, uint32_t node, uint64_t round, uint64_t k, const struct digest *layout)
{
    struct turn turn = for_room(round);
    fake_settle(f, node, &turn, k, layout);
}

static void settle_all(struct fake *f, uint64_t round, uint64_t k, const struct digest *layout)
{
    for (uint32_t i = 0; i < f->nodes; i++)
        settle_one(f, i, round, k, layout);
    for (uint32_t i = 0; i < f->nodes; i++)
        wait_until(settled(f, i) >= round);
}

static void turn_all(struct fake *f, uint64_t round, const struct digest *layout)
{
    settle_all(f, round, f->last.k + 1, layout);
}

static bool read_all(struct fake *f, uint32_t node)
{
    bool right = true;
    for (uint32_t file = 0; file < FILES; file++) {
        struct span span = {.file = file, .length = (uint32_t)dataset_size(&set, file)};
        right &= read_check(f->node[node].store, &set, &span, NULL) == 0;
    }
    return right;
}

/* Until nothing changes any more. Returns how often the world turned. */
static int deal_until_settled(struct fake *f, uint64_t round)
{
    struct digest layout;
    for (int turns = 0;; turns++, round += 2) {
        if (!deal(f, round, &layout))
            bail_out("the servers do not agree");
        bool over = has(f, 0, &layout);
        turn_all(f, round, &layout);
        if (over)
            return turns;
        for (uint32_t i = 0; i < f->nodes; i++)
            wait_until(is_staged(f, i, round + 2));
    }
}

static void test_all(void)
{
    struct fake f;
    begin(&f);
    uint64_t none = unowned(&f, 0);
    ok(none > FILES / 3, "%ju of %d files find no room, as they are", (uintmax_t)none, FILES);
    stage(&f, 10);
    is_uint(fake_samples(&f), FILES - none, "staging reads what has an owner");
    struct turn turn = for_room(10);
    uint64_t room;
    ok(fake_ready(&f, 0, &turn, &room) == 0 && room > ram[0] / 2, "and more than half of the room is left");
    int turns = deal_until_settled(&f, 10);
    ok(turns >= 1, "dealt in %d turns", turns);
    is_uint(unowned(&f, 0), 0, "everything has an owner");
    is_uint(unowned(&f, 1), 0, "on all nodes");
    is_uint(fake_samples(&f), FILES, "what was dealt was staged as well");
    ok(read_all(&f, 0) && read_all(&f, 1), "all bytes are right");
    is_uint(fake_samples(&f), FILES, "and nothing came from the source");
    stage(&f, 100);
    is_uint(fake_samples(&f), FILES, "staging again reads nothing");
    fake_end(&f);
}

static void test_nothing_before(void)
{
    struct fake f;
    struct digest layout, before;
    begin(&f);
    stage(&f, 10);
    before = layout_of(&f, 0);
    ok(deal(&f, 10, &layout) && !same(&before, &layout), "the servers agree on another layout");
    ok(has(&f, 0, &before) && has(&f, 1, &before), "and still have that before");
    settle_all(&f, 10, 0, &before);
    ok(has(&f, 0, &before) && has(&f, 1, &before), "which they keep when it has failed");
    ok(is_staged(&f, 0, 10) && is_staged(&f, 1, 10), "nothing more is staged then");
    ok(deal(&f, 12, &layout), "another deal");
    store_stage_stop(f.node[1].store);
    turn_all(&f, 12, &layout);
    ok(has(&f, 0, &layout) && has(&f, 1, &layout), "the servers turn");
    wait_until(is_staged(&f, 0, 14));
    ok(is_staged(&f, 1, 10), "but who has stopped staging does not begin again");
    ok(read_all(&f, 0) && read_all(&f, 1), "all bytes are right");
    is_uint(fake_samples(&f), FILES - unowned(&f, 0) + 2 * unowned(&f, 0), "each owned file was read once");
    fake_end(&f);
}

static void restart(struct fake *f, uint32_t node)
{
    fake_leave(f, node);
    fake_close(f, node);
    fake_open(f, node, true);
    fake_resume(f, node);
}

/* The server that has dealt is not the one that turns. */
static void test_restarted(void)
{
    struct fake f;
    struct digest layout;
    begin(&f);
    stage(&f, 10);
    deal(&f, 10, &layout);
    restart(&f, 1);
    ok(!has(&f, 1, &layout), "a new server comes with the layout before");
    turn_all(&f, 10, &layout);
    ok(has(&f, 1, &layout), "and finds the new one where the one before has saved it");
    deal(&f, 12, &layout);
    settle_one(&f, 0, 12, 2, &layout);
    wait_until(settled(&f, 0) == 12);
    restart(&f, 1);
    ok(has(&f, 1, &layout), "one that comes when all have turned resumes with the new one");
    ok(read_all(&f, 0) && read_all(&f, 1), "all bytes are right");
    fake_end(&f);
}

static bool is_degraded(struct fake *f, uint32_t node)
{
    struct world_view view = view_of(f, node);
    bool degraded = view.state == WORLD_DEGRADED;
    peers_view_release(&view);
    return degraded;
}

/* The courier's link breaks when the server has dealt; the others turn; the same server resumes with what they have. */
static void test_resumed(void)
{
    struct fake f;
    struct digest layout;
    begin(&f);
    stage(&f, 10);
    deal(&f, 10, &layout);
    fake_leave(&f, 1);
    settle_one(&f, 0, 10, 1, &layout);
    wait_until(is_staged(&f, 0, 12));
    wait_until(is_degraded(&f, 1));
    fake_resume(&f, 1);
    ok(has(&f, 1, &layout), "a server whose link was broken resumes with what the others have");
    wait_until(is_staged(&f, 1, 12));
    is_uint(fake_samples(&f), FILES - unowned(&f, 0), "and stages what was dealt to it meanwhile");
    fake_end(&f);
}

static void send_nonsense(struct fake *f, uint32_t node, enum message_kind kind, const void *bytes, size_t n,
                          const char *what)
{
    if (message_send(f->node[node].socket, kind, bytes, n, NULL))
        bail_out("a frame is not taken");
    wait_until(is_degraded(f, node));
    pass("%s ends the conversation", what);
    for (uint32_t i = 0; i < f->nodes; i++)
        fake_leave(f, i);
    for (uint32_t i = 0; i < f->nodes; i++)
        wait_until(is_degraded(f, i));
    fake_join(f, 1);
}

static void test_nonsense(void)
{
    struct fake f;
    static const struct digest nobodys = {{1, 2, 3}};
    struct {
        struct message_turn turn;
        uint64_t room[NODES + 1];
    } m = {.turn = {1, 1, for_room(5)}};
    struct turn_outcome outcome = {.record = {.turn = m.turn.turn, .k = 1, .after = nobodys}};
    struct turn_record *record = &outcome.record;
    begin(&f);
    record->before = layout_of(&f, 0);
    send_nonsense(&f, 1, MESSAGE_BEGIN, &m, sizeof m.turn - 8, "the beginning of no turn");
    send_nonsense(&f, 0, MESSAGE_COMPUTE, &m, sizeof m, "rooms of more nodes than there are");
    send_nonsense(&f, 0, MESSAGE_COMPUTE, &m, sizeof m.turn + 8, "or of fewer");
    send_nonsense(&f, 0, MESSAGE_SETTLED, &outcome, 8, "a settlement without a layout");
    send_nonsense(&f, 1, MESSAGE_SETTLED, &outcome, sizeof outcome, "a layout that nobody has computed");
    send_nonsense(&f, 1, MESSAGE_LIVE, NULL, 0, "what has its place before a world lives");
    m.turn.turn.cause = 0;
    send_nonsense(&f, 1, MESSAGE_BEGIN, &m, sizeof m.turn, "a turn without a cause");
    record->after = layout_of(&f, 0);
    fake_leave(&f, 0);
    fake_leave(&f, 1);
    wait_until(is_degraded(&f, 0) && is_degraded(&f, 1));
    fake_join(&f, 2);
    record->before = layout_of(&f, 1);
    send_nonsense(&f, 1, MESSAGE_SETTLED, &outcome, sizeof outcome, "a layout of other groups, which is there");
    ok(read_all(&f, 0) && read_all(&f, 1), "a new world can be joined each time, and all bytes are right");
    fake_end(&f);
}

/* --- any cause --- */

static struct turn an_exchange(uint64_t epoch)
{
    return (struct turn){.cause = TURN_EXCHANGE, .fraction = TURN_WHOLE / 2, .epoch = epoch, .seed = 3};
}

/* Somebody who waits for a turn on a node. */
struct asker {
    struct fake *f;
    uint32_t node;
    struct turn turn;
    uint64_t seconds;
    pthread_t thread;
    struct turn_record record;
    struct str trouble;
    int error;
};

static void *ask_for_turn(void *argument)
{
    struct asker *a = argument;
    const struct turn_patience patience = {.deadline = clock_now() + a->seconds * SECOND};
    a->error = peers_turn(a->f->node[a->node].peers, &a->turn, &patience, &a->record, &a->trouble);
    return NULL;
}

static void asker_start(struct asker *a, struct fake *f, uint32_t node, const struct turn *turn, uint64_t seconds)
{
    *a = (struct asker){.f = f, .node = node, .turn = *turn, .seconds = seconds, .trouble = STR_INIT};
    if (pthread_create(&a->thread, NULL, ask_for_turn, a))
        bail_out("a thread");
}

static int asker_end(struct asker *a)
{
    pthread_join(a->thread, NULL);
    if (a->trouble.length)
        diag("node %u: %s", a->node, a->trouble.data);
    str_fini(&a->trouble);
    return a->error;
}

static int ask_turn(struct fake *f, uint32_t node, const struct turn *turn, uint64_t seconds,
                    struct turn_record *record)
{
    struct asker a;
    asker_start(&a, f, node, turn, seconds);
    int error = asker_end(&a);
    if (record)
        *record = a.record;
    return error;
}

static uint64_t number_of(struct fake *f, uint32_t node)
{
    struct world_view view = view_of(f, node);
    uint64_t k = view.last.k;
    peers_view_release(&view);
    return k;
}

/* Asked for by node 1, and taken by all. */
static void exchange(struct fake *f, uint64_t epoch)
{
    struct turn turn = an_exchange(epoch);
    struct digest layout;
    struct asker asker;
    uint64_t k = f->last.k + 1;
    uint32_t before = atomic_load(&f->turns_asked);
    asker_start(&asker, f, 1, &turn, 60);
    wait_until(atomic_load(&f->turns_asked) != before);
    uint64_t asked_k;
    struct turn asked = fake_asked(f, &asked_k);
    if (!turn_same(&asked, &turn) || asked_k != k || !compute(f, &turn, &layout))
        bail_out("no turn");
    for (uint32_t i = 0; i < f->nodes; i++)
        fake_settle(f, i, &turn, k, &layout);
    is_int(asker_end(&asker), 0, "who asked for turn %ju has it", (uintmax_t)k);
    ok(same(&asker.record.after, &layout) && number_of(f, 0) == k && number_of(f, 1) == k,
       "when all nodes have taken it");
}

static void test_exchange(void)
{
    struct fake f;
    struct turn turn = an_exchange(1), none = {0};
    struct turn_record record;
    uint64_t room;
    fake_begin(&f, &set, NODES, ram, LONG, NULL);
    is_int(ask_turn(&f, 0, &none, 20, NULL), -EINVAL, "there is no turn without a cause");
    is_int(ask_turn(&f, 0, &turn, 20, &record), 0, "alone");
    is_uint(record.k, 0, "nothing turns");
    fake_join(&f, 1);
    stage(&f, 10);
    deal_until_settled(&f, 10);
    struct digest before = layout_of(&f, 0);
    uint64_t k = number_of(&f, 0), samples = fake_samples(&f);
    exchange(&f, 1);
    is_int(ask_turn(&f, 0, &turn, 20, &record), 0, "the newest turn, asked for again on another node");
    ok(record.k == k + 1 && same(&record.before, &before), "is known there");
    ok(has(&f, 0, &record.after) && has(&f, 1, &record.after) && !same(&record.after, &before),
       "and all have its layout");
    struct world_view view = view_of(&f, 1);
    ok(view.before && same(layout_digest(view.before), &before), "and still that before");
    peers_view_release(&view);
    uint32_t asked = atomic_load(&f.turns_asked);
    is_int(ask_turn(&f, 1, &turn, 20, NULL), 0, "one that was taken");
    is_uint(atomic_load(&f.turns_asked), asked, "is not asked for again");
    ok(read_all(&f, 0) && read_all(&f, 1), "all bytes are right");
    f.last.k += 5;
    is_int(fake_ready(&f, 0, &turn, &room), -ESTALE, "a server that has missed turns is not ready");
    f.last.k -= 5;
    exchange(&f, 2);
    ok(read_all(&f, 0) && read_all(&f, 1), "and after another one");
    is_uint(fake_samples(&f), samples, "and nothing came from the source");
    restart(&f, 1);
    turn = an_exchange(2);
    is_int(ask_turn(&f, 1, &turn, 20, &record), 0, "the next server knows of the newest");
    ok(record.k == k + 2 && number_of(&f, 1) == k + 2, "and of its number");
    fake_push(&f, 0, &(struct ring_message){.kind = RING_GONE, .node = 1});
    turn = an_exchange(100);
    wait_until(ask_turn(&f, 0, &turn, 20, NULL) == -ENOTCONN);
    pass("nothing turns without a node");
    fake_end(&f);
}

/* A server dies when it has computed, others turn, and its successor comes when that is over. */
static void test_left_behind(void)
{
    struct fake f;
    struct turn turn = an_exchange(1);
    struct digest layout;
    begin(&f);
    stage(&f, 10);
    deal_until_settled(&f, 10);
    struct store_stats stats;
    fake_stats(&f, 0, &stats);
    uint64_t k = number_of(&f, 0), samples = stats.source_samples;
    if (!compute(&f, &turn, &layout))
        bail_out("no turn");
    fake_leave(&f, 1);
    fake_close(&f, 1);
    f.last = (struct turn_record){turn, k + 1, f.last.before, f.layout, layout};
    f.layout = layout;
    fake_open(&f, 1, true);
    is_uint(number_of(&f, 1), k, "a server that is started anew is where the one before was");
    fake_resume(&f, 1);
    fake_settle(&f, 0, &turn, k + 1, &layout);
    ok(number_of(&f, 1) == k + 1 && has(&f, 1, &layout), "and turns when it hears what the others did");
    exchange(&f, 2);
    is_uint(number_of(&f, 1), k + 2, "the next turn is all nodes' again");
    ok(read_all(&f, 0) && read_all(&f, 1), "all bytes are right");
    fake_stats(&f, 0, &stats);
    is_uint(stats.source_samples, samples, "and nothing came from the source");
    fake_end(&f);
}

/* --- what fails, and how long who asks waits --- */

static void test_failure(void)
{
    struct fake f;
    struct turn turn = an_exchange(1);
    struct asker asker;
    begin(&f);
    uint64_t began = clock_now();
    uint32_t before = atomic_load(&f.turns_asked);
    asker_start(&asker, &f, 1, &turn, 2);
    wait_until(atomic_load(&f.turns_asked) != before);
    struct turn_outcome failed = {.record = {.turn = turn, .after = f.layout}, .status = -ENOMEM, .node = 1};
    for (uint32_t i = 0; i < f.nodes; i++)
        fake_outcome(&f, i, &failed);
    is_int(asker_end(&asker), -ENOMEM, "who asked hears why it failed");
    uint64_t took = clock_now() - began;
    ok(took >= 2 * SECOND && took < 20 * SECOND, "when the time is over that it wanted to wait: %.1f s",
       (double)took / 1e9);
    uint32_t asked = atomic_load(&f.turns_asked) - before;
    ok(asked >= 2 && asked <= 5, "it was asked for again, less and less often: %u times", asked);
    struct world_view view = view_of(&f, 0);
    ok(view.failed.status == -ENOMEM && view.failed.node == 1, "the other node knows of it");
    peers_view_release(&view);
    exchange(&f, 2);
    view = view_of(&f, 0);
    is_int(view.failed.status, 0, "until a turn is taken");
    peers_view_release(&view);
    turn = an_exchange(3);
    is_int(ask_turn(&f, 0, &turn, 0, NULL), -ETIMEDOUT, "where nobody answers the wait ends");
    view = view_of(&f, 0);
    is_int(view.failed.status, -ETIMEDOUT, "and is a line in health");
    peers_view_release(&view);
    fake_end(&f);
}

/* One node takes a turn, and the other does not hear of it: who asked is not told that all have it. */
static void test_not_all(void)
{
    struct fake f;
    struct turn turn = an_exchange(1);
    struct digest layout;
    struct asker here, there;
    begin(&f);
    uint32_t before = atomic_load(&f.turns_asked);
    asker_start(&here, &f, 0, &turn, 1);
    asker_start(&there, &f, 1, &turn, 60);
    wait_until(atomic_load(&f.turns_asked) >= before + 2);
    if (!compute(&f, &turn, &layout))
        bail_out("no turn");
    uint64_t k = f.last.k + 1;
    fake_settle(&f, 0, &turn, k, &layout);
    is_int(asker_end(&here), -ETIMEDOUT, "one node has not taken the turn: who asked does not wait for ever");
    is_uint(number_of(&f, 0), k, "and sees that its own has");
    fake_settle(&f, 1, &turn, k, &layout);
    is_int(asker_end(&there), 0, "when all have it who still waits is told");
    fake_end(&f);
}

/* Two want turns of their own. Each is taken once, also where the one who asked for the first looks when the second was
 * taken as well. */
static void test_two_jobs(void)
{
    struct fake f;
    const struct turn turn[2] = {an_exchange(3), an_exchange(70)};
    struct digest layout;
    struct asker asker[2];
    begin(&f);
    uint32_t before = atomic_load(&f.turns_asked);
    asker_start(&asker[0], &f, 0, &turn[0], 60);
    asker_start(&asker[1], &f, 1, &turn[1], 60);
    wait_until(atomic_load(&f.turns_asked) >= before + 2);
    uint64_t k = f.last.k;
    for (int i = 0; i < 2; i++) {
        if (!compute(&f, &turn[i], &layout))
            bail_out("no turn");
        for (uint32_t node = 0; node < f.nodes; node++)
            fake_settle(&f, node, &turn[i], k + 1 + (uint64_t)i, &layout);
    }
    for (int i = 0; i < 2; i++) {
        is_int(asker_end(&asker[i]), 0, "job %d has its turn", i);
        ok(turn_same(&asker[i].record.turn, &turn[i]) && asker[i].record.k == k + 1 + (uint64_t)i, "and not another");
    }
    fake_end(&f);
}

/* --- nothing can be saved --- */

static int unsaved(struct fake *f, uint32_t node)
{
    struct world_view view = view_of(f, node);
    peers_view_release(&view);
    return view.unsaved;
}

/* The state directory of node 1 is there, or is not. */
static void set_state(struct fake *f, bool there)
{
    char away[sizeof f->node[1].state + 8];
    snprintf(away, sizeof away, "%s.away", f->node[1].state);
    if (there ? rename(away, f->node[1].state) : rename(f->node[1].state, away))
        bail_out("move the state directory");
}

static bool is_saved(struct fake *f, uint32_t node)
{
    char path[sizeof f->node[node].state + 8];
    snprintf(path, sizeof path, "%s/world", f->node[node].state);
    return access(path, F_OK) == 0;
}

static void test_unsaved(void)
{
    struct fake f;
    struct layout *layout;
    begin(&f);
    struct digest first = layout_of(&f, 1), second;
    wait_until(is_saved(&f, 1));
    set_state(&f, false);
    exchange(&f, 1);
    second = layout_of(&f, 1);
    wait_until(unsaved(&f, 1) == -ENOENT);
    pass("a node that cannot save takes the turn all the same, and says so");
    is_int(unsaved(&f, 0), 0, "which the other one can");
    for (uint64_t epoch = 2; epoch <= 4; epoch++)
        exchange(&f, epoch);
    struct digest now = layout_of(&f, 0);
    ok(has(&f, 1, &now), "so it does with those after it");
    is_int(peers_layout(f.node[1].peers, &second, &layout), 0, "it knows the layouts that it has not saved");
    layout_close(layout);
    is_int(peers_layout(f.node[1].peers, &first, &layout), 0,
           "what went with the directory it gets from the other node");
    layout_close(layout);
    ok(read_all(&f, 0) && read_all(&f, 1), "all bytes are right");
    set_state(&f, true);
    fake_leave(&f, 1);
    fake_close(&f, 1);
    fake_open(&f, 1, true);
    ok(has(&f, 1, &first), "the server after it finds what was saved last");
    fake_resume(&f, 1);
    ok(number_of(&f, 1) == f.last.k && has(&f, 1, &now), "and has the layout of now from its courier");
    wait_until(unsaved(&f, 1) == 0);
    exchange(&f, 5);
    ok(read_all(&f, 0) && read_all(&f, 1), "all bytes are right");
    fake_end(&f);
}

static void remove_layouts(struct fake *f, uint32_t node)
{
    const char *state = f->node[node].state;
    DIR *dir = opendir(state);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (strncmp(entry->d_name, "layout-", 7) == 0)
            unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
}

/* A node lacks all layouts, also that of the world. */
static void test_lacking(void)
{
    struct fake f;
    struct layout *layout;
    begin(&f);
    struct digest first = layout_of(&f, 0), nobodys = first;
    for (uint64_t epoch = 1; epoch <= 4; epoch++)
        exchange(&f, epoch);
    nobodys.byte[0] ^= 1;
    struct digest now = layout_of(&f, 0);
    fake_leave(&f, 1);
    fake_close(&f, 1);
    remove_layouts(&f, 1);
    fake_open(&f, 1, true);
    fake_resume(&f, 1);
    ok(has(&f, 1, &now), "a server without any layout has that of now from its courier");
    is_int(peers_layout(f.node[1].peers, &first, &layout), 0, "and an old one from another node");
    ok(layout_is(layout, &first), "the right one");
    layout_close(layout);
    is_int(peers_layout(f.node[1].peers, &nobodys, &layout), -ENOENT, "what nobody has is not found");
    fake_leave(&f, 0);
    is_int(peers_layout(f.node[1].peers, &first, &layout), 0, "it is kept here from now on");
    layout_close(layout);
    fake_end(&f);
}

static bool is_saved_at(struct fake *f, uint32_t node, struct shelf *shelf, uint64_t k)
{
    struct world *w;
    bool saved = world_load(f->node[node].state, shelf, set.catalog, &w) == 0;
    uint64_t last = saved ? w->last.k : 0;
    if (saved)
        world_put(w);
    return saved && last == k;
}

static void write_world(const char *path, const char *text)
{
    if (file_write_atomic(AT_FDCWD, path, text, strlen(text), 0600))
        bail_out("write %s", path);
}

static void test_file(void)
{
    struct fake f;
    struct world *w;
    char path[sizeof f.node[1].state + 8], a[DIGEST_TEXT], b[DIGEST_TEXT], text[2048], whole[2048];
    begin(&f);
    stage(&f, 10);
    deal_until_settled(&f, 10);
    struct shelf *shelf;
    if (shelf_create(f.node[1].state, &shelf))
        bail_out("a shelf");
    wait_until(is_saved_at(&f, 1, shelf, f.last.k));
    snprintf(path, sizeof path, "%s/world", f.node[1].state);
    CLEANUP_STR struct str saved = STR_INIT;
    if (file_read(AT_FDCWD, path, sizeof whole - 100, &saved) || !saved.data)
        bail_out("read %s", path);
    is_int(world_load(f.node[1].state, shelf, set.catalog, &w), 0, "a world is loaded");
    ok(!memcmp(&w->last, &f.last, sizeof f.last) && w->before && (f.last.k < 2 || w->earlier), "with its last turn");
    world_put(w);
    digest_format(&f.layout, a);
    digest_format(&f.last.before, b);
    static const char *const turns[] = {"turn 1 2 1000001 1 1", "turn 1 4 0 1 1", "turn x 2 0 1 1", "turns 1 2 0 1 1",
                                        "turn 1 2 0 1"};
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        snprintf(text, sizeof text, "world 3 %s %s 1\n%s %s %s %s\n", a, a, turns[i], b, b, a);
        write_world(path, text);
        is_int(world_load(f.node[1].state, shelf, set.catalog, &w), -EBADMSG, "no world: %s", turns[i]);
    }
    static const char *const heads[][2] = {{"world 2 ", " 1\n"}, {"", " 1\n"},          {"world 3 ", "\n"},
                                           {"world 3 ", " 1"},   {"world 3 ", " 1 \n"}, {"world 3 ", " 7\n"}};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        snprintf(text, sizeof text, "%s%s %s%s", heads[i][0], a, a, heads[i][1]);
        write_world(path, text);
        ok(world_load(f.node[1].state, shelf, set.catalog, &w) < 0, "nor with another head: %zu", i);
    }
    snprintf(whole, sizeof whole, "%s\n", saved.data);
    write_world(path, whole);
    is_int(world_load(f.node[1].state, shelf, set.catalog, &w), -EBADMSG, "nor with more behind it");
    shelf_destroy(shelf);
    fake_end(&f);
}

static struct {
    struct fake *f;
    _Atomic uint32_t wrong, rounds;
    _Atomic bool over;
} reading;

static void *read_on(void *number)
{
    while (!atomic_load(&reading.over)) {
        if (!read_all(reading.f, (uint32_t)(uintptr_t)number % NODES))
            atomic_fetch_add(&reading.wrong, 1);
        atomic_fetch_add(&reading.rounds, 1);
    }
    return NULL;
}

static void test_readers(void)
{
    struct fake f;
    pthread_t reader[READERS];
    begin(&f);
    reading.f = &f;
    stage(&f, 10);
    for (uintptr_t i = 0; i < READERS; i++)
        if (pthread_create(&reader[i], NULL, read_on, (void *)i))
            bail_out("a thread");
    wait_until(atomic_load(&reading.rounds) >= READERS);
    int turns = deal_until_settled(&f, 10);
    uint32_t rounds = atomic_load(&reading.rounds);
    wait_until(atomic_load(&reading.rounds) >= rounds + READERS);
    atomic_store(&reading.over, true);
    for (int i = 0; i < READERS; i++)
        pthread_join(reader[i], NULL);
    is_uint(atomic_load(&reading.wrong), 0, "readers see nothing of %d turns", turns);
    is_uint(unowned(&f, 0), 0, "everything has an owner");
    fake_end(&f);
}

int main(void)
{
    make_dataset();
    test_all();
    test_nothing_before();
    test_restarted();
    test_resumed();
    test_nonsense();
    test_exchange();
    test_left_behind();
    test_failure();
    test_not_all();
    test_two_jobs();
    test_unsaved();
    test_lacking();
    test_file();
    test_readers();
    dataset_end(&set);
    return done_testing();
}
