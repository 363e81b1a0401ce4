/* A server for tests of the courier: it has the socket and the ring, but no mount, no shards and no source. The values
 * that it serves are made from the numbers that they are asked by, so a process that fetches them knows what must come.
 *
 *   fake-server STATE ID [KEY=VALUE…]
 *
 *   extents=N capacity=N options=N timeout_ms=N catalog=TEXT waiting=0|1
 *   held=N          holds the extents N and N+1    claim=N (enum claim)
 *   value=BYTES     length of a value          values=N        in one fetch
 *   slow=1          answers first -EAGAIN, then after SIGUSR2
 *   error=N         answers every question with -N
 *   fetch=N         when live, fetch as many times from the other nodes in turn, `depth` at a time
 *   flags=N         of all fetches; what is fetched with 1 gets -ENOENT, with 2 a bit for each third extent
 *   depth=N endless=1 (until SIGUSR2)   lost=N (N fetches may stay open in the end)
 *   command=N       when live, tell all others
 *   last=N          the same as the last thing, before END
 *   room=N          that is left when it is asked; SIGUSR1 has it ask for a turn (epoch 100, 101, …)
 *   cause=N         of these turns (enum turn_cause); epoch=N: always this one
 *   mute=N          does not answer a turn's first question (1) or second one (2)
 *   lacks=N         has no memory for the first N couriers that resume
 *   quiet=1         answers no HELLO, like a server without peers
 *   dies=N          dies of a frame of this kind (enum message_kind)
 *   wrong=N         computes another layout than the others (1), or none (2); is busy (3)
 *
 * It prints a line for what happens: "live N nodes", "told to wait" for each fetch at its first WAIT, "waits N" for
 * each hundred of these, "down" once, "fetched: R right, W waits, O open, D down, B bad, E errors", "command C from N
 * token T", "news from N", "resumed at K", "hang-up", "ready? E", "compute E of ROOM", "gone N", "settled E as before",
 * "settled E again", E being the epoch. SIGTERM: it says END and ends. SIGKILL is a crash; the next one with the same
 * STATE takes over. One thread. */
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/store/value.h"
#include "fs/wire/message.h"
#include "fs/wire/ring.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>

enum { FILES = 1000, OWED = 4096 };

static struct {
    uint64_t extents, capacity, options, timeout_ms, held, waiting, value, values, slow, error, fetch, depth, endless,
        lost, command, last, room, mute, lacks, wrong, claim, flags, cause, epoch, quiet, dies;
} o = {.extents = 1000,
       .capacity = 1 << 30,
       .timeout_ms = 5000,
       .held = UINT64_MAX,
       .value = 100000,
       .values = 1,
       .depth = 4,
       .claim = CLAIM_WHOLE,
       .cause = TURN_ROOM};
static const char *state, *id, *catalog = "one";

static int listening = -1, courier = -1;
static struct ring ring;
static bool has_ring, live, fetching;
static uint32_t me, nodes;

static struct out {
    bool fetch; /* an in-slot that is waited for */
    struct ring_message asked;
    bool waits;
} in_slot[RING_IN];
static bool out_busy[RING_OUT];
static struct ring_message owed[OWED];
static size_t owes;
static uint64_t asked, ended, right, waits, down, bad, errors, last_token, pulse;
static volatile sig_atomic_t stop, wants, released;
static struct digest layout, computed;
static uint64_t k; /* of the layout */

static _Noreturn void die(const char *what, int error)
{
    fprintf(stderr, "fake-server %s: %s: %s\n", id, what, strerror(-error));
    exit(1);
}

/* --- values --- */

static uint8_t byte_of(uint32_t file, uint32_t value, size_t at)
{
    return (uint8_t)(file * 31 + value * 7 + at / 64);
}

static size_t make_payload(void *slot, const struct ring_message *m)
{
    uint32_t length[RING_VALUES];
    for (uint32_t i = 0; i < m->count; i++)
        length[i] = (uint32_t)o.value;
    for (uint32_t i = 0; i < m->count; i++) {
        uint8_t *to = (uint8_t *)slot + payload_begin(length, i);
        for (size_t at = 0; at < length[i]; at += 64)
            memset(to + at, byte_of(m->file, m->value + i, at), length[i] - at < 64 ? length[i] - at : 64);
    }
    payload_finish(slot, &(struct value_run){m->file, m->value, m->count}, length);
    return payload_begin(length, m->count);
}

static uint64_t first_extent(const struct ring_message *m)
{
    return m->file | (uint64_t)m->value << 32;
}

static size_t make_stored(void *slot, const struct ring_message *m)
{
    struct payload_stored *p = payload_stored_begin(slot, first_extent(m), m->count, 0);
    for (uint32_t i = 0; i < m->count; i += 3)
        p->word[i / 64] |= UINT64_C(1) << i % 64;
    return payload_stored_finish(p);
}

static size_t make_answer(void *slot, const struct ring_message *m)
{
    return m->flags & FETCH_STORED ? make_stored(slot, m) : make_payload(slot, m);
}

static bool check_stored(const void *slot, size_t n, const struct ring_message *m)
{
    const uint64_t *word = payload_stored_parse(slot, n, first_extent(m), m->count, 0);
    for (uint32_t i = 0; word && i < m->count; i++)
        if ((word[i / 64] >> i % 64 & 1) != (i % 3 == 0))
            return false;
    return word;
}

static bool check_payload(const void *slot, size_t n, const struct ring_message *m)
{
    if (m->flags & FETCH_STORED)
        return check_stored(slot, n, m);
    struct payload_value v[RING_VALUES];
    if (payload_parse(slot, n, &(struct value_run){m->file, m->value, m->count}, v))
        return false;
    for (uint32_t i = 0; i < m->count; i++)
        for (size_t at = 0; at < v[i].length; at++)
            if (((const uint8_t *)v[i].bytes)[at] != byte_of(m->file, m->value + i, at))
                return false;
    return true;
}

/* --- fetches --- */

static void push(const struct ring_message *m)
{
    while (ring_push(&ring.shared->to_courier, ring.fd[RING_BELL_COURIER], m) == -EAGAIN)
        ;
}

static bool more_to_fetch(void)
{
    return o.endless ? !released : asked < o.fetch;
}

static void fetch_one(uint32_t slot)
{
    uint32_t node = (uint32_t)(asked % (nodes - 1));
    struct ring_message m = {.kind = RING_FETCH,
                             .node = node < me ? node : node + 1,
                             .slot = slot,
                             .token = ++last_token,
                             .file = (uint32_t)(asked % FILES),
                             .value = (uint32_t)(asked % 5),
                             .count = (uint32_t)o.values,
                             .flags = (uint32_t)o.flags};
    asked++;
    in_slot[slot] = (struct out){true, m, false};
    push(&m);
}

static void fetch_more(void)
{
    size_t flying = 0;
    for (uint32_t i = 0; i < RING_IN; i++)
        flying += in_slot[i].fetch;
    for (uint32_t i = 0; i < RING_IN && flying < o.depth + o.lost && more_to_fetch(); i++)
        if (!in_slot[i].fetch) {
            fetch_one(i);
            flying++;
        }
    if (flying > o.lost || more_to_fetch())
        return;
    fetching = false;
    printf("fetched: %" PRIu64 " right, %" PRIu64 " waits, %zu open, %" PRIu64 " down, %" PRIu64 " bad, %" PRIu64
           " errors\n",
           right, waits, flying, down, bad, errors);
}

static void fetched(const struct ring_message *m)
{
    struct out *s = m->slot < RING_IN ? &in_slot[m->slot] : NULL;
    if (!s || !s->fetch || m->token != s->asked.token)
        die("FETCHED of what was not asked", -EPROTO);
    if (m->status == -EAGAIN) {
        if (!s->waits)
            printf("told to wait\n");
        s->waits = true;
        if (++waits % 100 == 0)
            printf("waits %" PRIu64 "\n", waits);
        return;
    }
    s->fetch = false;
    ended++;
    if (m->status == -EHOSTDOWN && down++ == 0)
        printf("down\n");
    else if (m->status == -EHOSTDOWN)
        return;
    else if (m->status)
        errors++;
    else if (check_payload(ring_slot(&ring, m->slot), m->length, &s->asked))
        right++;
    else
        bad++;
}

/* --- serves --- */

static void reply(const struct ring_message *asked_for, int status)
{
    struct ring_message m = {.kind = RING_REPLY, .node = asked_for->node, .token = asked_for->token, .status = status};
    push(&m);
}

static bool reply_payload(const struct ring_message *asked_for)
{
    for (uint32_t i = 0; i < RING_OUT; i++)
        if (!out_busy[i]) {
            out_busy[i] = true;
            struct ring_message m = {.kind = RING_REPLY,
                                     .node = asked_for->node,
                                     .token = asked_for->token,
                                     .slot = RING_IN + i,
                                     .length = (uint32_t)make_answer(ring_slot(&ring, RING_IN + i), asked_for)};
            push(&m);
            return true;
        }
    return false;
}

static void owe(const struct ring_message *m)
{
    if (owes == OWED)
        die("too many questions", -ENOBUFS);
    owed[owes++] = *m;
}

static void serve(const struct ring_message *m)
{
    if (o.error || m->flags & FETCH_BEFORE) {
        reply(m, o.error ? -(int)o.error : -ENOENT);
        return;
    }
    if (o.slow)
        reply(m, -EAGAIN);
    if (o.slow || !reply_payload(m))
        owe(m);
}

static void pay(void)
{
    for (size_t i = 0; i < owes && (!o.slow || released);)
        if (reply_payload(&owed[i]))
            owed[i] = owed[--owes];
        else
            i++;
}

/* --- the ring --- */

static void tell_news(uint64_t now)
{
    static uint64_t seen[64];
    struct node_news news = {.held = right + ended, .capacity = o.capacity};
    if (now - pulse < 500 * MILLISECOND)
        return;
    pulse = now;
    news_write(ring_news(&ring, me), &news);
    for (uint32_t i = 0; i < nodes && i < 64; i++)
        if (i != me && news_read(ring_news(&ring, i), &news) && news.version > 0 && !seen[i]) {
            seen[i] = 1;
            printf("news from %" PRIu32 "\n", i);
        }
}

static bool take_ring(void)
{
    struct ring_message m;
    int n = 0;
    for (; n < 64 && ring_take(&ring.shared->to_server, &m) == 0; n++)
        switch (m.kind) {
        case RING_FETCHED:
            fetched(&m);
            break;
        case RING_SERVE:
            serve(&m);
            break;
        case RING_SENT:
            if (m.slot < RING_IN || m.slot >= RING_IN + RING_OUT || !out_busy[m.slot - RING_IN])
                die("SENT of what was not replied", -EPROTO);
            out_busy[m.slot - RING_IN] = false;
            break;
        case RING_GONE:
            printf("gone %" PRIu32 "\n", m.node);
            break;
        case RING_COMMAND:
            printf("command %" PRIu32 " from %" PRIu32 " token %" PRIu64 "\n", m.value, m.node, m.token);
            break;
        default:
            die("a message of the ring", -EPROTO);
        }
    return n > 0;
}

/* --- the socket --- */

static void answer(enum message_kind kind, const void *bytes, size_t n)
{
    int error = message_send(courier, kind, bytes, n, NULL);
    if (error)
        die("answer the courier", error);
}

static void welcome(void)
{
    struct message_welcome w = {.version = MESSAGE_VERSION,
                                .waiting = (uint32_t)o.waiting,
                                .release = DEALFS_VERSION,
                                .node = {.host = "fake", .capacity = o.capacity},
                                .options = o.options,
                                .extents = o.extents,
                                .peer_timeout = o.timeout_ms * MILLISECOND};
    struct digest d = hash128(id, strlen(id), 0);
    digest_format(&d, w.node.id);
    if (!o.waiting)
        w.catalog = w.versions = hash128(catalog, strlen(catalog), 0);
    else
        w.extents = 0;
    answer(MESSAGE_WELCOME, &w, sizeof w);
}

static void tell_holdings(void)
{
    size_t words = claims_words(o.extents);
    CLEANUP_FREE uint64_t *claims = calloc(words + 1, sizeof *claims);
    struct holding holding = {.room = o.capacity};
    for (uint64_t i = o.held; claims && i < o.extents && i < o.held + 2; i++) {
        claims[i / CLAIMS_A_WORD] |= o.claim << i % CLAIMS_A_WORD * 2;
        holding.cost += 1000;
    }
    struct iovec part[] = {{&holding, sizeof holding}, {claims, words * sizeof *claims}};
    int error = message_sendv(courier, MESSAGE_HOLDINGS, part, 2, NULL);
    if (error)
        die("answer the courier", error);
}

static void open_ring(const int fds[MESSAGE_FDS], uint32_t number, uint32_t count)
{
    if (has_ring)
        ring_close(&ring);
    int error = ring_open(&ring, fds);
    if (error)
        die("open the ring", error);
    has_ring = true;
    me = number;
    nodes = count;
}

static void take_world(const void *payload, size_t n, const int fds[MESSAGE_FDS])
{
    const struct message_world *w = payload;
    if (n < sizeof *w ||
        n != sizeof *w + w->nodes * sizeof(struct message_member) + w->held * w->groups * o.extents * 2)
        die("WORLD", -EPROTO);
    open_ring(fds, w->me, w->nodes);
    printf("groups %" PRIu32 "\n", w->groups);
    const struct message_member *member = (const void *)(w + 1);
    const uint16_t *holder = (const void *)(member + w->nodes);
    for (uint64_t i = 0; w->held && i < w->groups * o.extents; i++)
        if (holder[i] != NO_OWNER)
            printf("held %" PRIu64 " by %u\n", i % o.extents, holder[i]);
    layout = hash128((const char *)payload + sizeof *w, n - sizeof *w, w->groups);
    k = 0;
    answer(MESSAGE_LAYOUT, &layout, sizeof layout);
}

static void tell_ready(const struct message_turn *turn)
{
    struct message_ready r = {.number = turn->number, .room = o.room, .status = o.wrong == 3 ? -EBUSY : 0};
    printf("ready? %" PRIu64 "\n", turn->turn.epoch);
    if (turn->k != k + 1)
        die("the number of a turn", -EPROTO);
    if (o.mute != 1)
        answer(MESSAGE_READY, &r, sizeof r);
}

/* A layout that is made of the rooms, or stays where there are none. */
static void compute(const struct message_turn *turn, size_t n)
{
    struct message_computed c = {.number = turn->number};
    const uint64_t *room = (const uint64_t *)(turn + 1);
    uint64_t sum = 0;
    if (n != sizeof *turn + nodes * sizeof *room)
        die("COMPUTE", -EPROTO);
    for (uint32_t i = 0; i < nodes; i++)
        sum += room[i];
    printf("compute %" PRIu64 " of %" PRIu64 "\n", turn->turn.epoch, sum);
    computed = sum ? hash128(turn, n, o.wrong == 1) : layout;
    c.layout = computed;
    if (o.wrong == 2)
        c = (struct message_computed){.number = turn->number, .status = -ENOSPC};
    if (o.mute != 2)
        answer(MESSAGE_COMPUTED, &c, sizeof c);
}

static void settle(const struct turn_outcome *outcome)
{
    const struct turn_record *record = &outcome->record;
    bool before = memcmp(&record->after, &layout, sizeof layout) == 0;
    layout = record->after;
    k = record->k;
    printf("settled %" PRIu64 " %s%s%s\n", record->turn.epoch, before ? "as before" : "again",
           outcome->status ? ": " : "", outcome->status ? strerror(-outcome->status) : "");
    if (outcome->status)
        printf("failed %" PRIu64 " on node %" PRIu32 "\n", record->turn.epoch, outcome->node);
}

static void resume(const struct message_resume *r, const int fds[MESSAGE_FDS])
{
    layout = r->layout;
    k = r->last.k;
    open_ring(fds, r->me, r->nodes);
    printf("resumed at %" PRIu64 "\n", k);
}

static void ask_turn(uint64_t epoch)
{
    struct turn turn = {.cause = (uint32_t)o.cause,
                        .epoch = o.epoch ? o.epoch : epoch,
                        .fraction = o.cause == TURN_EXCHANGE ? TURN_WHOLE / 2 : 0};
    struct ring_message m = {.kind = RING_COMMAND, .node = me, .value = WORLD_TURN, .token = k + 1, .turn = turn};
    if (live)
        push(&m);
    printf("wanted %" PRIu64 "\n", turn.epoch);
}

static void say_command(uint64_t command, uint64_t token)
{
    struct ring_message m = {.kind = RING_COMMAND, .node = me, .value = (uint32_t)command, .token = token};
    if (live && command)
        push(&m);
}

static void go_live(void)
{
    live = true;
    fetching = nodes > 1 && (o.fetch || o.endless);
    memset(in_slot, 0, sizeof in_slot);
    printf("live %" PRIu32 " of %" PRIu32 " nodes\n", me, nodes);
    answer(MESSAGE_OK, NULL, 0);
    say_command(o.command, 77);
}

static void take_catalog(const char *path)
{
    struct str bytes = STR_INIT;
    printf("catalog %zd bytes\n", file_read(-1, path, 1 << 20, &bytes) ? (ssize_t)-1 : (ssize_t)bytes.length);
    str_fini(&bytes);
    o.waiting = 0;
    answer(MESSAGE_OK, NULL, 0);
}

static void forget_courier(void)
{
    close(courier);
    courier = -1;
    live = fetching = false;
    printf("hang-up\n");
}

static void refuse_for_memory(const int fds[MESSAGE_FDS])
{
    const uint32_t number = ENOMEM;
    for (int i = 0; i < MESSAGE_FDS; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    answer(MESSAGE_REFUSED, &number, sizeof number);
    forget_courier();
}

static void take_frame(void)
{
    CLEANUP_FREE void *payload = NULL;
    uint32_t kind;
    size_t n;
    int fds[MESSAGE_FDS];
    int error = message_receive(courier, &kind, &payload, &n, fds);
    if (error) {
        forget_courier();
        return;
    }
    if (kind == o.dies)
        _exit(1);
    switch (kind) {
    case MESSAGE_HELLO:
        if (o.quiet)
            printf("quiet\n");
        else
            welcome();
        break;
    case MESSAGE_CATALOG:
        take_catalog(payload);
        break;
    case MESSAGE_HOLDINGS:
        tell_holdings();
        break;
    case MESSAGE_WORLD:
        take_world(payload, n, fds);
        break;
    case MESSAGE_BEGIN:
        tell_ready(payload);
        break;
    case MESSAGE_COMPUTE:
        compute(payload, n);
        break;
    case MESSAGE_SETTLED:
        settle(payload);
        break;
    case MESSAGE_RESUME:
        if (o.lacks) {
            o.lacks--;
            refuse_for_memory(fds);
            break;
        }
        resume(payload, fds);
        go_live();
        break;
    case MESSAGE_LIVE:
        go_live();
        break;
    default:
        die("a frame of the courier", -EPROTO);
    }
}

static void sleep_on(int ms)
{
    bool asleep = live && ring_may_sleep(&ring.shared->to_server);
    struct pollfd fd[] = {
        {listening, POLLIN, 0}, {courier, POLLIN, 0}, {live ? ring.fd[RING_BELL_SERVER] : -1, POLLIN, 0}};
    int n = poll(fd, 3, live && !asleep ? 0 : ms);
    if (asleep) {
        eventfd_t rung;
        eventfd_read(ring.fd[RING_BELL_SERVER], &rung);
        ring_awake(&ring.shared->to_server);
    }
    if (n > 0 && fd[0].revents) {
        int fresh = message_accept(listening);
        if (fresh >= 0 && courier >= 0)
            forget_courier();
        if (fresh >= 0)
            courier = fresh;
    } else if (n > 0 && fd[1].revents) {
        take_frame();
    }
}

static void run(void)
{
    uint64_t asked_for = 0;
    while (!stop) {
        uint64_t now = clock_now();
        bool some = live && take_ring();
        if (live) {
            pay();
            tell_news(now);
        }
        if (live && fetching)
            fetch_more();
        if (asked_for < (uint64_t)wants) {
            ask_turn(100 + asked_for++);
        }
        if (!some)
            sleep_on(10);
    }
    say_command(o.last, 77);
    if (courier >= 0)
        message_send(courier, MESSAGE_END, NULL, 0, NULL);
}

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

static void on_want(int number)
{
    (void)number;
    wants++;
}

static void on_release(int number)
{
    (void)number;
    released = 1;
}

static void take_argument(char *word)
{
    static const struct {
        const char *key;
        uint64_t *to;
    } keys[] = {
        {"extents", &o.extents}, {"capacity", &o.capacity}, {"options", &o.options}, {"timeout_ms", &o.timeout_ms},
        {"held", &o.held},       {"waiting", &o.waiting},   {"value", &o.value},     {"values", &o.values},
        {"slow", &o.slow},       {"error", &o.error},       {"fetch", &o.fetch},     {"depth", &o.depth},
        {"endless", &o.endless}, {"lost", &o.lost},         {"command", &o.command}, {"last", &o.last},
        {"room", &o.room},       {"mute", &o.mute},         {"wrong", &o.wrong},     {"lacks", &o.lacks},
        {"claim", &o.claim},     {"flags", &o.flags},       {"cause", &o.cause},     {"epoch", &o.epoch},
        {"quiet", &o.quiet},     {"dies", &o.dies}};
    char *value = strchr(word, '=');
    if (!value)
        die(word, -EINVAL);
    *value++ = '\0';
    if (strcmp(word, "catalog") == 0) {
        catalog = value;
        return;
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(word, keys[i].key) == 0) {
            *keys[i].to = strtoull(value, NULL, 10);
            return;
        }
    die(word, -EINVAL);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    state = argv[1];
    id = argv[2];
    for (int i = 3; i < argc; i++)
        take_argument(argv[i]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGTERM, on_signal);
    signal(SIGUSR1, on_want);
    signal(SIGUSR2, on_release);
    signal(SIGPIPE, SIG_IGN);
    listening = message_listen(state);
    if (listening < 0)
        die("listen", listening);
    printf("listening\n");
    run();
    return 0;
}
