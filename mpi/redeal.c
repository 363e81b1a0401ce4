/* Dealing again what has no owner, in a living world, when staging has ended everywhere and compression made room.
 *
 *   node 0's server ─DEAL─▶ node 0 ──DEAL──▶ all: ask their servers
 *                                  ◀──ROOM──
 *                                  ──rooms──▶ all: their servers deal, by the same rule
 *                                  ◀──DEALT──
 *                                  ──SETTLED─▶ all: their servers turn to it
 *
 * Node 0 conducts. Nothing has changed before SETTLED, so whatever goes wrong until then, a server that dies or a node
 * that does not answer, ends the deal with the directory as it was. */
#include "mpi/flight-inside.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"

#include <inttypes.h>
#include <string.h>

#define DEAL_MOST UINT64_C(120000000000)

/* The rooms of all, while they are sent. */
struct rooms {
    unsigned users;
    struct wire_rooms told;
};

static size_t told_bytes(const struct flight *f)
{
    return sizeof(struct wire_rooms) + f->c.nodes * sizeof(uint64_t);
}

static void rooms_put(struct rooms *rooms)
{
    if (rooms && --rooms->users == 0)
        free(rooms);
}

static struct wire_message make(enum wire_kind kind, uint64_t number)
{
    struct wire_message m = wire_make(kind);
    m.token = number;
    return m;
}

/* --- node 0 --- */

static void take_part(struct flight *f, uint64_t number);
static void deal(struct flight *f, const struct wire_rooms *rooms);
static void settle(struct flight *f, uint64_t round, const struct digest *directory);

static void ask_all(struct flight *f)
{
    f->redeal.answers = 0;
    for (uint32_t i = 0; i < f->c.nodes; i++)
        f->peer[i].told = false;
}

static void conduct(struct flight *f, uint64_t round)
{
    struct redeal *r = &f->redeal;
    struct rooms *rooms = calloc(1, sizeof *rooms + f->c.nodes * sizeof(uint64_t));
    if (!rooms) /* the server asks again */
        return;
    uint64_t number = ++r->deals;
    *rooms = (struct rooms){.users = 1, .told = {.magic = WIRE_MAGIC, .nodes = f->c.nodes, .number = number}};
    r->rooms = rooms;
    r->conducted = round;
    r->dealing = false;
    r->deadline = clock_now() + DEAL_MOST;
    ask_all(f);
    struct wire_message m = make(WIRE_DEAL, number);
    flight_say_all(f, &m);
    take_part(f, number);
}

void redeal_want(struct flight *f, uint64_t round)
{
    if (!f->redeal.rooms && !f->c.link->ending)
        conduct(f, round);
}

static void conclude(struct flight *f, const struct digest *directory)
{
    struct redeal *r = &f->redeal;
    struct wire_message m = make(WIRE_SETTLED, r->conducted);
    m.directory = *directory;
    rooms_put(r->rooms);
    r->rooms = NULL;
    flight_say_all(f, &m);
    settle(f, r->conducted, directory);
}

static void give_up(struct flight *f, const char *why)
{
    struct digest directory = f->c.link->directory;
    log_info("what has no owner is not dealt: %s", why);
    conclude(f, &directory);
}

static void rooms_left(void *user, int status, uint32_t from, size_t n)
{
    (void)status, (void)from, (void)n;
    rooms_put(user);
}

static void tell_rooms(struct flight *f)
{
    struct redeal *r = &f->redeal;
    r->dealing = true;
    ask_all(f);
    for (uint32_t i = 1; i < f->c.nodes; i++) {
        r->rooms->users++;
        int error = post_send(f->c.post, &r->rooms->told, told_bytes(f), i, TAG_ROOMS, rooms_left, r->rooms);
        if (error) {
            rooms_put(r->rooms);
            flight_fail(f, error, "send the rooms of all nodes");
            return;
        }
        flight_want_bell(f, i);
    }
    deal(f, &r->rooms->told);
}

/* An answer to the present question: false: it is not, or it has failed. */
static bool note_answer(struct flight *f, uint32_t from, const struct wire_message *m, bool dealt)
{
    struct redeal *r = &f->redeal;
    char why[64];
    if (!r->rooms || r->rooms->told.number != m->token || r->dealing != dealt || f->peer[from].told)
        return false;
    f->peer[from].told = true;
    r->answers++;
    if (!m->status)
        return true;
    snprintf(why, sizeof why, "node %" PRIu32 ": %s", from, strerror(-m->status));
    give_up(f, why);
    return false;
}

static void note_room(struct flight *f, uint32_t from, const struct wire_message *m)
{
    if (!note_answer(f, from, m, false))
        return;
    f->redeal.rooms->told.room[from] = m->room;
    if (f->redeal.answers == f->c.nodes)
        tell_rooms(f);
}

static void note_dealt(struct flight *f, uint32_t from, const struct wire_message *m)
{
    struct redeal *r = &f->redeal;
    if (!note_answer(f, from, m, true))
        return;
    if (r->answers == 1)
        r->directory = m->directory;
    if (memcmp(&r->directory, &m->directory, sizeof r->directory) != 0) {
        log_error("node %" PRIu32 " computed another directory than those before it; this is a fault of dealfs", from);
        give_up(f, "nodes do not agree");
    } else if (r->answers == f->c.nodes) {
        struct digest directory = r->directory;
        conclude(f, &directory);
    }
}

void redeal_tick(struct flight *f, uint64_t now)
{
    if (f->redeal.rooms && now > f->redeal.deadline)
        give_up(f, "not all nodes have answered");
}

/* --- every node --- */

static void to_conductor(struct flight *f, const struct wire_message *m)
{
    if (f->c.me != 0)
        flight_say(f, 0, m, NULL);
    else if (m->kind == WIRE_ROOM)
        note_room(f, 0, m);
    else
        note_dealt(f, 0, m);
}

static void tell_room(struct flight *f, int status, uint64_t room)
{
    struct wire_message m = make(WIRE_ROOM, f->redeal.number);
    m.status = status;
    m.room = status ? 0 : room;
    f->redeal.step = REDEAL_TOLD;
    to_conductor(f, &m);
}

static void tell_dealt(struct flight *f, int status, const struct digest *directory)
{
    struct wire_message m = make(WIRE_DEALT, f->redeal.number);
    m.status = status;
    if (!status)
        m.directory = *directory;
    f->redeal.step = REDEAL_DEALT;
    to_conductor(f, &m);
}

static void await_rooms(struct flight *f);

/* Those of a deal that was over before they came leave us without a receive for the next. */
static void rooms_came(void *user, int status, uint32_t from, size_t n)
{
    struct flight *f = user;
    struct redeal *r = &f->redeal;
    bool right = !status && wire_rooms_check(r->inbox, n, f->c.nodes) == 0;
    (void)from;
    r->receiving = false;
    if (!right)
        log_warning("node 0 sent rooms that make no sense");
    if (right && r->step == REDEAL_TOLD && r->inbox->number == r->number)
        deal(f, r->inbox);
    else if (r->step == REDEAL_ASKED || r->step == REDEAL_TOLD)
        await_rooms(f);
}

static void await_rooms(struct flight *f)
{
    struct redeal *r = &f->redeal;
    if (f->c.me == 0 || r->receiving)
        return;
    int error = r->inbox || (r->inbox = malloc(told_bytes(f))) ? 0 : -ENOMEM;
    if (!error)
        error = post_receive(f->c.post, r->inbox, told_bytes(f), 0, TAG_ROOMS, rooms_came, f);
    r->receiving = !error;
    if (error)
        flight_fail(f, error, "receive the rooms of all nodes");
}

static void take_part(struct flight *f, uint64_t number)
{
    struct redeal *r = &f->redeal;
    r->number = number;
    r->step = REDEAL_ASKED;
    await_rooms(f);
    link_say(f->c.link, ATTACH_ROOM, &number, sizeof number);
    if (f->c.link->state != LINK_LIVE)
        tell_room(f, -EHOSTDOWN, 0);
}

static void deal(struct flight *f, const struct wire_rooms *rooms)
{
    f->redeal.step = REDEAL_DEAL;
    link_say(f->c.link, ATTACH_DEAL, &rooms->number, told_bytes(f) - offsetof(struct wire_rooms, number));
    if (f->c.link->state != LINK_LIVE)
        tell_dealt(f, -EHOSTDOWN, NULL);
}

static void tell_settled(struct flight *f)
{
    struct attach_settled settled = {f->redeal.settled, f->c.link->directory};
    link_say(f->c.link, ATTACH_SETTLED, &settled, sizeof settled);
}

/* A server that is between two lives is given the directory when it resumes. */
static void settle(struct flight *f, uint64_t round, const struct digest *directory)
{
    f->redeal.step = REDEAL_NONE;
    f->redeal.settled = round;
    f->c.link->directory = *directory;
    tell_settled(f);
}

void redeal_message(struct flight *f, uint32_t from, const struct wire_message *m)
{
    bool from_conductor = m->kind == WIRE_DEAL || m->kind == WIRE_SETTLED;
    if (from_conductor ? from != 0 : f->c.me != 0)
        log_limited(LOG_LEVEL_WARNING, 5, "node %" PRIu32 " takes part in a deal as it must not", from);
    else if (m->kind == WIRE_DEAL)
        take_part(f, m->token);
    else if (m->kind == WIRE_ROOM)
        note_room(f, from, m);
    else if (m->kind == WIRE_DEALT)
        note_dealt(f, from, m);
    else
        settle(f, m->token, &m->directory);
}

static bool is_failed(const struct digest *directory)
{
    static const struct digest none;
    return memcmp(directory, &none, sizeof none) == 0;
}

void redeal_look(struct flight *f)
{
    struct redeal *r = &f->redeal;
    struct link *l = f->c.link;
    if (l->has_room) {
        l->has_room = false;
        if (r->step == REDEAL_ASKED && l->room.number == r->number)
            tell_room(f, 0, l->room.room);
    }
    if (l->has_dealt) {
        l->has_dealt = false;
        if (r->step == REDEAL_DEAL && l->dealt.number == r->number)
            tell_dealt(f, is_failed(&l->dealt.directory) ? -EIO : 0, &l->dealt.directory);
    }
}

void redeal_server_left(struct flight *f)
{
    if (f->redeal.step == REDEAL_ASKED)
        tell_room(f, -EHOSTDOWN, 0);
    else if (f->redeal.step == REDEAL_DEAL)
        tell_dealt(f, -EHOSTDOWN, NULL);
}

void redeal_server_came(struct flight *f)
{
    if (f->redeal.step == REDEAL_NONE && f->redeal.settled)
        tell_settled(f);
}

void redeal_fini(struct flight *f)
{
    rooms_put(f->redeal.rooms);
    free(f->redeal.inbox);
}
