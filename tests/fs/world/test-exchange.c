/* Turns that somebody asks for: the request has the turn or a reason, also where a node fails, dies or cannot save. */
#include "tests/fs/base/moved-clock.h"
#include "tests/fs/world/turning.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/world/layout.h"
#include "tests/lib/tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { ENOUGH = 3600 }; /* seconds: longer than any machine needs */

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
    atomic_bool over;
};

static void *ask_for_turn(void *argument)
{
    struct asker *a = argument;
    const struct turn_patience patience = {.deadline = clock_now() + a->seconds * SECOND};
    a->error = peers_turn(a->f->node[a->node].peers, &a->turn, &patience, &a->record, &a->trouble);
    atomic_store(&a->over, true);
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

/* Asked for by node 1, and taken by all. */
static void exchange(struct fake *f, uint64_t epoch)
{
    struct turn turn = an_exchange(epoch);
    struct digest layout;
    struct asker asker;
    uint64_t k = f->last.k + 1;
    uint32_t before = atomic_load(&f->turns_asked);
    asker_start(&asker, f, 1, &turn, ENOUGH);
    wait_until(atomic_load(&f->turns_asked) != before);
    uint64_t asked_k;
    struct turn asked = fake_asked(f, &asked_k);
    if (!turn_same(&asked, &turn) || asked_k != k || !turning_compute(f, &turn, &layout))
        bail_out("no turn");
    for (uint32_t i = 0; i < f->nodes; i++)
        fake_settle(f, i, &turn, k, &layout);
    is_int(asker_end(&asker), 0, "who asked for turn %ju has it", (uintmax_t)k);
    ok(digest_equal(&asker.record.after, &layout) && fake_turns(f, 0) == k && fake_turns(f, 1) == k,
       "when all nodes have taken it");
}

static void test_exchange(void)
{
    struct fake f;
    struct turn turn = an_exchange(1), none = {0};
    struct turn_record record;
    uint64_t room;
    fake_begin(&f, &turning_set, NODES, turning_ram, LONG, NULL);
    is_int(ask_turn(&f, 0, &none, ENOUGH, NULL), -EINVAL, "there is no turn without a cause");
    is_int(ask_turn(&f, 0, &turn, ENOUGH, &record), 0, "alone");
    is_uint(record.k, 0, "nothing turns");
    fake_join(&f, 1);
    turning_stage(&f, 10);
    turning_deal_all(&f, 10);
    struct digest before = turning_layout(&f, 0);
    uint64_t k = fake_turns(&f, 0), samples = fake_samples(&f);
    exchange(&f, 1);
    is_int(ask_turn(&f, 0, &turn, ENOUGH, &record), 0, "the newest turn, asked for again on another node");
    ok(record.k == k + 1 && digest_equal(&record.before, &before), "is known there");
    ok(turning_has(&f, 0, &record.after) && turning_has(&f, 1, &record.after) && !digest_equal(&record.after, &before),
       "and all have its layout");
    struct world_view view = fake_view(&f, 1);
    ok(view.before && digest_equal(layout_digest(view.before), &before), "and still that before");
    peers_view_release(&view);
    uint32_t asked = atomic_load(&f.turns_asked);
    is_int(ask_turn(&f, 1, &turn, ENOUGH, NULL), 0, "one that was taken");
    is_uint(atomic_load(&f.turns_asked), asked, "is not asked for again");
    ok(turning_reads(&f, 0) && turning_reads(&f, 1), "all bytes are right");
    f.last.k += 5;
    is_int(fake_ready(&f, 0, &turn, &room), -ESTALE, "a server that has missed turns is not ready");
    f.last.k -= 5;
    exchange(&f, 2);
    ok(turning_reads(&f, 0) && turning_reads(&f, 1), "and after another one");
    is_uint(fake_samples(&f), samples, "and nothing came from the source");
    turning_restart(&f, 1);
    turn = an_exchange(2);
    is_int(ask_turn(&f, 1, &turn, ENOUGH, &record), 0, "the next server knows of the newest");
    ok(record.k == k + 2 && fake_turns(&f, 1) == k + 2, "and of its number");
    fake_push(&f, 0, &(struct ring_message){.kind = RING_GONE, .node = 1});
    turn = an_exchange(100);
    wait_until(ask_turn(&f, 0, &turn, ENOUGH, NULL) == -ENOTCONN);
    pass("nothing turns without a node");
    fake_end(&f);
}

/* A server dies when it has computed, others turn, and its successor comes when that is over. */
static void test_left_behind(void)
{
    struct fake f;
    struct turn turn = an_exchange(1);
    struct digest layout;
    turning_begin(&f);
    turning_stage(&f, 10);
    turning_deal_all(&f, 10);
    struct store_stats stats;
    fake_stats(&f, 0, &stats);
    uint64_t k = fake_turns(&f, 0), samples = stats.source_samples;
    if (!turning_compute(&f, &turn, &layout))
        bail_out("no turn");
    fake_leave(&f, 1);
    fake_close(&f, 1);
    f.last = (struct turn_record){turn, k + 1, f.last.before, f.layout, layout};
    f.layout = layout;
    fake_open(&f, 1, true);
    is_uint(fake_turns(&f, 1), k, "a server that is restarted is where the one before was");
    fake_resume(&f, 1);
    fake_settle(&f, 0, &turn, k + 1, &layout);
    ok(fake_turns(&f, 1) == k + 1 && turning_has(&f, 1, &layout), "and turns when it hears what the others did");
    exchange(&f, 2);
    is_uint(fake_turns(&f, 1), k + 2, "the next turn is all nodes' again");
    ok(turning_reads(&f, 0) && turning_reads(&f, 1), "all bytes are right");
    fake_stats(&f, 0, &stats);
    is_uint(stats.source_samples, samples, "and nothing came from the source");
    fake_end(&f);
}

/* --- what fails, and how long who asks waits --- */

static bool has_failed(struct fake *f, uint32_t node)
{
    struct world_view view = fake_view(f, node);
    bool failed = view.failed.status == -ENOMEM;
    peers_view_release(&view);
    return failed;
}

static void test_failure(void)
{
    struct fake f;
    struct turn turn = an_exchange(1);
    struct asker asker;
    turning_begin(&f);
    uint32_t before = atomic_load(&f.turns_asked);
    clock_stand();
    asker_start(&asker, &f, 1, &turn, 2);
    wait_until(atomic_load(&f.turns_asked) != before);
    struct turn_outcome failed = {.record = {.turn = turn, .after = f.layout}, .status = -ENOMEM, .node = 1};
    for (uint32_t i = 0; i < f.nodes; i++)
        fake_outcome(&f, i, &failed);
    for (uint32_t i = 0; i < f.nodes; i++)
        wait_until(has_failed(&f, i));
    for (int i = 0; i < 19; i++) {
        clock_add(SECOND / 10);
        wait_step(0, "");
    }
    wait_until(atomic_load(&f.turns_asked) - before >= 2);
    ok(!atomic_load(&asker.over), "who asked for a turn that failed waits");
    clock_add(SECOND / 10);
    is_int(asker_end(&asker), -ENOMEM, "and hears why, when the time is over that it wanted to wait");
    uint32_t asked = atomic_load(&f.turns_asked) - before;
    ok(asked <= 5, "it was asked for again, less and less often: %u times", asked);
    clock_run();
    struct world_view view = fake_view(&f, 0);
    ok(view.failed.status == -ENOMEM && view.failed.node == 1, "the other node knows of it");
    peers_view_release(&view);
    exchange(&f, 2);
    view = fake_view(&f, 0);
    is_int(view.failed.status, 0, "until a turn is taken");
    peers_view_release(&view);
    turn = an_exchange(3);
    is_int(ask_turn(&f, 0, &turn, 0, NULL), -ETIMEDOUT, "where nobody answers the wait ends");
    view = fake_view(&f, 0);
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
    turning_begin(&f);
    uint32_t before = atomic_load(&f.turns_asked);
    asker_start(&here, &f, 0, &turn, 1);
    asker_start(&there, &f, 1, &turn, ENOUGH);
    wait_until(atomic_load(&f.turns_asked) >= before + 2);
    if (!turning_compute(&f, &turn, &layout))
        bail_out("no turn");
    uint64_t k = f.last.k + 1;
    fake_settle(&f, 0, &turn, k, &layout);
    clock_add(SECOND);
    is_int(asker_end(&here), -ETIMEDOUT, "one node has not taken the turn: who asked does not wait for ever");
    is_uint(fake_turns(&f, 0), k, "and sees that its own has");
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
    turning_begin(&f);
    uint32_t before = atomic_load(&f.turns_asked);
    asker_start(&asker[0], &f, 0, &turn[0], ENOUGH);
    asker_start(&asker[1], &f, 1, &turn[1], ENOUGH);
    wait_until(atomic_load(&f.turns_asked) >= before + 2);
    uint64_t k = f.last.k;
    for (int i = 0; i < 2; i++) {
        if (!turning_compute(&f, &turn[i], &layout))
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
    struct world_view view = fake_view(f, node);
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
    turning_begin(&f);
    struct digest first = turning_layout(&f, 1), second;
    wait_until(is_saved(&f, 1));
    set_state(&f, false);
    exchange(&f, 1);
    second = turning_layout(&f, 1);
    wait_until(unsaved(&f, 1) == -ENOENT);
    pass("a node that cannot save takes the turn all the same, and says so");
    is_int(unsaved(&f, 0), 0, "which the other one can");
    for (uint64_t epoch = 2; epoch <= 4; epoch++)
        exchange(&f, epoch);
    struct digest now = turning_layout(&f, 0);
    ok(turning_has(&f, 1, &now), "so it does with those after it");
    is_int(peers_layout(f.node[1].peers, &second, &layout), 0, "it knows the layouts that it has not saved");
    layout_close(layout);
    is_int(peers_layout(f.node[1].peers, &first, &layout), 0,
           "what went with the directory it gets from the other node");
    layout_close(layout);
    ok(turning_reads(&f, 0) && turning_reads(&f, 1), "all bytes are right");
    set_state(&f, true);
    fake_leave(&f, 1);
    fake_close(&f, 1);
    fake_open(&f, 1, true);
    ok(turning_has(&f, 1, &first), "the server after it finds what was saved last");
    fake_resume(&f, 1);
    ok(fake_turns(&f, 1) == f.last.k && turning_has(&f, 1, &now), "and has the layout of now from its courier");
    wait_until(unsaved(&f, 1) == 0);
    exchange(&f, 5);
    ok(turning_reads(&f, 0) && turning_reads(&f, 1), "all bytes are right");
    fake_end(&f);
}

/* What cannot be saved is saved later, also while frames arrive all the time. */
static void test_saved_later(void)
{
    struct fake f;
    uint64_t room;
    turning_begin(&f);
    set_state(&f, false);
    exchange(&f, 1);
    wait_until(unsaved(&f, 1) == -ENOENT);
    set_state(&f, true);
    struct turn turn = an_exchange(2);
    for (int i = 0; unsaved(&f, 1); i++) {
        fake_ready(&f, 1, &turn, &room);
        clock_add(SECOND / 10);
        wait_step(i, "what could not be saved is saved");
    }
    ok(is_saved(&f, 1), "what could not be saved is saved while its courier goes on asking");
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
    turning_begin(&f);
    struct digest first = turning_layout(&f, 0), nobodys = first;
    for (uint64_t epoch = 1; epoch <= 4; epoch++)
        exchange(&f, epoch);
    nobodys.byte[0] ^= 1;
    struct digest now = turning_layout(&f, 0);
    fake_leave(&f, 1);
    fake_close(&f, 1);
    remove_layouts(&f, 1);
    fake_open(&f, 1, true);
    fake_resume(&f, 1);
    ok(turning_has(&f, 1, &now), "a server without any layout has that of now from its courier");
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
    bool saved = world_load(f->node[node].state, shelf, turning_set.catalog, &w) == 0;
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
    turning_begin(&f);
    turning_stage(&f, 10);
    turning_deal_all(&f, 10);
    struct shelf *shelf;
    if (shelf_create(f.node[1].state, &shelf))
        bail_out("a shelf");
    wait_until(is_saved_at(&f, 1, shelf, f.last.k));
    snprintf(path, sizeof path, "%s/world", f.node[1].state);
    CLEANUP_STR struct str saved = STR_INIT;
    if (file_read(AT_FDCWD, path, sizeof whole - 100, &saved) || !saved.data)
        bail_out("read %s", path);
    is_int(world_load(f.node[1].state, shelf, turning_set.catalog, &w), 0, "a world is loaded");
    ok(!memcmp(&w->last, &f.last, sizeof f.last) && w->before && (f.last.k < 2 || w->earlier), "with its last turn");
    world_put(w);
    digest_format(&f.layout, a);
    digest_format(&f.last.before, b);
    static const char *const turns[] = {"turn 1 2 1000001 1 1", "turn 1 4 0 1 1", "turn x 2 0 1 1", "turns 1 2 0 1 1",
                                        "turn 1 2 0 1"};
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        snprintf(text, sizeof text, "world 3 %s %s 1\n%s %s %s %s\n", a, a, turns[i], b, b, a);
        write_world(path, text);
        is_int(world_load(f.node[1].state, shelf, turning_set.catalog, &w), -EBADMSG, "no world: %s", turns[i]);
    }
    static const char *const heads[][2] = {{"world 2 ", " 1\n"}, {"", " 1\n"},          {"world 3 ", "\n"},
                                           {"world 3 ", " 1"},   {"world 3 ", " 1 \n"}, {"world 3 ", " 7\n"}};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        snprintf(text, sizeof text, "%s%s %s%s", heads[i][0], a, a, heads[i][1]);
        write_world(path, text);
        ok(world_load(f.node[1].state, shelf, turning_set.catalog, &w) < 0, "nor with another head: %zu", i);
    }
    snprintf(whole, sizeof whole, "%s\n", saved.data);
    write_world(path, whole);
    is_int(world_load(f.node[1].state, shelf, turning_set.catalog, &w), -EBADMSG, "nor with more behind it");
    shelf_destroy(shelf);
    fake_end(&f);
}

int main(void)
{
    turning_set_up();
    test_exchange();
    test_left_behind();
    test_failure();
    test_not_all();
    test_two_jobs();
    test_unsaved();
    test_saved_later();
    test_lacking();
    test_file();
    dataset_end(&turning_set);
    return done_testing();
}
