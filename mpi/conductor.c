#include "mpi/conductor.h"

#include "fs/base/clock.h"
#include "fs/base/halt.h"
#include "fs/base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/uio.h>

enum { TURN_MOST_S = 45 };

/* The rooms of all nodes, while they are being sent. */
struct rooms {
    unsigned users;
    struct wire_rooms told;
};

struct conductor {
    struct mail *mail;
    struct home *home;
    enum {
        STEP_NONE,
        STEP_BEGUN,    /* waiting for the server: is it ready? */
        STEP_READY,    /* waiting for the rooms of all */
        STEP_COMPUTE,  /* the server computes */
        STEP_COMPUTED, /* waiting for the result of the turn */
    } step;
    struct message_turn now;     /* the turn in which this node takes part, or the last one */
    struct turn_outcome settled; /* result of the last turn; cause 0: there was none */
    struct wire_rooms *inbox;    /* on other nodes: buffer for the rooms of all; allocated at the first turn */
    bool receiving;              /* a receive for it is posted */
    /* only on node 0: */
    uint64_t begun;      /* number of turns that were begun */
    struct rooms *rooms; /* the rooms as received; NULL: no turn is in progress */
    bool computing;      /* the rooms are known; waiting for layouts */
    uint64_t deadline;
    uint32_t answers;     /* to the current question */
    struct digest layout; /* as the first node reported it */
    bool told[];          /* by node number: has answered the current question */
};

int conductor_create(struct mail *mail, struct home *home, struct conductor **conductor)
{
    struct conductor *c = calloc(1, sizeof *c + mail->nodes * sizeof *c->told);
    if (!c)
        return -ENOMEM;
    c->mail = mail;
    c->home = home;
    *conductor = c;
    return 0;
}

static size_t rooms_bytes(const struct conductor *c)
{
    return c->mail->nodes * sizeof(uint64_t);
}

static void rooms_put(struct rooms *rooms)
{
    if (rooms && --rooms->users == 0)
        free(rooms);
}

void conductor_destroy(struct conductor *c)
{
    if (!c)
        return;
    rooms_put(c->rooms);
    free(c->inbox);
    free(c);
}

/* --- node 0 --- */

static void take_part_in(struct conductor *c, const struct message_turn *turn);
static void compute_here(struct conductor *c, const struct wire_rooms *rooms);
static void settle_here(struct conductor *c, const struct turn_outcome *outcome);

static void forget_answers(struct conductor *c)
{
    c->answers = 0;
    for (uint32_t i = 0; i < c->mail->nodes; i++)
        c->told[i] = false;
}

static void begin_turn(struct conductor *c, uint64_t k, const struct turn *turn)
{
    const struct turn_record *last = &c->home->last;
    if (c->rooms || c->home->ending || k != last->k + 1 || (last->k && turn_same(&last->turn, turn)))
        return;
    struct rooms *rooms = calloc(1, sizeof *rooms + rooms_bytes(c));
    if (!rooms) /* the request will be repeated */
        return;
    struct message_turn now = {++c->begun, k, *turn};
    rooms->users = 1;
    rooms->told = (struct wire_rooms){.magic = WIRE_MAGIC, .nodes = c->mail->nodes, .number = now.number};
    c->rooms = rooms;
    c->computing = false;
    c->deadline = clock_now() + TURN_MOST_S * SECOND;
    forget_answers(c);
    mail_say_all(c->mail,
                 &(struct wire_message){.kind = WIRE_BEGIN, .token = now.number, .k = now.k, .turn = now.turn});
    take_part_in(c, &now);
}

/* End the turn. After a failure on a node, all nodes keep the current layout. */
static void conclude_turn(struct conductor *c, int status, uint32_t node)
{
    const struct home *h = c->home;
    struct turn_outcome outcome = {.record = h->last, .status = status, .node = status ? node : 0};
    outcome.record.turn = c->now.turn;
    if (!status)
        outcome.record = (struct turn_record){c->now.turn, c->now.k, h->last.before, h->layout, c->layout};
    else
        outcome.record.after = h->layout;
    rooms_put(c->rooms);
    c->rooms = NULL;
    halt_at("conclude");
    mail_say_all(c->mail, &(struct wire_message){.kind = WIRE_SETTLED,
                                                 .k = outcome.record.k,
                                                 .turn = outcome.record.turn,
                                                 .layout = outcome.record.after,
                                                 .status = status,
                                                 .token = outcome.node});
    settle_here(c, &outcome);
}

static void give_turn_up(struct conductor *c, uint32_t node, int status)
{
    if (status != -EBUSY) {
        conclude_turn(c, status, node);
        return;
    }
    rooms_put(c->rooms);
    c->rooms = NULL;
}

static void rooms_left(void *user, int status, uint32_t from, size_t n)
{
    (void)status, (void)from, (void)n;
    rooms_put(user);
}

static void tell_rooms(struct conductor *c)
{
    c->computing = true;
    forget_answers(c);
    halt_at("rooms");
    for (uint32_t i = 1; i < c->mail->nodes; i++) {
        c->rooms->users++;
        int error = post_send(c->mail->post, &c->rooms->told, sizeof c->rooms->told + rooms_bytes(c), i, TAG_ROOMS,
                              rooms_left, c->rooms);
        if (error) {
            rooms_put(c->rooms);
            mail_fail(c->mail, error, "send the free room of all nodes");
            return;
        }
        mail_want_bell(c->mail, i);
    }
    compute_here(c, &c->rooms->told);
}

/* False: it does not answer the current question, or reports a failure. */
static bool note_answer(struct conductor *c, uint32_t from, const struct wire_message *m, bool computed)
{
    if (!c->rooms || c->rooms->told.number != m->token || c->computing != computed || c->told[from])
        return false;
    c->told[from] = true;
    c->answers++;
    if (!m->status)
        return true;
    give_turn_up(c, from, m->status);
    return false;
}

static void note_ready(struct conductor *c, uint32_t from, const struct wire_message *m)
{
    if (!note_answer(c, from, m, false))
        return;
    c->rooms->told.room[from] = m->room;
    if (c->answers == c->mail->nodes)
        tell_rooms(c);
}

static void note_computed(struct conductor *c, uint32_t from, const struct wire_message *m)
{
    if (!note_answer(c, from, m, true))
        return;
    if (c->answers == 1)
        c->layout = m->layout;
    if (!digest_equal(&c->layout, &m->layout)) {
        log_error("node %" PRIu32 " computed another layout than the nodes before it: this is a bug in dealfs", from);
        give_turn_up(c, from, -EBADMSG);
    } else if (c->answers == c->mail->nodes) {
        conclude_turn(c, 0, 0);
    }
}

void conductor_tick(struct conductor *c, uint64_t now)
{
    uint32_t node = 0;
    if (!c->rooms || now <= c->deadline)
        return;
    while (c->told[node]) /* at least one is missing */
        node++;
    give_turn_up(c, node, -ETIMEDOUT);
}

/* --- every node --- */

void conductor_ask(struct conductor *c, uint64_t k, const struct turn *turn)
{
    if (c->mail->me == 0)
        begin_turn(c, k, turn);
    else
        mail_say(c->mail, 0, &(struct wire_message){.kind = WIRE_TURN, .k = k, .turn = *turn}, NULL);
}

static void to_conductor(struct conductor *c, const struct wire_message *m)
{
    if (c->mail->me != 0)
        mail_say(c->mail, 0, m, NULL);
    else if (m->kind == WIRE_READY)
        note_ready(c, 0, m);
    else
        note_computed(c, 0, m);
}

static void tell_ready(struct conductor *c, int status, uint64_t room)
{
    c->step = STEP_READY;
    to_conductor(c, &(struct wire_message){
                        .kind = WIRE_READY, .token = c->now.number, .status = status, .room = status ? 0 : room});
}

static void tell_computed(struct conductor *c, int status, struct digest layout)
{
    c->step = STEP_COMPUTED;
    to_conductor(
        c, &(struct wire_message){.kind = WIRE_COMPUTED, .token = c->now.number, .status = status, .layout = layout});
}

static void await_rooms(struct conductor *c);

/* If the rooms of an ended turn arrive late, post the receive for the next turn. */
static void rooms_came(void *user, int status, uint32_t from, size_t n)
{
    struct conductor *c = user;
    bool right = !status && wire_rooms_check(c->inbox, n, c->mail->nodes) == 0;
    (void)from;
    c->receiving = false;
    if (!right)
        log_warning("node 0 sent a malformed list of the nodes' free room");
    if (right && c->step == STEP_READY && c->inbox->number == c->now.number)
        compute_here(c, c->inbox);
    else if (c->step == STEP_BEGUN || c->step == STEP_READY)
        await_rooms(c);
}

static void await_rooms(struct conductor *c)
{
    size_t bytes = sizeof *c->inbox + rooms_bytes(c);
    if (c->mail->me == 0 || c->receiving)
        return;
    int error = c->inbox || (c->inbox = malloc(bytes)) ? 0 : -ENOMEM;
    if (!error)
        error = post_receive(c->mail->post, c->inbox, bytes, 0, TAG_ROOMS, rooms_came, c);
    c->receiving = !error;
    if (error)
        mail_fail(c->mail, error, "receive the free room of all nodes");
}

static void take_part_in(struct conductor *c, const struct message_turn *turn)
{
    c->now = *turn;
    c->step = STEP_BEGUN;
    halt_at("begin");
    await_rooms(c);
    home_say(c->home, MESSAGE_BEGIN, &c->now, sizeof c->now);
    if (c->home->state != HOME_LIVE)
        tell_ready(c, -EHOSTDOWN, 0);
}

static void compute_here(struct conductor *c, const struct wire_rooms *rooms)
{
    c->step = STEP_COMPUTE;
    halt_at("compute");
    struct iovec part[] = {{&c->now, sizeof c->now}, {(void *)rooms->room, rooms_bytes(c)}};
    home_sayv(c->home, MESSAGE_COMPUTE, part, 2);
    if (c->home->state != HOME_LIVE)
        tell_computed(c, -EHOSTDOWN, (struct digest){{0}});
}

/* A restarted server learns of a turn when it resumes; of a failed turn, after it has resumed. */
static void tell_settled(struct conductor *c)
{
    if (c->settled.record.turn.cause)
        home_say_settled(c->home, &c->settled);
}

static void settle_here(struct conductor *c, const struct turn_outcome *outcome)
{
    c->step = STEP_NONE;
    c->settled = *outcome;
    if (outcome->record.k > c->home->last.k)
        home_turn(c->home, &outcome->record);
    halt_at("settle");
    tell_settled(c);
}

void conductor_take(struct conductor *c, uint32_t from, const struct wire_message *m)
{
    bool from_conductor = m->kind == WIRE_BEGIN || m->kind == WIRE_SETTLED;
    if (from_conductor ? from != 0 : c->mail->me != 0)
        log_limited(LOG_LEVEL_WARNING, 5, "node %" PRIu32 " broke the protocol of a turn", from);
    else if (m->kind == WIRE_TURN)
        begin_turn(c, m->k, &m->turn);
    else if (m->kind == WIRE_BEGIN)
        take_part_in(c, &(struct message_turn){m->token, m->k, m->turn});
    else if (m->kind == WIRE_READY)
        note_ready(c, from, m);
    else if (m->kind == WIRE_COMPUTED)
        note_computed(c, from, m);
    else
        settle_here(c,
                    &(struct turn_outcome){.record = {m->turn, m->k, c->home->last.before, c->home->layout, m->layout},
                                           .status = m->status,
                                           .node = (uint32_t)m->token});
}

void conductor_look(struct conductor *c)
{
    struct message_ready ready = c->home->ready;
    struct message_computed computed = c->home->computed;
    c->home->ready.number = c->home->computed.number = 0;
    if (ready.number && ready.number == c->now.number && c->step == STEP_BEGUN)
        tell_ready(c, ready.status, ready.room);
    if (computed.number && computed.number == c->now.number && c->step == STEP_COMPUTE)
        tell_computed(c, computed.status, computed.layout);
}

void conductor_server_left(struct conductor *c)
{
    if (c->step == STEP_BEGUN)
        tell_ready(c, -EHOSTDOWN, 0);
    else if (c->step == STEP_COMPUTE)
        tell_computed(c, -EHOSTDOWN, (struct digest){{0}});
}

void conductor_server_came(struct conductor *c)
{
    tell_settled(c);
}
