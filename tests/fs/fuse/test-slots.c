/* Slots: what each state becomes when a server dies in it, and that a slot is free exactly when it may be. */
#include "fs/fuse/slots.h"

#include "fs/base/cleanup.h"
#include "tests/lib/tap.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { COUNT = 16, ROOM = 8192 };

static struct lane *fresh_lane(void)
{
    struct lane *lane = mmap(NULL, lane_size(COUNT, ROOM), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (lane == MAP_FAILED)
        bail_out("mmap");
    lane_init(lane, COUNT, ROOM);
    return lane;
}

static void drop_lane(struct lane *lane)
{
    munmap(lane, lane_size(COUNT, ROOM));
}

static struct slots *open_slots(struct lane *lane)
{
    struct slots *s = NULL;
    if (slots_create(lane, BLAME_DIED, &s))
        bail_out("slots_create");
    return s;
}

static void put_request(struct lane *lane, int slot, uint64_t unique)
{
    *lane_request(lane, slot) =
        (struct fuse_in_header){.len = 48, .opcode = FUSE_LOOKUP, .unique = unique, .nodeid = 1};
}

static unsigned state(const struct lane *lane, int slot)
{
    return atomic_load(&lane_slot(lane, slot)->word) & 255;
}

static void test_life(void)
{
    struct lane *lane = fresh_lane();
    struct slots *s = open_slots(lane);
    is_int(slots_replay(s), SLOT_NONE, "a fresh lane has nothing to replay");
    int a = slots_take(s);
    ok(a >= 0 && a < COUNT, "a slot");
    is_uint(state(lane, a), SLOT_READING, "is made ready to be read into");
    put_request(lane, a, 10);
    slots_begin(s, a);
    is_uint(state(lane, a), SLOT_RUNNING, "running");
    ok(slots_answered(s, 10), "the reply finds it");
    ok(!slots_answered(s, 10), "once");
    is_uint(state(lane, a), SLOT_FREE, "a kill now loses nothing");
    ok(slots_end(s, a), "answered by its own thread, it stays its");
    slots_ready(s, a);
    put_request(lane, a, 12);
    slots_begin(s, a);
    ok(!slots_end(s, a), "not answered: parked");
    is_uint(state(lane, a), SLOT_PARKED, "in shared memory as well");
    ok(slots_answered(s, 12), "answered later");
    is_uint(state(lane, a), SLOT_FREE, "free");
    is_uint(atomic_load(&lane->answered), 2, "two were answered");
    ok(!slots_answered(s, 99), "a reply for nobody");
    for (int i = 0; i < COUNT; i++)
        slots_take(s);
    slots_stop(s);
    is_int(slots_take(s), SLOT_NONE, "a stop ends the wait for a slot");
    slots_destroy(s);
    slots_destroy(NULL);
    drop_lane(lane);
}

/* One slot in each state, then the server dies: a new view of the same lane. */
/* Pages of the slots that are there, in memory or swapped out. */
static size_t count_pages(int memory)
{
    struct stat st;
    if (fstat(memory, &st) < 0)
        bail_out("fstat");
    return (size_t)st.st_blocks / (4096 / 512);
}

/* Slots for long writes, all with short requests that wait. */
static void test_memory(void)
{
    enum { MANY = 64, KEPT = 16, PAGES = CONTROL_ROOM / 4096 };
    size_t size = (lane_size(MANY, CONTROL_ROOM) + 4095) / 4096 * 4096;
    CLEANUP_CLOSE int memory = memfd_create("lane", MFD_CLOEXEC);
    struct lane *lane =
        ftruncate(memory, (off_t)size) ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (lane == MAP_FAILED)
        bail_out("mmap");
    lane_init(lane, MANY, CONTROL_ROOM);
    struct slots *s = open_slots(lane);
    for (uint64_t unique = 2; unique < 6; unique += 2) {
        int slot = slots_take(s);
        put_request(lane, slot, unique);
        slots_begin(s, slot);
        slots_end(s, slot);
        ok(count_pages(memory) >= PAGES, "a slot that waits alone keeps its memory");
        slots_answered(s, unique);
    }
    for (uint64_t unique = 10; unique < 10 + 2 * MANY; unique += 2) {
        int slot = slots_take(s);
        put_request(lane, slot, unique);
        slots_begin(s, slot);
        slots_end(s, slot);
    }
    ok(count_pages(memory) <= (KEPT + 1) * PAGES + 4 * MANY, "of many that wait all but a few give it back");
    slots_destroy(s);
    munmap(lane, size);
}

static void test_recovery(void)
{
    struct lane *lane = fresh_lane();
    struct slots *s = open_slots(lane);
    int slot[5];
    for (int i = 0; i < 5; i++) {
        slot[i] = slots_take(s);
        put_request(lane, slot[i], 100 + 2 * (uint64_t)i);
    }
    memset(lane_request(lane, slot[0]), 0, sizeof(struct fuse_in_header)); /* nothing was read */
    atomic_store(&lane_slot(lane, slot[0])->reader, 0x7ffffff0);           /* by nobody who lives */
    slots_begin(s, slot[2]);                                               /* slot 1 was read into, no more */
    slots_begin(s, slot[3]);
    slots_end(s, slot[3]);
    slots_begin(s, slot[4]);
    slots_answered(s, 108);
    slots_destroy(s);

    s = open_slots(lane);
    is_uint(state(lane, slot[0]), SLOT_FREE, "READING with nothing read: free");
    is_uint(state(lane, slot[1]), SLOT_WAITING, "READING with a request: waiting");
    is_uint(state(lane, slot[2]), SLOT_WAITING, "RUNNING: waiting");
    is_uint(slots_blame(s, slot[2]), BLAME_DIED, "and suspected");
    is_uint(state(lane, slot[3]), SLOT_WAITING, "PARKED: waiting");
    is_uint(slots_blame(s, slot[1]) + slots_blame(s, slot[3]), 0, "these two are innocent");
    is_uint(state(lane, slot[4]), SLOT_FREE, "answered: free");
    int seen = 0;
    for (int i; (i = slots_replay(s)) != SLOT_NONE;)
        seen |= 1 << i;
    is_int(seen, 1 << slot[1] | 1 << slot[2] | 1 << slot[3], "these three are replayed");
    slots_destroy(s);
    s = open_slots(lane); /* died before it ran any */
    is_uint(slots_blame(s, slot[2]), BLAME_DIED, "WAITING is not counted");
    slots_destroy(s);
    drop_lane(lane);
}

/* A request that another thread goes on with, when its handler has returned or before that: if the server dies of it
 * each time, it is found out. */
static void test_resumed(void)
{
    struct lane *lane = fresh_lane();
    struct slots *s = open_slots(lane);
    int late = slots_take(s), early = slots_take(s);
    put_request(lane, late, 2);
    put_request(lane, early, 4);
    slots_resume(s, 2); /* none is in progress yet: nothing happens */
    for (unsigned deaths = 0; deaths < 3; deaths++) {
        is_uint(slots_blame(s, late) + slots_blame(s, early), 2 * deaths * BLAME_DIED, "%u deaths", deaths);
        slots_begin(s, late);
        slots_begin(s, early);
        slots_resume(s, 4);
        ok(!slots_end(s, early) && state(lane, early) == SLOT_RUNNING,
           "gone on with before its handler returned: running");
        ok(!slots_end(s, late) && state(lane, late) == SLOT_PARKED, "parked");
        slots_resume(s, 2);
        is_uint(state(lane, late), SLOT_RUNNING, "gone on with: running");
        slots_destroy(s);
        s = open_slots(lane);
    }
    is_uint(slots_blame(s, late), BLAME_MOST, "as many as a poisonous one may have");
    slots_begin(s, late);
    slots_end(s, late);
    slots_destroy(s);
    s = open_slots(lane);
    is_uint(slots_blame(s, late), 0, "one that was waiting for its turn is innocent");
    slots_destroy(s);
    drop_lane(lane);
}

static const struct fuse_in_header *made_read(uint64_t ino, uint64_t from, uint64_t to)
{
    static struct {
        struct fuse_in_header in;
        struct fuse_read_in read;
    } made;
    made.in = (struct fuse_in_header){.len = sizeof made, .opcode = FUSE_READ, .unique = 2, .nodeid = ino};
    made.read = (struct fuse_read_in){.offset = from, .size = (uint32_t)(to - from)};
    return &made.in;
}

static void test_bars(void)
{
    enum { MANY = 2 * LANE_BARS };
    struct lane *lane = fresh_lane();
    int barred = 0;
    ok(!lane_bars(lane, made_read(5, 0, 10), 0), "nothing is barred at first");
    lane_bar_read(lane, made_read(5, 100, 200), false, 1000);
    lane_bar_read(lane, made_read(6, 100, 200), true, 2000);
    ok(lane_bars(lane, made_read(5, 199, 300), 999) && lane_bars(lane, made_read(5, 0, 101), 999),
       "READs that overlap");
    ok(!lane_bars(lane, made_read(5, 0, 100), 999) && !lane_bars(lane, made_read(5, 200, 300), 999),
       "not their neighbours");
    ok(!lane_bars(lane, made_read(5, 100, 200), 1000), "only for a while");
    ok(lane_bars(lane, made_read(6, 900, 901), 1999) && !lane_bars(lane, made_read(6, 0, 1), 2000), "a whole file");
    const struct fuse_in_header other = {.len = sizeof other, .opcode = FUSE_GETATTR, .nodeid = 6};
    ok(!lane_bars(lane, &other, 1500), "only READs");
    for (int i = 0; i < MANY; i++)
        lane_bar_read(lane, made_read(100 + (uint64_t)i, 0, 10), false, 5000 + (uint64_t)i);
    for (int i = 0; i < MANY; i++)
        barred += lane_bars(lane, made_read(100 + (uint64_t)i, 0, 10), 4000);
    is_int(barred, LANE_BARS, "of many, as many as there are places");
    ok(lane_bars(lane, made_read(100 + MANY - 1, 0, 10), 4000), "the last one among them");
    drop_lane(lane);
}

static void test_suspects(void)
{
    struct lane *lane = fresh_lane();
    struct slots *s = open_slots(lane);
    int a = slots_take(s), b = slots_take(s);
    put_request(lane, a, 2);
    put_request(lane, b, 4);
    slots_begin(s, a);
    slots_begin(s, b);
    slots_destroy(s);

    s = open_slots(lane);
    int first = slots_replay(s);
    ok(first == a || first == b, "a suspect");
    is_int(slots_replay(s), SLOT_NONE, "the other not before that is through");
    slots_begin(s, first);
    uint64_t poison = lane_request(lane, first)->unique;
    for (unsigned deaths = 2; deaths <= 3; deaths++) {
        slots_destroy(s);
        s = open_slots(lane);
        is_uint(slots_blame(s, first), deaths * BLAME_DIED, "%u deaths", deaths);
        int next;
        while ((next = slots_replay(s)) != first && next != SLOT_NONE) {
            slots_begin(s, next);
            slots_answered(s, lane_request(lane, next)->unique);
            if (slots_end(s, next))
                slots_put(s, next);
        }
        is_int(next, first, "it comes again");
        slots_begin(s, first);
    }
    int other = first == a ? b : a;
    ok(state(lane, other) == SLOT_FREE || slots_blame(s, other) == BLAME_DIED,
       "the innocent one is through, or at one");
    slots_answered(s, poison);
    ok(slots_end(s, first), "and answered at last");
    slots_destroy(s);
    drop_lane(lane);
}

/* A reader that is dead but not gone may still be given a request by the kernel. */
static void test_late(void)
{
    struct lane *lane = fresh_lane();
    pid_t lingering = fork();
    if (lingering == 0) {
        pause();
        _exit(0);
    }
    struct slots *s = open_slots(lane);
    int a = slots_take(s), b = slots_take(s), left;
    atomic_store(&lane_slot(lane, a)->reader, (uint32_t)lingering);
    atomic_store(&lane_slot(lane, b)->reader, (uint32_t)lingering);
    slots_destroy(s);

    s = open_slots(lane);
    is_int(slots_late_count(s), 2, "two slots that may still be filled");
    is_int(slots_late(s, &left), SLOT_NONE, "nothing yet");
    is_int(left, 2, "both are kept");
    put_request(lane, b, 20);
    is_int(slots_late(s, &left), b, "a late request is found");
    is_int(left, 1, "one is left");
    kill(lingering, SIGKILL);
    waitid(P_PID, (id_t)lingering, &(siginfo_t){0}, WEXITED | WNOWAIT);
    is_int(slots_late(s, &left), SLOT_NONE, "nothing more");
    is_int(left, 0, "the other is given free when its reader is gone, reaped or not");
    waitpid(lingering, NULL, 0);
    is_uint(state(lane, a), SLOT_FREE, "free");
    slots_destroy(s);
    drop_lane(lane);
}

static void test_garbage(void)
{
    static const struct fuse_in_header bad[] = {
        {.unique = 0, .len = 48}, {.unique = 2, .len = 8}, {.unique = 2, .len = ROOM + 1}, {.unique = 2, .len = ~0u}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct lane *lane = fresh_lane();
        *lane_request(lane, 3) = bad[i];
        atomic_store(&lane_slot(lane, 3)->word, SLOT_RUNNING);
        atomic_store(&lane_slot(lane, 4)->word, 77);
        struct slots *s = open_slots(lane);
        is_int(slots_replay(s), SLOT_NONE, "a header that is none is not replayed (%zu)", i);
        slots_destroy(s);
        drop_lane(lane);
    }
}

/* Handlers here, answers there: as with reads that park. */
enum { ROUNDS = 2000 };

static struct {
    struct slots *slots;
    struct lane *lane;
    _Atomic uint64_t unique[4];
    atomic_bool stop;
} race;

static void *answerer(void *arg)
{
    (void)arg;
    while (!atomic_load(&race.stop)) {
        for (int i = 0; i < 4; i++) {
            uint64_t unique = atomic_exchange(&race.unique[i], 0);
            if (unique)
                slots_answered(race.slots, unique);
        }
        sched_yield();
    }
    return NULL;
}

static void *handler(void *arg)
{
    int self = (int)(intptr_t)arg, mine = SLOT_NONE;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        if (mine == SLOT_NONE)
            mine = slots_take(race.slots);
        else
            slots_ready(race.slots, mine);
        uint64_t unique = (i * 4 + (uint64_t)self + 1) * 2;
        put_request(race.lane, mine, unique);
        slots_begin(race.slots, mine);
        atomic_store(&race.unique[self], unique);
        while (i % 3 == 0 && atomic_load(&race.unique[self]))
            sched_yield();
        if (!slots_end(race.slots, mine))
            mine = SLOT_NONE;
        while (atomic_load(&race.unique[self]))
            sched_yield();
    }
    if (mine != SLOT_NONE)
        slots_put(race.slots, mine);
    return NULL;
}

static void test_threads(void)
{
    race.lane = fresh_lane();
    race.slots = open_slots(race.lane);
    pthread_t thread[4], other;
    pthread_create(&other, NULL, answerer, NULL);
    for (intptr_t i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, handler, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    atomic_store(&race.stop, true);
    pthread_join(other, NULL);
    is_uint(atomic_load(&race.lane->answered), 4 * ROUNDS, "every request was answered once");
    int busy = 0;
    for (int i = 0; i < COUNT; i++)
        busy += state(race.lane, i) != SLOT_FREE;
    is_int(busy, 0, "and every slot is free");
    for (int i = 0; i < COUNT; i++)
        slots_take(race.slots);
    pass("none was lost");
    slots_destroy(race.slots);
    drop_lane(race.lane);
}

/* All slots in progress, and each answered and begun again with the next request. */
static void *churn(void *unused)
{
    (void)unused;
    uint64_t unique = 2;
    for (int i = 0; i < COUNT; i++, unique += 2) {
        put_request(race.lane, slots_take(race.slots), unique);
        slots_begin(race.slots, i);
    }
    for (int i = 0; !atomic_load(&race.stop); i = (i + 1) % COUNT, unique += 2) {
        slots_answered(race.slots, unique - 2 * COUNT);
        slots_end(race.slots, i);
        slots_ready(race.slots, i);
        put_request(race.lane, i, unique);
        slots_begin(race.slots, i);
    }
    return NULL;
}

static void test_look(void)
{
    enum { LOOKS = 20000, ROOM_TO_SEE = 4096 };
    static struct slots_request seen[ROOM_TO_SEE];
    pthread_t thread;
    int most = 0;
    race.lane = fresh_lane();
    race.slots = open_slots(race.lane);
    atomic_store(&race.stop, false);
    pthread_create(&thread, NULL, churn, NULL);
    for (int i = 0; i < LOOKS; i++) {
        int count = slots_look(race.slots, 1, seen);
        most = count > most ? count : most;
    }
    atomic_store(&race.stop, true);
    pthread_join(thread, NULL);
    ok(most > 0 && most <= COUNT, "of slots that are used again meanwhile no more are seen than there are (%d)", most);
    slots_destroy(race.slots);
    drop_lane(race.lane);
}

int main(void)
{
    test_life();
    test_memory();
    test_recovery();
    test_resumed();
    test_bars();
    test_suspects();
    test_late();
    test_garbage();
    test_threads();
    test_look();
    return done_testing();
}
