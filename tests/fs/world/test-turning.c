/* A turn of the layout in a living world, for room: what servers answer, when they turn, and that reads are right. */
#include "tests/fs/world/turning.h"

#include "tests/lib/tap.h"

#include <errno.h>
#include <pthread.h>

enum { READERS = 4 };

static void test_all(void)
{
    struct fake f;
    turning_begin(&f);
    uint64_t none = turning_unowned(&f, 0);
    ok(none > FILES / 3, "%ju of %d files find no room, as they are", (uintmax_t)none, FILES);
    turning_stage(&f, 10);
    is_uint(fake_samples(&f), FILES - none, "staging reads what has an owner");
    struct turn turn = turning_for_room(10);
    uint64_t room;
    ok(fake_ready(&f, 0, &turn, &room) == 0 && room > turning_ram[0] / 2, "and more than half of the room is left");
    int turns = turning_deal_all(&f, 10);
    ok(turns >= 1, "dealt in %d turns", turns);
    is_uint(turning_unowned(&f, 0), 0, "everything has an owner");
    is_uint(turning_unowned(&f, 1), 0, "on all nodes");
    is_uint(fake_samples(&f), FILES, "what was dealt was staged as well");
    ok(turning_reads(&f, 0) && turning_reads(&f, 1), "all bytes are right");
    is_uint(fake_samples(&f), FILES, "and nothing came from the source");
    turning_stage(&f, 100);
    is_uint(fake_samples(&f), FILES, "staging again reads nothing");
    fake_end(&f);
}

static void test_nothing_before(void)
{
    struct fake f;
    struct digest layout, before;
    turning_begin(&f);
    turning_stage(&f, 10);
    before = turning_layout(&f, 0);
    ok(turning_deal(&f, 10, &layout) && !digest_equal(&before, &layout), "the servers agree on another layout");
    ok(turning_has(&f, 0, &before) && turning_has(&f, 1, &before), "and still have that before");
    turning_settle_all(&f, 10, 0, &before);
    ok(turning_has(&f, 0, &before) && turning_has(&f, 1, &before), "which they keep when it has failed");
    ok(turning_staged(&f, 0, 10) && turning_staged(&f, 1, 10), "nothing more is staged then");
    ok(turning_deal(&f, 12, &layout), "another deal");
    store_stage_stop(f.node[1].store);
    turning_take(&f, 12, &layout);
    ok(turning_has(&f, 0, &layout) && turning_has(&f, 1, &layout), "the servers turn");
    wait_until(turning_staged(&f, 0, 14));
    ok(turning_staged(&f, 1, 10), "but who has stopped staging does not begin again");
    ok(turning_reads(&f, 0) && turning_reads(&f, 1), "all bytes are right");
    is_uint(fake_samples(&f), FILES - turning_unowned(&f, 0) + 2 * turning_unowned(&f, 0),
            "each owned file was read once");
    fake_end(&f);
}

/* The server that has dealt is not the one that turns. */
static void test_restarted(void)
{
    struct fake f;
    struct digest layout;
    turning_begin(&f);
    turning_stage(&f, 10);
    turning_deal(&f, 10, &layout);
    turning_restart(&f, 1);
    ok(!turning_has(&f, 1, &layout), "a new server comes with the layout before");
    turning_take(&f, 10, &layout);
    ok(turning_has(&f, 1, &layout), "and finds the new one where the one before has saved it");
    turning_deal(&f, 12, &layout);
    turning_settle(&f, 0, 12, 2, &layout);
    wait_until(turning_settled(&f, 0) == 12);
    turning_restart(&f, 1);
    ok(turning_has(&f, 1, &layout), "one that comes when all have turned resumes with the new one");
    ok(turning_reads(&f, 0) && turning_reads(&f, 1), "all bytes are right");
    fake_end(&f);
}

static bool is_degraded(struct fake *f, uint32_t node)
{
    struct world_view view = fake_view(f, node);
    bool degraded = view.state == WORLD_DEGRADED;
    peers_view_release(&view);
    return degraded;
}

/* The courier's link breaks when the server has dealt; the others turn; the same server resumes with what they have. */
static void test_resumed(void)
{
    struct fake f;
    struct digest layout;
    turning_begin(&f);
    turning_stage(&f, 10);
    turning_deal(&f, 10, &layout);
    fake_leave(&f, 1);
    turning_settle(&f, 0, 10, 1, &layout);
    wait_until(turning_staged(&f, 0, 12));
    wait_until(is_degraded(&f, 1));
    fake_resume(&f, 1);
    ok(turning_has(&f, 1, &layout), "a server whose link was broken resumes with what the others have");
    wait_until(turning_staged(&f, 1, 12));
    is_uint(fake_samples(&f), FILES - turning_unowned(&f, 0), "and stages what was dealt to it meanwhile");
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
    } m = {.turn = {1, 1, turning_for_room(5)}};
    struct turn_outcome outcome = {.record = {.turn = m.turn.turn, .k = 1, .after = nobodys}};
    struct turn_record *record = &outcome.record;
    turning_begin(&f);
    record->before = turning_layout(&f, 0);
    send_nonsense(&f, 1, MESSAGE_BEGIN, &m, sizeof m.turn - 8, "the beginning of no turn");
    send_nonsense(&f, 0, MESSAGE_COMPUTE, &m, sizeof m, "rooms of more nodes than there are");
    send_nonsense(&f, 0, MESSAGE_COMPUTE, &m, sizeof m.turn + 8, "or of fewer");
    send_nonsense(&f, 0, MESSAGE_SETTLED, &outcome, 8, "a settlement without a layout");
    send_nonsense(&f, 1, MESSAGE_SETTLED, &outcome, sizeof outcome, "a layout that nobody has computed");
    send_nonsense(&f, 1, MESSAGE_LIVE, NULL, 0, "what has its place before a world lives");
    m.turn.turn.cause = 0;
    send_nonsense(&f, 1, MESSAGE_BEGIN, &m, sizeof m.turn, "a turn without a cause");
    record->after = turning_layout(&f, 0);
    fake_leave(&f, 0);
    fake_leave(&f, 1);
    wait_until(is_degraded(&f, 0) && is_degraded(&f, 1));
    fake_join(&f, 2);
    record->before = turning_layout(&f, 1);
    send_nonsense(&f, 1, MESSAGE_SETTLED, &outcome, sizeof outcome, "a layout of other groups, which is there");
    ok(turning_reads(&f, 0) && turning_reads(&f, 1), "a new world can be joined each time, and all bytes are right");
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
        if (!turning_reads(reading.f, (uint32_t)(uintptr_t)number % NODES))
            atomic_fetch_add(&reading.wrong, 1);
        atomic_fetch_add(&reading.rounds, 1);
    }
    return NULL;
}

static void test_readers(void)
{
    struct fake f;
    pthread_t reader[READERS];
    turning_begin(&f);
    reading.f = &f;
    turning_stage(&f, 10);
    for (uintptr_t i = 0; i < READERS; i++)
        if (pthread_create(&reader[i], NULL, read_on, (void *)i))
            bail_out("a thread");
    wait_until(atomic_load(&reading.rounds) >= READERS);
    int turns = turning_deal_all(&f, 10);
    uint32_t rounds = atomic_load(&reading.rounds);
    wait_until(atomic_load(&reading.rounds) >= rounds + READERS);
    atomic_store(&reading.over, true);
    for (int i = 0; i < READERS; i++)
        pthread_join(reader[i], NULL);
    is_uint(atomic_load(&reading.wrong), 0, "readers see nothing of %d turns", turns);
    is_uint(turning_unowned(&f, 0), 0, "everything has an owner");
    fake_end(&f);
}

int main(void)
{
    turning_set_up();
    test_all();
    test_nothing_before();
    test_restarted();
    test_resumed();
    test_nonsense();
    test_readers();
    dataset_end(&turning_set);
    return done_testing();
}
