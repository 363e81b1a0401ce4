/* Threads: one plays the couriers, as long as there is a world; `lock` guards the rings and what is in flight between
 * it and the test's own thread. */
#include "tests/fs/world/fake.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "tests/lib/tap.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>

enum { MOST_FLYING = 4096, HELD_MOST = 256 };

/* A question that is on its way, by its token. */
struct flying {
    bool used;
    uint32_t from, slot;
    uint64_t number;
    uint32_t list; /* of who is asked: 1 + that which has the parts; 0: none */
    bool shared;   /* the courier answers it from the RAM tier */
};

static struct flying flying[MOST_FLYING];
static uint64_t tokens;
static struct {
    uint32_t node;
    struct ring_message message;
} held[HELD_MOST];
static int holds;
static atomic_int asked;               /* the status of fake_ask's question; 1: not answered yet */
enum { BY_HAND = FAKE_NODES, SILENT }; /* who asks there, and in fake_ask_silently */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t courier;
static atomic_bool running, stop;

/* --- nodes --- */

static void no_command(void *user, enum world_command command, uint64_t token)
{
    struct fake_node *n = user;
    (void)token;
    atomic_fetch_add(&n->commands, (uint32_t)command);
}

void fake_open(struct fake *f, uint32_t number, bool restarted)
{
    struct fake_node *n = &f->node[number];
    const char *ram = test_path("ram-%u", number);
    n->config.restarted = restarted;
    if (n->capacity && dir_make(ram, 0700) < 0)
        bail_out("mkdir %s", ram);
    struct store_config config = {
        .catalog = f->dataset->catalog,
        .source = f->dataset->root,
        .tier = {[TIER_RAM] = {n->capacity ? ram : NULL, n->capacity}},
        .zstd_level = 1,
        .source_threads = 4,
        .faults = n->faults,
    };
    if (store_open(&config, &n->store) || peers_create(&n->config, &n->peers) ||
        peers_fill(n->peers, f->dataset->catalog, n->store) || peers_start(n->peers))
        bail_out("open node %u", number);
}

void fake_close(struct fake *f, uint32_t number)
{
    struct fake_node *n = &f->node[number];
    if (!n->peers)
        return;
    peers_stop(n->peers);
    store_close(n->store);
    peers_destroy(n->peers);
    n->peers = NULL;
    n->store = NULL;
}

void fake_begin(struct fake *f, struct dataset *d, uint32_t nodes, const uint64_t *ram, uint64_t timeout,
                const char *faults)
{
    static int worlds;
    *f = (struct fake){.dataset = d, .nodes = nodes};
    memset(f->computed, 0xff, sizeof f->computed);
    memset(f->bytes, 0xff, sizeof f->bytes);
    worlds++;
    for (uint32_t i = 0; i < nodes; i++) {
        struct fake_node *n = &f->node[i];
        snprintf(n->state, sizeof n->state, "%s", test_path("state-%d-%u", worlds, i));
        snprintf(n->id, sizeof n->id, "%032x", worlds * 100 + (int)i);
        dir_remove_tree(AT_FDCWD, test_path("ram-%u", i));
        if (dir_make(n->state, 0700) < 0)
            bail_out("mkdir %s", n->state);
        n->capacity = ram[i];
        n->faults = faults;
        n->socket = -1;
        n->config = (struct peers_config){
            .state = n->state,
            .catalog = d->catalog,
            .id = n->id,
            .host = "here",
            .peer_timeout = timeout,
            .mountpoint = "/here",
            .command = no_command,
            .user = n,
        };
        fake_open(f, i, false);
    }
}

/* --- the couriers --- */

static void deliver(struct fake *f, uint32_t node, const struct ring_message *m)
{
    struct fake_node *n = &f->node[node];
    if (n->socket >= 0 && ring_push(&n->ring.shared->to_server, n->ring.fd[RING_BELL_SERVER], m))
        bail_out("the queue to node %u is full", node);
}

void fake_push(struct fake *f, uint32_t node, const struct ring_message *m)
{
    pthread_mutex_lock(&lock);
    deliver(f, node, m);
    pthread_mutex_unlock(&lock);
}

static void hold(uint32_t node, const struct ring_message *m)
{
    if (holds == HELD_MOST)
        bail_out("too much is held back");
    held[holds].node = node;
    held[holds++].message = *m;
}

int fake_held(void)
{
    pthread_mutex_lock(&lock);
    int n = holds;
    pthread_mutex_unlock(&lock);
    return n;
}

void fake_let_go(struct fake *f)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < holds; i++)
        deliver(f, held[i].node, &held[i].message);
    holds = 0;
    pthread_mutex_unlock(&lock);
}

void fake_let_one_go(struct fake *f)
{
    pthread_mutex_lock(&lock);
    if (!holds)
        bail_out("nothing is held back");
    deliver(f, held[0].node, &held[0].message);
    memmove(held, held + 1, (size_t)--holds * sizeof *held);
    pthread_mutex_unlock(&lock);
}

static uint32_t fault_of(struct fake_node *n, bool final)
{
    uint32_t fault = atomic_load(&n->fault);
    if (!fault || (!final && fault != FAKE_SWALLOW) || !atomic_load(&n->times))
        return FAKE_NONE;
    if (final)
        atomic_fetch_sub(&n->times, 1);
    return fault;
}

static void lend_namesake(const struct dataset *d, char *slot)
{
    struct payload_header *h = (struct payload_header *)slot;
    uint32_t raw = h->length[0] - VALUE_HEADER;
    char *value = slot + payload_begin(h->length, 0);
    value[VALUE_HEADER] ^= 1;
    value_seal(NULL, value, raw, value_seed(catalog_file_seed(d->catalog, dataset_file(d, NAMESAKE_B)), 0), 0);
}

static void harm(const struct fake *f, uint32_t fault, char *slot, struct ring_message *m)
{
    struct payload_header *h = (struct payload_header *)slot;
    if (fault == FAKE_NAMESAKE)
        lend_namesake(f->dataset, slot);
    if (fault == FAKE_DAMAGE)
        slot[m->length / 2] ^= 1;
    if (fault == FAKE_SHORT)
        m->length -= 16;
    if (fault == FAKE_CUT)
        h->length[0] ^= PAYLOAD_CUT;
    if (fault == FAKE_OTHER_FILE)
        h->file++;
    if (fault == FAKE_GONE || fault == FAKE_ERROR)
        m->status = fault == FAKE_GONE ? -EHOSTDOWN : -EIO;
}

static void bring_answer(struct fake *f, uint32_t owner, const struct ring_message *reply)
{
    struct fake_node *n = &f->node[owner];
    struct flying *q = &flying[reply->token % MOST_FLYING];
    struct ring_message m = {.kind = RING_FETCHED, .slot = q->slot, .token = q->number, .status = reply->status};
    if (!q->used)
        bail_out("an answer to nothing");
    if (q->from == SILENT) {
        q->used = reply->status == -EAGAIN;
        atomic_fetch_add(&f->stuck, reply->status == 0);
        atomic_fetch_add(&f->refused, reply->status == -EBUSY);
        return;
    }
    if (q->from == BY_HAND) {
        if (reply->status == 0)
            deliver(f, owner, &(struct ring_message){.kind = RING_SENT, .slot = reply->slot});
        if (reply->status != -EAGAIN) {
            q->used = false;
            atomic_store(&asked, reply->status);
        }
        return;
    }
    if (reply->status != -EAGAIN && q->list)
        n->listed[q->list - 1] = false;
    uint32_t asker = q->from, fault = fault_of(n, reply->status != -EAGAIN);
    bool here = f->node[asker].socket >= 0;
    if (reply->status == -EAGAIN)
        atomic_fetch_add(&n->waits, 1);
    else
        q->used = false;
    if (reply->status == 0) {
        char *to = here ? ring_slot(&f->node[asker].ring, m.slot) : NULL;
        m.length = reply->length;
        if (to) {
            memcpy(to, ring_slot(&n->ring, reply->slot), reply->length);
            harm(f, fault, to, &m);
            if (q->shared)
                payload_mark_shared(to);
        }
        deliver(f, owner, &(struct ring_message){.kind = RING_SENT, .slot = reply->slot});
        atomic_fetch_add(&n->sent, reply->length);
        atomic_fetch_add(&n->served, 1);
    } else if (fault == FAKE_GONE) {
        m.status = -EHOSTDOWN;
    }
    if (fault == FAKE_SWALLOW)
        return;
    if (fault == FAKE_HOLD)
        hold(asker, &m);
    else
        deliver(f, asker, &m);
    if (fault == FAKE_TWICE)
        deliver(f, asker, &m);
}

/* 1 + the list that has the parts now; 0: there is none free. */
static uint32_t list_parts(struct fake *f, uint32_t from, const struct ring_message *m)
{
    struct fake_node *to = &f->node[m->node];
    uint32_t list = 0, lists = atomic_load(&to->lists) ? atomic_load(&to->lists) : RING_LISTS;
    while (list < lists && to->listed[list])
        list++;
    if (list == lists)
        return 0;
    to->listed[list] = true;
    memcpy(ring_list(&to->ring, list), ring_slot(&f->node[from].ring, m->slot), m->count * sizeof(struct fetch_part));
    return list + 1;
}

static void refuse_question(struct fake *f, uint32_t from, const struct ring_message *m, int status)
{
    deliver(f, from,
            &(struct ring_message){.kind = RING_FETCHED, .slot = m->slot, .token = m->token, .status = status});
}

static void carry_question(struct fake *f, uint32_t from, const struct ring_message *m)
{
    struct ring_message serve = *m;
    bool many = m->flags == FETCH_MANY;
    atomic_fetch_add(&f->node[from].asks, 1);
    atomic_fetch_add(&f->node[from].asks_before, (m->flags & ~(uint32_t)FETCH_BLOCKS_MASK) == FETCH_BEFORE);
    atomic_fetch_add(&f->node[from].asks_fed, (m->flags & ~(uint32_t)FETCH_BLOCKS_MASK) == FETCH_FED);
    atomic_fetch_add(&f->node[from].asks_many, many);
    atomic_fetch_add(&f->node[from].asks_shared, (m->flags & FETCH_SHARED) != 0);
    bool hangs = atomic_load(&f->node[m->node].hangs);
    if (hangs && (many || m->file != f->node[m->node].shared)) {
        if (m->flags & FETCH_SHARED)
            refuse_question(f, from, m, -EHOSTUNREACH);
        else
            atomic_fetch_add(&f->node[m->node].swallowed, 1);
        return;
    }
    uint32_t list = many ? list_parts(f, from, m) : 0;
    if (many && !list) {
        refuse_question(f, from, m, -ENOBUFS);
        return;
    }
    uint64_t token = tokens++;
    struct flying *q = &flying[token % MOST_FLYING];
    if (q->used)
        bail_out("too many questions");
    *q = (struct flying){true, from, m->slot, m->token, list, hangs};
    serve.kind = RING_SERVE;
    serve.flags &= ~(uint32_t)FETCH_SHARED;
    serve.node = from;
    serve.token = token;
    serve.slot = list ? list - 1 : 0;
    deliver(f, m->node, &serve);
}

static void carry(struct fake *f, uint32_t from, const struct ring_message *m)
{
    if (m->kind == RING_REPLY) {
        bring_answer(f, from, m);
    } else if (m->kind == RING_FETCH && (m->node >= f->nodes || f->node[m->node].socket < 0)) {
        refuse_question(f, from, m, -EHOSTDOWN);
    } else if (m->kind == RING_FETCH) {
        carry_question(f, from, m);
    } else if (m->kind == RING_COMMAND && m->value == WORLD_TURN) {
        f->asked = m->turn;
        f->asked_k = m->token;
        atomic_fetch_add(&f->turns_asked, 1);
    } else if (m->kind == RING_COMMAND) {
        for (uint32_t i = 0; i < f->nodes; i++)
            if (i != from)
                deliver(f, i, m);
    }
}

static void serve(struct fake *f, uint32_t node, struct ring_message m, uint32_t by)
{
    pthread_mutex_lock(&lock);
    m.kind = RING_SERVE;
    m.token = tokens++;
    flying[m.token % MOST_FLYING] = (struct flying){true, by, 0, 0, 0, false};
    deliver(f, node, &m);
    pthread_mutex_unlock(&lock);
}

void fake_ask_silently(struct fake *f, uint32_t node, uint32_t from, uint32_t file, enum fetch_flags flags)
{
    serve(f, node, (struct ring_message){.node = from, .file = file, .count = 1, .flags = flags}, SILENT);
}

int fake_ask(struct fake *f, uint32_t node, const struct ring_message *question)
{
    struct ring_message m = *question;
    m.node = 1;
    atomic_store(&asked, 1);
    serve(f, node, m, BY_HAND);
    for (int i = 0; atomic_load(&asked) == 1; i++)
        wait_step(i, "a question is answered");
    return atomic_load(&asked);
}

static bool carry_all(struct fake *f)
{
    bool any = false;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < f->nodes; i++) {
        struct ring_message m;
        while (f->node[i].socket >= 0 && ring_take(&f->node[i].ring.shared->to_courier, &m) == 0) {
            carry(f, i, &m);
            any = true;
        }
    }
    pthread_mutex_unlock(&lock);
    return any;
}

static void carry_news(struct fake *f)
{
    pthread_mutex_lock(&lock);
    for (uint32_t from = 0; from < f->nodes; from++) {
        struct node_news news;
        if (f->node[from].socket < 0 || !news_read(ring_news(&f->node[from].ring, from), &news))
            continue;
        for (uint32_t to = 0; to < f->nodes; to++)
            if (to != from && f->node[to].socket >= 0)
                news_write(ring_news(&f->node[to].ring, from), &news);
    }
    pthread_mutex_unlock(&lock);
}

static void *play(void *argument)
{
    struct fake *f = argument;
    while (!atomic_load(&stop)) {
        if (carry_all(f))
            continue;
        carry_news(f);
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    return NULL;
}

/* --- conversations --- */

/* The next frame that is not MESSAGE_SHARED: these couriers leave all answers to the server. */
static int receive_frame(int socket, uint32_t *kind, void **payload, size_t *n, int *fds)
{
    int error = message_receive(socket, kind, payload, n, fds);
    if (error || *kind != MESSAGE_SHARED)
        return error;
    free(*payload);
    return receive_frame(socket, kind, payload, n, fds);
}

/* A descriptor that came with it is `came`. */
static void *ask_for(int socket, enum message_kind kind, const void *payload, size_t n, const int *fds,
                     enum message_kind expected, size_t *length, int *came)
{
    uint32_t got;
    void *answer;
    int passed[MESSAGE_FDS];
    int error = message_send(socket, kind, payload, n, fds);
    if (!error)
        error = receive_frame(socket, &got, &answer, length, came ? passed : NULL);
    if (error)
        bail_out("frame %d: %s", (int)kind, strerror(-error));
    if (got == MESSAGE_REFUSED)
        bail_out("frame %d refused: %s", (int)kind, (char *)answer + sizeof(uint32_t));
    if (got != expected)
        bail_out("frame %d answered by %u", (int)kind, got);
    if (came && *came >= 0)
        close(*came);
    if (came)
        *came = passed[0];
    return answer;
}

static void *ask(int socket, enum message_kind kind, const void *payload, size_t n, const int *fds,
                 enum message_kind expected, size_t *length)
{
    return ask_for(socket, kind, payload, n, fds, expected, length, NULL);
}

int fake_hello(struct fake *f, uint32_t node, struct message_welcome *welcome)
{
    int socket = message_connect(f->node[node].state);
    struct message_hello hello = {.version = MESSAGE_VERSION, .release = DEALFS_VERSION};
    size_t n;
    if (socket < 0)
        bail_out("connect to node %u: %s", node, strerror(-socket));
    memcpy(hello.world, f->uuid, sizeof hello.world);
    CLEANUP_FREE void *answer = ask(socket, MESSAGE_HELLO, &hello, sizeof hello, NULL, MESSAGE_WELCOME, &n);
    if (n != sizeof *welcome)
        bail_out("a welcome of %zu bytes", n);
    memcpy(welcome, answer, sizeof *welcome);
    return socket;
}

static void send_world(struct fake *f, uint32_t number, const struct message_member *members,
                       const struct claims_merged *merged)
{
    struct fake_node *n = &f->node[number];
    struct message_world head = {.nodes = f->nodes, .groups = f->groups, .me = number, .held = 1};
    CLEANUP_STR struct str frame = STR_INIT;
    size_t length;
    memcpy(head.world, f->uuid, sizeof head.world);
    str_add(&frame, &head, sizeof head);
    str_add(&frame, members, f->nodes * sizeof *members);
    str_add(&frame, merged->holder, f->groups * merged->extents * sizeof *merged->holder);
    memset(n->listed, 0, sizeof n->listed);
    if (ring_create(&n->ring, f->nodes))
        bail_out("a ring");
    const int fds[MESSAGE_FDS] = {n->ring.fd[0], n->ring.fd[1], n->ring.fd[2], -1, -1};
    CLEANUP_FREE struct digest *digest =
        ask_for(n->socket, MESSAGE_WORLD, frame.data, frame.length, fds, MESSAGE_LAYOUT, &length, &f->bytes[number]);
    if (number == 0)
        f->layout = *digest;
    else if (memcmp(digest, &f->layout, sizeof *digest))
        bail_out("node %u has another layout", number);
}

static void start_courier(struct fake *f)
{
    if (atomic_exchange(&running, true))
        return;
    atomic_store(&stop, false);
    memset(flying, 0, sizeof flying);
    holds = 0;
    if (pthread_create(&courier, NULL, play, f))
        bail_out("a thread");
}

static void ask_holdings(const struct fake *f, uint32_t number, int socket, uint64_t extents, struct holding *holding,
                         struct claims_merged *merged)
{
    size_t n;
    CLEANUP_FREE struct holding *answer = ask(socket, MESSAGE_HOLDINGS, NULL, 0, NULL, MESSAGE_HOLDINGS, &n);
    if (n != sizeof *answer + claims_words(extents) * sizeof(uint64_t))
        bail_out("holdings of %zu bytes", n);
    *holding = *answer;
    claims_merge(merged, f->nodes, f->groups, number, (const uint64_t *)(answer + 1));
}

static void begin_merge(struct claims_merged *m, uint32_t groups, uint64_t extents)
{
    m->extents = extents;
    m->holder = malloc(groups * extents * sizeof *m->holder + 1);
    m->best = calloc(groups * claims_words(extents) + 1, sizeof *m->best);
    if (!m->holder || !m->best)
        bail_out("no memory for holders");
    memset(m->holder, 0xff, groups * extents * sizeof *m->holder);
}

void fake_join(struct fake *f, uint32_t groups)
{
    static uint8_t worlds;
    struct message_member members[FAKE_NODES];
    int sockets[FAKE_NODES];
    struct claims_merged merged = {.extents = 0};
    memset(members, 0, sizeof members);
    memset(f->uuid, ++worlds, sizeof f->uuid);
    f->groups = groups;
    memset(&f->last, 0, sizeof f->last);
    for (uint32_t i = 0; i < f->nodes; i++) {
        struct message_welcome welcome;
        sockets[i] = fake_hello(f, i, &welcome);
        members[i].node = welcome.node;
        if (i == 0)
            begin_merge(&merged, groups, welcome.extents);
        ask_holdings(f, i, sockets[i], welcome.extents, &members[i].holding, &merged);
    }
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < f->nodes; i++)
        f->node[i].socket = sockets[i];
    for (uint32_t i = 0; i < f->nodes; i++)
        send_world(f, i, members, &merged);
    pthread_mutex_unlock(&lock);
    free(merged.holder);
    free(merged.best);
    start_courier(f);
    for (uint32_t i = 0; i < f->nodes; i++) {
        size_t n;
        free(ask(f->node[i].socket, MESSAGE_LIVE, NULL, 0, NULL, MESSAGE_OK, &n));
    }
}

static struct message_turn next_turn(const struct fake *f, const struct turn *turn)
{
    static uint64_t number;
    return (struct message_turn){++number, f->last.k + 1, *turn};
}

struct turn fake_asked(struct fake *f, uint64_t *k)
{
    pthread_mutex_lock(&lock);
    struct turn turn = f->asked;
    *k = f->asked_k;
    pthread_mutex_unlock(&lock);
    return turn;
}

int fake_ready(struct fake *f, uint32_t number, const struct turn *turn, uint64_t *room)
{
    struct message_turn m = next_turn(f, turn);
    size_t n;
    CLEANUP_FREE struct message_ready *ready =
        ask(f->node[number].socket, MESSAGE_BEGIN, &m, sizeof m, NULL, MESSAGE_READY, &n);
    if (n != sizeof *ready || ready->number != m.number)
        bail_out("READY of %zu bytes", n);
    *room = ready->room;
    return ready->status;
}

int fake_compute(struct fake *f, uint32_t number, const struct turn *turn, const uint64_t *room, struct digest *layout)
{
    struct {
        struct message_turn turn;
        uint64_t room[FAKE_NODES];
    } frame = {.turn = next_turn(f, turn)};
    size_t n, length = sizeof frame.turn + f->nodes * sizeof *room;
    memcpy(frame.room, room, f->nodes * sizeof *room);
    CLEANUP_FREE struct message_computed *computed = ask_for(f->node[number].socket, MESSAGE_COMPUTE, &frame, length,
                                                             NULL, MESSAGE_COMPUTED, &n, &f->computed[number]);
    if (n != sizeof *computed || computed->number != frame.turn.number)
        bail_out("COMPUTED of %zu bytes", n);
    *layout = f->would_be[number] = computed->layout;
    return computed->status;
}

void fake_settle(struct fake *f, uint32_t number, const struct turn *turn, uint64_t k, const struct digest *layout)
{
    struct turn_outcome outcome = {.record = {*turn, k, f->last.before, f->layout, *layout}};
    if (k > f->last.k) {
        f->last = outcome.record;
        f->layout = *layout;
    } else if (f->last.k) {
        outcome.record.earlier = f->last.earlier;
        outcome.record.before = f->last.before;
    }
    fake_outcome(f, number, &outcome);
}

void fake_outcome(struct fake *f, uint32_t number, const struct turn_outcome *outcome)
{
    if (!outcome->status && f->computed[number] >= 0 && digest_equal(&f->would_be[number], &outcome->record.after)) {
        if (f->bytes[number] >= 0)
            close(f->bytes[number]);
        f->bytes[number] = f->computed[number];
        f->computed[number] = -1;
    }
    const int fds[MESSAGE_FDS] = {f->bytes[number], -1, -1, -1, -1};
    if (message_send(f->node[number].socket, MESSAGE_SETTLED, outcome, sizeof *outcome, fds))
        bail_out("SETTLED is not taken");
}

struct world_view fake_view(struct fake *f, uint32_t node)
{
    struct world_view view;
    if (peers_view(f->node[node].peers, &view))
        bail_out("node %u has no view", node);
    return view;
}

uint64_t fake_turns(struct fake *f, uint32_t node)
{
    struct world_view view = fake_view(f, node);
    peers_view_release(&view);
    return view.last.k;
}

void fake_turn(struct fake *f, const struct turn *turn)
{
    uint64_t room[FAKE_NODES], k = f->last.k + 1;
    struct digest layout, other;
    for (uint32_t i = 0; i < f->nodes; i++)
        wait_until(fake_ready(f, i, turn, &room[i]) == 0);
    for (uint32_t i = 0; i < f->nodes; i++)
        if (fake_compute(f, i, turn, room, i ? &other : &layout) || (i && memcmp(&layout, &other, sizeof layout)))
            bail_out("the next layout");
    for (uint32_t i = 0; i < f->nodes; i++)
        fake_settle(f, i, turn, k, &layout);
    for (uint32_t i = 0; i < f->nodes; i++)
        wait_until(fake_turns(f, i) == k);
}

void fake_resume(struct fake *f, uint32_t number)
{
    struct fake_node *n = &f->node[number];
    struct message_welcome welcome;
    int socket = fake_hello(f, number, &welcome);
    struct message_resume resume = {.nodes = f->nodes, .me = number, .layout = f->layout, .last = f->last};
    size_t length;
    memcpy(resume.world, f->uuid, sizeof resume.world);
    struct ring ring;
    if (ring_create(&ring, f->nodes))
        bail_out("a ring");
    bool turned = f->computed[number] >= 0 && digest_equal(&f->would_be[number], &f->layout);
    const int fds[MESSAGE_FDS] = {ring.fd[0], ring.fd[1], ring.fd[2], turned ? f->computed[number] : f->bytes[number],
                                  -1};
    free(ask(socket, MESSAGE_RESUME, &resume, sizeof resume, fds, MESSAGE_OK, &length));
    pthread_mutex_lock(&lock);
    n->ring = ring;
    memset(n->listed, 0, sizeof n->listed);
    n->socket = socket;
    pthread_mutex_unlock(&lock);
}

void fake_leave(struct fake *f, uint32_t number)
{
    struct fake_node *n = &f->node[number];
    pthread_mutex_lock(&lock);
    if (n->socket >= 0) {
        close(n->socket);
        ring_close(&n->ring);
    }
    n->socket = -1;
    pthread_mutex_unlock(&lock);
}

void fake_swap(struct fake *f, uint32_t a, uint32_t b)
{
    pthread_mutex_lock(&lock);
    struct fake_node last = f->node[a];
    f->node[a] = f->node[b];
    f->node[b] = last;
    pthread_mutex_unlock(&lock);
}

void fake_end(struct fake *f)
{
    for (uint32_t i = 0; i < f->nodes; i++)
        fake_leave(f, i);
    if (atomic_load(&running)) {
        atomic_store(&stop, true);
        pthread_join(courier, NULL);
        atomic_store(&running, false);
    }
    for (uint32_t i = 0; i < f->nodes; i++) {
        fake_close(f, i);
        if (f->computed[i] >= 0)
            close(f->computed[i]);
        if (f->bytes[i] >= 0)
            close(f->bytes[i]);
    }
}

void fake_stats(const struct fake *f, uint32_t node, struct store_stats *stats)
{
    store_stats(f->node[node].store, stats);
}

uint64_t fake_samples(const struct fake *f)
{
    uint64_t samples = 0;
    for (uint32_t i = 0; i < f->nodes; i++) {
        struct store_stats stats;
        fake_stats(f, i, &stats);
        samples += stats.source_samples;
    }
    return samples;
}
