/* Many nodes in one process: every byte right, each file read once in the whole world, and what peers, couriers and the
 * source can do to that. */
#include "tests/fs/world/fake.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/world/world.h"
#include "tests/lib/tap.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define MIB (1ull << 20)
#define SECOND 1000000000ull
#define LONG (60 * SECOND) /* a timeout that no test waits for */

enum { SMALL = 40 };

static struct dataset set;

static void make_dataset(void)
{
    dataset_begin(&set);
    for (int i = 0; i < SMALL; i++) {
        char name[64];
        snprintf(name, sizeof name, "d%d/%s-%02d", i % 4, i % 3 ? "random" : "sparse", i);
        dataset_add(&set, name, i ? (uint64_t)i * 9973 + 1 : 1);
    }
    dataset_add(&set, "empty", 0);
    dataset_add(&set, "middle", 5 * MIB + 77);
    dataset_add(&set, "sparse-large", 65 * MIB + 12345);
    dataset_scan(&set);
}

/* Files, and the pieces of the large one that are opened each time they are read. */
static uint32_t small_file(uint32_t owner, struct fake *f, const struct world_view *view, uint32_t skip)
{
    struct extents *e;
    uint32_t found = UINT32_MAX;
    if (extents_create(f->dataset->catalog, &e))
        bail_out("extents");
    for (uint32_t file = 0; file < catalog_files(f->dataset->catalog) && found == UINT32_MAX; file++) {
        uint64_t size = dataset_size(f->dataset, file);
        if (size > 100000 && size < MIB && directory_owner(view->owners, 0, extents_first(e, file)) == owner && !skip--)
            found = file;
    }
    extents_destroy(e);
    if (found == UINT32_MAX)
        bail_out("node %u owns too little", owner);
    return found;
}

/* The n-th file that this node owns. */
static uint32_t owned_by(struct fake *f, uint32_t owner, uint32_t n)
{
    struct world_view view;
    if (peers_view(f->node[0].peers, &view) || !view.known)
        bail_out("no world");
    uint32_t file = small_file(owner, f, &view, n);
    peers_view_release(&view);
    return file;
}

static struct span whole(uint32_t file)
{
    uint64_t size = dataset_size(&set, file);
    return (struct span){.file = file, .length = (uint32_t)(size < SPAN_BYTES ? size : SPAN_BYTES)};
}

static int read_file(struct fake *f, uint32_t node, uint32_t file, enum place *place)
{
    struct span span = whole(file);
    return read_check(f->node[node].store, &set, &span, place);
}

static bool read_all(struct fake *f, uint32_t node)
{
    bool right = true;
    for (uint32_t file = 0; file < catalog_files(set.catalog); file++) {
        uint64_t size = dataset_size(&set, file);
        for (uint64_t at = 0; at < size; at += SPAN_BYTES - 4096) {
            uint64_t left = size - at;
            struct span span = {file, (uint32_t)(left < SPAN_BYTES ? left : SPAN_BYTES), at};
            int error = read_check(f->node[node].store, &set, &span, NULL);
            if (error)
                diag("node %u, file %u at %llu: %s", node, file, (unsigned long long)at, strerror(-error));
            right &= !error;
        }
    }
    return right;
}

static uint64_t reads_from(struct fake *f, uint32_t node, enum place place)
{
    struct store_stats stats;
    fake_stats(f, node, &stats);
    return stats.reads[place];
}

static uint64_t source_bytes(struct fake *f)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < f->nodes; i++) {
        struct store_stats stats;
        fake_stats(f, i, &stats);
        bytes += stats.source_bytes;
    }
    return bytes;
}

static enum world_state state_of(struct fake *f, uint32_t node)
{
    struct world_view view;
    if (peers_view(f->node[node].peers, &view))
        bail_out("no view");
    enum world_state state = view.state;
    peers_view_release(&view);
    return state;
}

static void await_state(struct fake *f, uint32_t node, enum world_state state)
{
    for (int i = 0; state_of(f, node) != state; i++)
        wait_step(i, "a node is in another state");
}

static void leave_all(struct fake *f)
{
    for (uint32_t i = 0; i < f->nodes; i++)
        fake_leave(f, i);
    for (uint32_t i = 0; i < f->nodes; i++)
        await_state(f, i, WORLD_DEGRADED);
}

struct counts {
    uint64_t timeouts, bad;
};

static struct counts counts_of(struct fake *f, uint32_t node)
{
    struct world_view view;
    if (peers_view(f->node[node].peers, &view))
        bail_out("no view");
    struct counts counts = {view.timeouts, view.bad};
    peers_view_release(&view);
    return counts;
}

static enum peer_state peer_of(struct fake *f, uint32_t node, uint32_t other)
{
    struct world_view view;
    if (peers_view(f->node[node].peers, &view) || other >= view.nodes)
        bail_out("no view");
    enum peer_state state = view.peer[other].state;
    peers_view_release(&view);
    return state;
}

static void begin(struct fake *f, uint32_t nodes, uint64_t timeout, const char *faults)
{
    uint64_t ram[FAKE_NODES];
    for (int i = 0; i < FAKE_NODES; i++)
        ram[i] = 120 * MIB;
    fake_begin(f, &set, nodes, ram, timeout, faults);
}

/* Tests. */

static void test_alone(void)
{
    struct fake f;
    begin(&f, 1, LONG, NULL);
    is_int(state_of(&f, 0), WORLD_ALONE, "a node that was in no world is alone");
    ok(read_all(&f, 0), "and reads all");
    uint64_t bytes = source_bytes(&f);
    ok(read_all(&f, 0), "twice");
    is_uint(source_bytes(&f), bytes, "and keeps all of it");
    is_int(peers_command(f.node[0].peers, WORLD_STAGE, 1), -ENOTCONN, "there is nobody to be told anything");
    fake_end(&f);
}

static void test_world(uint32_t nodes, uint32_t groups)
{
    struct fake f;
    begin(&f, nodes, LONG, NULL);
    fake_join(&f, groups);
    bool right = true;
    for (uint32_t i = 0; i < nodes; i++) {
        is_int(state_of(&f, i), WORLD_JOINED, "%u nodes: node %u is joined", nodes, i);
        right &= read_all(&f, i);
    }
    ok(right, "every byte is right on each of %u nodes in %u groups", nodes, groups);
    is_uint(source_bytes(&f), groups * catalog_bytes(set.catalog), "the source was read once for each group");
    for (uint32_t i = 0; i < nodes; i++)
        right &= read_all(&f, i);
    ok(right, "and again");
    is_uint(source_bytes(&f), groups * catalog_bytes(set.catalog), "which costs nothing at the source");
    uint64_t peers = 0;
    for (uint32_t i = 0; i < nodes; i++)
        peers += reads_from(&f, i, PLACE_PEER);
    ok(nodes == groups || peers > 0, "%llu reads came from peers", (unsigned long long)peers);
    struct counts counts = counts_of(&f, 0);
    ok(!counts.timeouts && !counts.bad, "none was late or bad");
    fake_end(&f);
}

/* Only what a node owns is in its tiers. */
static void test_kept(void)
{
    struct fake f;
    begin(&f, 2, LONG, NULL);
    fake_join(&f, 1);
    read_all(&f, 0);
    read_all(&f, 1);
    uint32_t file = owned_by(&f, 1, 0);
    ok(!store_holds(f.node[0].store, file, 0) && store_holds(f.node[1].store, file, 0), "a file lies with its owner");
    uint64_t trimmed = store_trim(f.node[0].store, 0, UINT32_MAX, true);
    is_uint(trimmed, 0, "nothing that others own is held");
    fake_end(&f);
}

static void test_capacity(void)
{
    struct fake f;
    const uint64_t ram[] = {40 * MIB, 0, 20 * MIB};
    fake_begin(&f, &set, 3, ram, LONG, NULL);
    fake_join(&f, 1);
    bool right = true;
    for (uint32_t i = 0; i < 3; i++)
        right &= read_all(&f, i);
    ok(right, "every byte is right where one node has no room and all together too little");
    fake_end(&f);
}

static void test_bad(enum fake_fault fault, const char *what)
{
    struct fake f;
    enum place place;
    begin(&f, 2, LONG, NULL);
    fake_join(&f, 1);
    uint32_t file = owned_by(&f, 1, 0);
    atomic_store(&f.node[1].times, 1);
    atomic_store(&f.node[1].fault, (uint32_t)fault);
    is_int(read_file(&f, 0, file, &place), 0, "%s: the read is right", what);
    is_int(place, PLACE_SOURCE, "it went to the source");
    is_uint(counts_of(&f, 0).bad, fault != FAKE_ERROR, "it was counted");
    is_int(read_file(&f, 0, file, &place), 0, "the next read is right");
    is_int(place, PLACE_PEER, "and comes from the peer again");
    fake_end(&f);
}

static void test_twice(void)
{
    struct fake f;
    enum place place;
    begin(&f, 2, LONG, NULL);
    fake_join(&f, 1);
    atomic_store(&f.node[1].times, 1000);
    atomic_store(&f.node[1].fault, FAKE_TWICE);
    bool right = true;
    for (uint32_t i = 0; i < 40; i++)
        right &= read_file(&f, 0, owned_by(&f, 1, i % 4), &place) == 0 && place == PLACE_PEER;
    ok(right, "answers that come twice count once");
    is_int(state_of(&f, 0), WORLD_JOINED, "and do no harm");
    fake_end(&f);
}

static void test_silence(void)
{
    const uint64_t timeout = SECOND;
    struct fake f;
    enum place place;
    begin(&f, 3, timeout, NULL);
    fake_join(&f, 1);
    uint32_t file = owned_by(&f, 1, 0), next = owned_by(&f, 1, 1), other = owned_by(&f, 2, 0);
    atomic_store(&f.node[1].times, 1);
    atomic_store(&f.node[1].fault, FAKE_HOLD);
    uint64_t began = clock_now();
    is_int(read_file(&f, 0, next, &place), 0, "a peer that does not answer: the read is right");
    uint64_t took = clock_now() - began;
    is_int(place, PLACE_SOURCE, "from the source");
    ok(took > timeout / 2 && took < timeout + SECOND / 2, "after at most the timeout: %llu ms",
       (unsigned long long)(took / 1000000));
    is_int(peer_of(&f, 0, 1), PEER_SUSPECT, "it is suspected");
    is_uint(counts_of(&f, 0).timeouts, 1, "and counted");
    uint32_t served = atomic_load(&f.node[1].served);
    is_int(read_file(&f, 0, file, &place), 0, "the next one is right");
    ok(place == PLACE_SOURCE && atomic_load(&f.node[1].served) == served, "and does not ask it");
    is_int(read_file(&f, 0, other, &place), 0, "another peer's is right");
    is_int(place, PLACE_PEER, "and is asked of that");
    fake_let_go(&f);
    for (int i = 0; peer_of(&f, 0, 1) != PEER_GOOD; i++)
        wait_step(i, "a late answer clears the suspicion");
    is_int(read_file(&f, 0, file, &place), 0, "once it answered after all");
    is_int(place, PLACE_PEER, "it is asked again");
    fake_end(&f);
}

/* Its slots are given back by nobody, and others' reads need some. */
static void test_swallowed(void)
{
    const uint64_t timeout = SECOND / 2;
    struct fake f;
    enum place place;
    begin(&f, 3, timeout, NULL);
    fake_join(&f, 1);
    atomic_store(&f.node[1].times, 1000);
    atomic_store(&f.node[1].fault, FAKE_SWALLOW);
    uint32_t file = owned_by(&f, 1, 0);
    is_int(read_file(&f, 0, file, &place), 0, "a peer that is gone without a word");
    for (int i = 0; peer_of(&f, 0, 1) == PEER_SUSPECT && i < 6; i++)
        read_file(&f, 0, file, &place);
    is_int(place, PLACE_SOURCE, "its share comes from the source");
    is_int(read_file(&f, 0, owned_by(&f, 2, 0), &place), 0, "others'");
    is_int(place, PLACE_PEER, "from them");
    fake_end(&f);
}

struct reader {
    struct fake *f;
    uint32_t node, file;
    uint64_t offset;
    enum place place;
    int error;
    atomic_bool over;
    pthread_t thread;
};

static void *read_one(void *argument)
{
    struct reader *r = argument;
    struct span span = whole(r->file);
    r->error = read_check(r->f->node[r->node].store, &set, &span, &r->place);
    atomic_store(&r->over, true);
    return NULL;
}

static void start_reader(struct reader *r, struct fake *f, uint32_t node, uint32_t file)
{
    *r = (struct reader){.f = f, .node = node, .file = file};
    if (pthread_create(&r->thread, NULL, read_one, r))
        bail_out("a thread");
}

/* Nodes that are silent all at once take nearly all slots with them: no reader waits for one then. */
static void test_no_slots(void)
{
    enum { SILENT = 5, READERS = 32 };
    const uint64_t timeout = 2 * SECOND;
    struct fake f;
    static struct reader reader[SILENT * READERS];
    enum place place;
    begin(&f, SILENT + 2, timeout, NULL);
    fake_join(&f, 1);
    uint32_t other = owned_by(&f, SILENT + 1, 0);
    for (uint32_t i = 0; i < SILENT; i++) {
        uint32_t file = owned_by(&f, i + 1, 0);
        atomic_store(&f.node[i + 1].times, 1000);
        atomic_store(&f.node[i + 1].fault, FAKE_SWALLOW);
        for (int k = 0; k < READERS; k++)
            start_reader(&reader[i * READERS + (uint32_t)k], &f, 0, file);
    }
    bool right = true;
    for (uint32_t i = 0; i < SILENT * READERS; i++) {
        pthread_join(reader[i].thread, NULL);
        right &= !reader[i].error && reader[i].place == PLACE_SOURCE;
    }
    ok(right, "%d nodes that fall silent at once: every read is right", SILENT);
    uint64_t began = clock_now();
    for (int i = 0; i < 4; i++)
        right &= read_file(&f, 0, other, &place) == 0;
    ok(right && clock_now() - began < timeout, "and then none waits for a slot");
    fake_end(&f);
}

/* The first fetches of a node in its first world: their slots and numbers are known. */
static void say_wait(struct fake *f, uint32_t node, uint32_t slots)
{
    for (uint32_t slot = 0; slot < slots; slot++)
        fake_push(f, node,
                  &(struct ring_message){.kind = RING_FETCHED, .slot = slot, .token = slot + 1, .status = -EAGAIN});
}

static void await_served(struct fake *f, uint32_t node, uint32_t n)
{
    for (int i = 0; atomic_load(&f->node[node].served) < n; i++)
        wait_step(i, "a node answers");
}

/* A read that waited long for a slot, since slow nodes had them all, says nothing about the node that is asked then. */
static void test_late_slot(void)
{
    enum { SLOW = 4, READERS = 32 };
    const uint64_t timeout = 3 * SECOND;
    struct fake f;
    static struct reader reader[SLOW * READERS], late;
    begin(&f, SLOW + 2, timeout, NULL);
    fake_join(&f, 1);
    uint32_t file = owned_by(&f, SLOW + 1, 0);
    is_int(read_file(&f, SLOW + 1, file, NULL), 0, "a node has a file, and need not say WAIT");
    for (uint32_t i = 0; i <= SLOW; i++) {
        atomic_store(&f.node[i + 1].times, 1000);
        atomic_store(&f.node[i + 1].fault, FAKE_HOLD);
    }
    for (uint32_t i = 0; i < SLOW * READERS; i++)
        start_reader(&reader[i], &f, 0, owned_by(&f, i / READERS + 1, 0));
    for (uint32_t i = 0; i < SLOW; i++)
        await_served(&f, i + 1, READERS);
    uint64_t began = clock_now();
    start_reader(&late, &f, 0, file);
    for (bool gone = false; !atomic_load(&late.over);) {
        say_wait(&f, 0, SLOW * READERS);
        if (!gone && clock_now() - began > timeout / 2) {
            fake_let_one_go(&f);
            gone = true;
        }
        nanosleep(&(struct timespec){.tv_nsec = (long)(timeout / 64)}, NULL);
    }
    pthread_join(late.thread, NULL);
    ok(!late.error && late.place == PLACE_SOURCE && clock_now() - began < timeout + SECOND / 2,
       "a read that waited for a slot, and then for an answer, ends in time");
    is_uint(atomic_load(&f.node[SLOW + 1].served), 1, "the node was asked");
    is_int(peer_of(&f, 0, SLOW + 1), PEER_GOOD, "and is not suspected: it had no time to answer");
    fake_let_go(&f);
    bool right = true;
    for (uint32_t i = 0; i < SLOW * READERS; i++) {
        pthread_join(reader[i].thread, NULL);
        right &= !reader[i].error;
    }
    ok(right, "what was held back arrives");
    fake_end(&f);
}

/* A node that answers some, and loses most. */
static void test_lost_answers(void)
{
    enum { READERS = 32 };
    const uint64_t timeout = SECOND;
    struct fake f;
    static struct reader reader[READERS];
    enum place place;
    begin(&f, 2, timeout, NULL);
    fake_join(&f, 1);
    uint32_t file = owned_by(&f, 1, 0);
    atomic_store(&f.node[1].times, READERS);
    atomic_store(&f.node[1].fault, FAKE_SWALLOW);
    for (int i = 0; i < READERS; i++)
        start_reader(&reader[i], &f, 0, file);
    for (int i = 0; counts_of(&f, 0).timeouts < READERS - 1; i++) {
        say_wait(&f, 0, 1);
        wait_step(i, "all answers but one are lost");
    }
    is_int(peer_of(&f, 0, 1), PEER_GOOD, "a node that is heard of is good, though its answers are lost");
    uint64_t began = clock_now();
    is_int(read_file(&f, 0, file, &place), 0, "the next read");
    ok(place == PLACE_SOURCE && clock_now() - began < timeout / 2, "waits for none of its slots");
    for (uint32_t slot = 0; slot < READERS; slot++)
        fake_push(&f, 0, &(struct ring_message){.kind = RING_FETCHED, .slot = slot, .token = slot + 1, .status = -EIO});
    bool right = true;
    for (int i = 0; i < READERS; i++) {
        pthread_join(reader[i].thread, NULL);
        right &= !reader[i].error && reader[i].place == PLACE_SOURCE;
    }
    ok(right, "the lost ones came from the source");
    atomic_store(&f.node[1].fault, FAKE_NONE);
    is_int(read_file(&f, 0, file, &place), 0, "once the slots are back");
    is_int(place, PLACE_PEER, "it is asked again");
    fake_end(&f);
}

/* What an owner answers to silent nodes stays in its slots. */
static void ask_silently(struct fake *f, uint32_t nodes, uint32_t questions, uint32_t file)
{
    for (uint32_t i = 0; i < nodes * questions; i++)
        fake_ask_silently(f, 0, i % nodes + 1, file);
}

static void test_silent_askers(void)
{
    enum { ASKERS = 4, QUESTIONS = 40, EACH = RING_OUT / 4 };
    const uint64_t timeout = SECOND;
    struct fake f;
    enum place place;
    begin(&f, ASKERS + 2, timeout, NULL);
    fake_close(&f, ASKERS + 1);
    f.node[ASKERS + 1].config.peer_timeout = LONG;
    fake_open(&f, ASKERS + 1, false);
    fake_join(&f, 1);
    uint32_t file = owned_by(&f, 0, 0), next = owned_by(&f, 0, 1);
    is_int(read_file(&f, 0, file, &place), 0, "an owner has a file");
    ask_silently(&f, ASKERS / 2, QUESTIONS, file);
    for (int i = 0; atomic_load(&f.refused) < ASKERS / 2 * (QUESTIONS - EACH); i++)
        wait_step(i, "who waits for a slot too long is told so");
    is_uint(atomic_load(&f.stuck), ASKERS / 2 * EACH, "nodes that fall silent take a share of the slots each");
    is_int(read_file(&f, ASKERS + 1, file, &place), 0, "another node");
    is_int(place, PLACE_PEER, "is answered");

    ask_silently(&f, ASKERS, EACH, file);
    for (int i = 0; atomic_load(&f.stuck) < RING_OUT; i++)
        wait_step(i, "all slots are taken");
    uint32_t waits = atomic_load(&f.node[0].waits);
    uint64_t began = clock_now();
    is_int(read_file(&f, ASKERS + 1, file, &place), 0, "once all slots are taken, a read of what the owner holds");
    is_int(place, PLACE_SOURCE, "comes from the source");
    is_int(read_file(&f, ASKERS + 1, next, &place), 0, "so does one of what it has to load");
    is_int(place, PLACE_SOURCE, "from there, too");
    ok(clock_now() - began < 3 * timeout, "each after the owner's timeout");
    ok(atomic_load(&f.node[0].waits) >= waits + 2, "until which it says WAIT");
    is_int(peer_of(&f, ASKERS + 1, 0), PEER_GOOD, "it is not suspected");
    fake_end(&f);
}

/* A file with a lease, or a source that is strange: EAGAIN must not become a promise. */
static void test_source_again(void)
{
    struct fake f;
    char faults[5000];
    faults_set("");
    snprintf(faults, sizeof faults, "file=%s", test_path("faults"));
    begin(&f, 2, LONG, faults);
    fake_join(&f, 1);
    faults_set("errno=EAGAIN");
    is_int(fake_ask(&f, 0, owned_by(&f, 0, 0), 0, 1), -EIO, "an owner whose source says EAGAIN says that it failed");
    faults_set("");
    is_int(fake_ask(&f, 0, owned_by(&f, 0, 0), 0, 1), 0, "and is none the worse for it");
    fake_end(&f);
}

/* Worlds that never came to life save directories, too. */
static void test_directories(void)
{
    struct fake f;
    struct world_view other, last;
    char path[PATH_MAX + NAME_MAX], text[DIGEST_TEXT];
    begin(&f, 2, LONG, NULL);
    const char *state = f.node[0].state;
    fake_join(&f, 2);
    if (peers_view(f.node[0].peers, &other))
        bail_out("no view");
    leave_all(&f);
    fake_join(&f, 1);
    if (peers_view(f.node[0].peers, &last))
        bail_out("no view");
    leave_all(&f);
    snprintf(path, sizeof path, "%s/directory-third", state);
    file_write_atomic(AT_FDCWD, path, "", 0, 0600);
    snprintf(path, sizeof path, "%s/directory-%s", state, digest_format(&last.directory, text));
    utimensat(AT_FDCWD, path, (struct timespec[2]){{0}, {0}}, 0);
    is_int(world_save_directory(state, other.owners), 0, "a directory of a world that does not come to life is saved");
    peers_view_release(&other);
    peers_view_release(&last);
    fake_close(&f, 0);
    fake_open(&f, 0, true);
    is_int(state_of(&f, 0), WORLD_DEGRADED, "the last world's stays, though it is the oldest");
    fake_close(&f, 0);
    is_int(unlink(path), 0, "where it is missing");
    fake_open(&f, 0, true);
    ok(strstr(log_text(), "the directory of the world before cannot be used"), "the log says so");
    fake_end(&f);
}

static void test_gone(void)
{
    struct fake f;
    enum place place;
    begin(&f, 2, LONG, NULL);
    fake_join(&f, 1);
    uint32_t file = owned_by(&f, 1, 0);
    atomic_store(&f.node[1].times, 1);
    atomic_store(&f.node[1].fault, FAKE_GONE);
    is_int(read_file(&f, 0, file, &place), 0, "a peer that is said to be gone: the read is right");
    is_int(place, PLACE_SOURCE, "from the source");
    is_int(peer_of(&f, 0, 1), PEER_LOST, "it is lost");
    is_int(read_file(&f, 0, file, &place), 0, "the next read is right");
    is_int(place, PLACE_SOURCE, "and it is not asked again");
    leave_all(&f);
    fake_join(&f, 1);
    is_int(read_file(&f, 0, file, &place), 0, "until the next world");
    is_int(place, PLACE_PEER, "in which it is");
    fake_end(&f);
}

/* Busy is not gone: many nodes' readers wait for one load that takes longer than the timeout. */
static void test_slow_source(void)
{
    enum { READERS = 6 };
    struct fake f;
    char faults[5000];
    faults_set("");
    snprintf(faults, sizeof faults, "file=%s", test_path("faults"));
    begin(&f, 3, LONG, faults);
    fake_join(&f, 1);
    uint32_t file = owned_by(&f, 1, 0);
    faults_set("hang");
    struct reader reader[READERS];
    for (uint32_t i = 0; i < READERS; i++)
        start_reader(&reader[i], &f, i % 3, file);
    for (int i = 0; atomic_load(&f.node[1].waits) < READERS * 2 / 3; i++)
        wait_step(i, "the owner says WAIT");
    pass("an owner whose source hangs says so to all who ask");
    faults_set("");
    bool right = true;
    for (uint32_t i = 0; i < READERS; i++) {
        pthread_join(reader[i].thread, NULL);
        right &= !reader[i].error && reader[i].place == (i % 3 == 1 ? PLACE_SOURCE : PLACE_PEER);
    }
    ok(right, "and then answers them");
    is_uint(fake_samples(&f), 1, "out of one read of the source");
    fake_end(&f);
}

/* The same, for a read that has waited longer than the timeout because the owner said WAIT in between. */
static void test_waits(void)
{
    const uint64_t timeout = SECOND;
    struct fake f;
    struct reader reader;
    begin(&f, 2, timeout, NULL);
    fake_join(&f, 1);
    uint32_t file = owned_by(&f, 1, 0);
    atomic_store(&f.node[1].times, 1);
    atomic_store(&f.node[1].fault, FAKE_HOLD);
    uint64_t began = clock_now();
    start_reader(&reader, &f, 0, file);
    /* The fetch is the first of this node: the couriers know its slot and number. */
    while (clock_now() - began < 2 * timeout) {
        for (uint32_t slot = 0; slot < 1; slot++)
            fake_push(&f, 0, &(struct ring_message){.kind = RING_FETCHED, .slot = slot, .token = 1, .status = -EAGAIN});
        nanosleep(&(struct timespec){.tv_nsec = (long)(timeout / 8)}, NULL);
    }
    fake_let_go(&f);
    pthread_join(reader.thread, NULL);
    is_int(reader.error, 0, "a read that was told to wait for twice the timeout");
    is_int(reader.place, PLACE_PEER, "is answered by the peer");
    is_uint(counts_of(&f, 0).timeouts, 0, "which counts as no timeout");
    fake_end(&f);
}

static void test_hang_up(void)
{
    struct fake f;
    struct reader reader[8];
    enum place place;
    begin(&f, 2, LONG, NULL);
    fake_join(&f, 1);
    uint32_t file = owned_by(&f, 1, 0);
    atomic_store(&f.node[1].times, 8);
    atomic_store(&f.node[1].fault, FAKE_HOLD);
    for (int i = 0; i < 8; i++)
        start_reader(&reader[i], &f, 0, file);
    for (int i = 0; atomic_load(&f.node[1].served) < 8; i++)
        wait_step(i, "eight answers are held back");
    fake_leave(&f, 0);
    bool right = true;
    for (int i = 0; i < 8; i++) {
        pthread_join(reader[i].thread, NULL);
        right &= !reader[i].error && reader[i].place == PLACE_SOURCE;
    }
    ok(right, "reads in flight when the courier goes are answered from the source");
    await_state(&f, 0, WORLD_DEGRADED);
    pass("the node is degraded");
    is_int(state_of(&f, 1), WORLD_JOINED, "the other one is not");
    ok(read_all(&f, 0), "all is read right");
    ok(!store_holds(f.node[0].store, file, 0), "what it does not own it does not keep");
    struct world_view view;
    peers_view(f.node[0].peers, &view);
    ok(view.known && view.lost_bytes > 0 && view.nodes == 2, "it says what is lost: %llu bytes",
       (unsigned long long)view.lost_bytes);
    peers_view_release(&view);
    leave_all(&f);
    fake_join(&f, 1);
    uint64_t bytes = source_bytes(&f);
    is_int(read_file(&f, 0, file, &place), 0, "joined again");
    ok(place == PLACE_PEER && source_bytes(&f) == bytes, "it asks again, and the source is left alone");
    fake_end(&f);
}

static void test_restart(void)
{
    struct fake f;
    enum place place;
    begin(&f, 2, LONG, NULL);
    fake_join(&f, 1);
    read_all(&f, 0);
    uint32_t theirs = owned_by(&f, 1, 0), ours = owned_by(&f, 0, 0);
    fake_leave(&f, 0);
    fake_close(&f, 0);
    fake_open(&f, 0, true);
    is_int(state_of(&f, 0), WORLD_DEGRADED, "a server that is started anew is degraded");
    is_int(read_file(&f, 0, theirs, &place), 0, "another's file");
    ok(place == PLACE_SOURCE && !store_holds(f.node[0].store, theirs, 0), "is not kept");
    is_int(read_file(&f, 0, ours, &place), 0, "its own");
    is_int(place, PLACE_RAM, "is still there");
    fake_resume(&f, 0);
    await_state(&f, 0, WORLD_JOINED);
    is_int(read_file(&f, 0, theirs, &place), 0, "resumed");
    is_int(place, PLACE_PEER, "it asks the peer");
    is_int(read_file(&f, 1, ours, &place), 0, "and is asked");
    is_int(place, PLACE_PEER, "for its own");

    struct attach_welcome welcome;
    fake_leave(&f, 0);
    await_state(&f, 0, WORLD_DEGRADED);
    int socket = fake_hello(&f, 0, &welcome);
    struct ring ring;
    ring_create(&ring, 2);
    struct attach_resume wrong = {.nodes = 2, .me = 0, .directory = f.directory};
    int fds[ATTACH_FDS] = {ring.memory, ring.bell_server, ring.bell_courier};
    uint32_t kind = 0;
    void *payload = NULL;
    size_t n;
    attach_send(socket, ATTACH_RESUME, &wrong, sizeof wrong, fds);
    attach_receive(socket, &kind, &payload, &n, NULL);
    is_int((int)kind, ATTACH_REFUSED, "a courier of another world cannot resume");
    free(payload);
    close(socket);
    ring_close(&ring);

    fake_close(&f, 0);
    fake_open(&f, 0, false);
    is_int(state_of(&f, 0), WORLD_ALONE, "a new mount is alone");
    is_int(read_file(&f, 0, theirs, &place), 0, "another's file");
    ok(store_holds(f.node[0].store, theirs, 0), "is kept now");
    fake_end(&f);
}

/* Holdings decide: nothing is read again. */
static void test_rejoin(void)
{
    struct fake f;
    begin(&f, 3, LONG, NULL);
    fake_join(&f, 1);
    for (uint32_t i = 0; i < 3; i++)
        read_all(&f, i);
    uint64_t bytes = source_bytes(&f);
    leave_all(&f);
    fake_swap(&f, 0, 2);
    fake_join(&f, 1);
    bool right = true;
    for (uint32_t i = 0; i < 3; i++)
        right &= read_all(&f, i);
    ok(right, "joined in another order");
    is_uint(source_bytes(&f), bytes, "nothing is read again that somebody holds");
    fake_end(&f);
}

/* A full house: more reads than slots, to a node that is slow and to one that is not. */
static void test_many(void)
{
    enum { READERS = 64, ROUNDS = 5 };
    struct fake f;
    begin(&f, 4, LONG, NULL);
    fake_join(&f, 1);
    static struct reader reader[READERS];
    bool right = true;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < READERS; i++)
            start_reader(&reader[i], &f, i % 4, (i * 7 + round) % SMALL);
        for (uint32_t i = 0; i < READERS; i++) {
            pthread_join(reader[i].thread, NULL);
            right &= !reader[i].error;
        }
    }
    ok(right, "%d readers at once, over and over", READERS);
    fake_end(&f);
}

/* More fetches than a peer's share of the slots wait for each other. */
static void test_queue(void)
{
    enum { READERS = 100 };
    struct fake f;
    static struct reader reader[READERS];
    begin(&f, 3, LONG, NULL);
    fake_join(&f, 1);
    uint32_t file = owned_by(&f, 1, 0), other = owned_by(&f, 2, 0);
    enum place place;
    atomic_store(&f.node[1].times, READERS);
    atomic_store(&f.node[1].fault, FAKE_HOLD);
    for (int i = 0; i < READERS; i++)
        start_reader(&reader[i], &f, 0, file);
    for (int i = 0; atomic_load(&f.node[1].served) < 32; i++)
        wait_step(i, "a peer's share of the slots is taken");
    is_int(read_file(&f, 0, other, &place), 0, "another peer's file meanwhile");
    is_int(place, PLACE_PEER, "comes from that peer");
    atomic_store(&f.node[1].fault, FAKE_NONE);
    fake_let_go(&f);
    bool right = true;
    for (int i = 0; i < READERS; i++) {
        pthread_join(reader[i].thread, NULL);
        right &= !reader[i].error && reader[i].place == PLACE_PEER;
    }
    ok(right, "%d reads of one peer are answered in turn", READERS);
    fake_end(&f);
}

/* Lies of a courier end its world, and nothing else. */
static void test_lies(void)
{
    static const struct {
        struct ring_message message;
        const char *what;
    } lie[] = {
        {{.kind = RING_FETCHED, .slot = RING_IN}, "a slot that is none"},
        {{.kind = RING_FETCHED, .slot = 3000000000u}, "nor that"},
        {{.kind = RING_FETCHED, .slot = 0, .length = RING_SLOT + 1}, "more than a slot holds"},
        {{.kind = RING_FETCHED, .slot = 0, .status = 5}, "a status above zero"},
        {{.kind = RING_SENT, .slot = RING_IN}, "sent what was not"},
        {{.kind = RING_SENT, .slot = 0}, "a slot of the other kind"},
        {{.kind = RING_SERVE, .node = 2, .count = 1}, "a node that is none"},
        {{.kind = RING_SERVE, .node = 0, .count = 1}, "this node itself"},
        {{.kind = RING_COMMAND, .value = 99}, "a command that is none"},
        {{.kind = 77}, "a message that is none"},
    };
    struct fake f;
    begin(&f, 2, LONG, NULL);
    for (size_t i = 0; i < sizeof lie / sizeof *lie; i++) {
        fake_join(&f, 1);
        fake_push(&f, 0, &lie[i].message);
        await_state(&f, 0, WORLD_DEGRADED);
        pass("%s: the server hangs up", lie[i].what);
        leave_all(&f);
    }
    fake_join(&f, 1);
    ok(read_all(&f, 0), "all is right in the end");
    fake_end(&f);
}

/* Another node may ask for anything. */
static void test_wrong_questions(void)
{
    static const struct {
        uint32_t file, value, count;
    } wrong[] = {
        {4000000000u, 0, 1}, {0, 4000000000u, 1}, {0, 0, RING_VALUES + 1}, {0, 0, 0}, {0, 0, 4000000000u}, {0, 1, 1},
        {0, UINT32_MAX, RING_VALUES},
    };
    struct fake f;
    begin(&f, 2, LONG, NULL);
    fake_join(&f, 1);
    uint32_t large = dataset_file(&set, "sparse-large");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        is_int(fake_ask(&f, 0, wrong[i].file, wrong[i].value, wrong[i].count), -EINVAL, "question %zu is refused", i);
    is_int(fake_ask(&f, 0, large, EXTENT_BYTES / VALUE_BYTES - 1, 2), -EINVAL, "so is one across two extents");
    is_int(fake_ask(&f, 0, large, EXTENT_BYTES / VALUE_BYTES - 2, 2), 0, "a right one is answered");
    is_int(fake_ask(&f, 0, dataset_file(&set, "empty"), 0, 1), -EINVAL, "an empty file has no values");
    is_int(state_of(&f, 0), WORLD_JOINED, "and the world goes on");
    fake_end(&f);
}

static void test_refusals(void)
{
    struct fake f;
    struct attach_welcome welcome;
    begin(&f, 2, LONG, NULL);
    int first = fake_hello(&f, 0, &welcome);
    is_str(welcome.node.id, f.node[0].id, "a welcome says who it is");
    is_uint(welcome.node.capacity, 120 * MIB, "and how much it holds");
    ok(!memcmp(&welcome.catalog, catalog_digest(set.catalog), sizeof welcome.catalog) && !welcome.waiting,
       "and its catalog");
    int second = attach_connect(f.node[0].state);
    struct attach_hello hello = {.version = ATTACH_VERSION};
    uint32_t kind = 0;
    void *payload = NULL;
    size_t n = 0;
    attach_send(second, ATTACH_HELLO, &hello, sizeof hello, NULL);
    attach_receive(second, &kind, &payload, &n, NULL);
    uint32_t number = 0;
    if (payload && n >= sizeof number)
        memcpy(&number, payload, sizeof number);
    ok(kind == ATTACH_REFUSED && number == EBUSY, "a second courier is told EBUSY");
    free(payload);
    close(second);
    attach_send(first, ATTACH_LIVE, NULL, 0, NULL);
    is_int(attach_receive(first, &kind, &payload, &n, NULL), -ECONNRESET, "frames out of order end a conversation");
    close(first);
    fake_join(&f, 1);
    is_int(state_of(&f, 0), WORLD_JOINED, "and the next one can be held");
    is_int(peers_command(f.node[0].peers, WORLD_UMOUNT, 7), 0, "a command to all others");
    for (int i = 0; atomic_load(&f.node[1].commands) != WORLD_UMOUNT; i++)
        wait_step(i, "the command arrives");
    is_uint(atomic_load(&f.node[0].commands), 0, "and to them only");
    fake_end(&f);
}

static void test_news(void)
{
    struct fake f;
    begin(&f, 2, 2 * SECOND, NULL);
    fake_join(&f, 1);
    read_all(&f, 0);
    struct node_news news = {0};
    for (int i = 0; !news.reads[PLACE_SOURCE] || !news.held; i++) {
        wait_step(i, "a node tells its news");
        news_read(ring_news(&f.node[0].ring, 0), &news);
    }
    is_uint(news.capacity, 120 * MIB, "a node tells how much it can hold");
    uint64_t version = atomic_load(&news.version);
    for (int i = 0; atomic_load(&ring_news(&f.node[0].ring, 0)->version) == version; i++)
        wait_step(i, "it goes on telling");
    pass("and goes on telling it");
    fake_end(&f);
}

int main(void)
{
    log_to_file();
    make_dataset();
    test_alone();
    test_world(1, 1);
    test_world(2, 1);
    test_world(4, 1);
    test_world(4, 2);
    test_kept();
    test_capacity();
    test_bad(FAKE_DAMAGE, "a wrong checksum");
    test_bad(FAKE_SHORT, "a wrong length");
    test_bad(FAKE_OTHER_FILE, "another file");
    test_bad(FAKE_ERROR, "an error");
    test_twice();
    test_silence();
    test_swallowed();
    test_no_slots();
    test_late_slot();
    test_lost_answers();
    test_silent_askers();
    test_source_again();
    test_directories();
    test_gone();
    test_slow_source();
    test_waits();
    test_hang_up();
    test_restart();
    test_rejoin();
    test_many();
    test_queue();
    test_lies();
    test_wrong_questions();
    test_refusals();
    test_news();
    dataset_end(&set);
    return done_testing();
}
