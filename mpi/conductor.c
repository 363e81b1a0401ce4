#include "mpi/conductor.h"

#include "fs/base/clock.h"
#include "fs/base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEAL_MOST_S = 120 };

static const struct digest no_layout;

/* The rooms of all, while they are sent. */
struct rooms {
    unsigned users;
    struct wire_rooms told;
};

struct conductor {
    struct mail *mail;
    struct home *home;
    enum {
        STEP_NONE,
        STEP_ASKED, /* the server counts its room */
        STEP_TOLD,  /* the rooms of all are awaited */
        STEP_DEAL,  /* the server deals */
        STEP_DEALT, /* what becomes of it is awaited */
    } step;
    uint64_t number;          /* of the deal */
    uint64_t settled;         /* the round of staging after which there was one; 0: none yet */
    struct wire_rooms *inbox; /* other nodes: for the rooms of all; made at the first deal */
    bool receiving;           /* it is posted */
    /* node 0: */
    uint64_t deals;      /* so far */
    struct rooms *rooms; /* as they are told; NULL: no deal is under way */
    uint64_t round;      /* of staging, that it follows */
    bool dealing;        /* the rooms are known, layouts are awaited */
    uint64_t deadline;
    uint32_t answers;     /* to the present question */
    struct digest layout; /* as the first has told it */
    bool told[];          /* by number: has answered the present question */
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

static size_t told_bytes(const struct conductor *c)
{
    return sizeof(struct wire_rooms) + c->mail->nodes * sizeof(uint64_t);
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

static void take_part_in(struct conductor *c, uint64_t number);
static void deal_here(struct conductor *c, const struct wire_rooms *rooms);
static void settle_here(struct conductor *c, uint64_t round, const struct digest *layout);

static void forget_answers(struct conductor *c)
{
    c->answers = 0;
    for (uint32_t i = 0; i < c->mail->nodes; i++)
        c->told[i] = false;
}

void conductor_begin(struct conductor *c, uint64_t round)
{
    if (c->rooms || c->home->ending)
        return;
    struct rooms *rooms = calloc(1, sizeof *rooms + c->mail->nodes * sizeof(uint64_t));
    if (!rooms) /* the server asks again */
        return;
    uint64_t number = ++c->deals;
    rooms->users = 1;
    rooms->told = (struct wire_rooms){.magic = WIRE_MAGIC, .nodes = c->mail->nodes, .number = number};
    c->rooms = rooms;
    c->round = round;
    c->dealing = false;
    c->deadline = clock_now() + DEAL_MOST_S * SECOND;
    forget_answers(c);
    mail_say_all(c->mail, &(struct wire_message){.kind = WIRE_DEAL, .token = number});
    take_part_in(c, number);
}

static void conclude_deal(struct conductor *c, struct digest layout)
{
    rooms_put(c->rooms);
    c->rooms = NULL;
    mail_say_all(c->mail, &(struct wire_message){.kind = WIRE_SETTLED, .token = c->round, .layout = layout});
    settle_here(c, c->round, &layout);
}

static void give_deal_up(struct conductor *c, const char *why)
{
    log_info("what has no owner is not dealt: %s", why);
    conclude_deal(c, c->home->layout);
}

static void rooms_left(void *user, int status, uint32_t from, size_t n)
{
    (void)status, (void)from, (void)n;
    rooms_put(user);
}

static void tell_rooms(struct conductor *c)
{
    c->dealing = true;
    forget_answers(c);
    for (uint32_t i = 1; i < c->mail->nodes; i++) {
        c->rooms->users++;
        int error = post_send(c->mail->post, &c->rooms->told, told_bytes(c), i, TAG_ROOMS, rooms_left, c->rooms);
        if (error) {
            rooms_put(c->rooms);
            mail_fail(c->mail, error, "send the rooms of all nodes");
            return;
        }
        mail_want_bell(c->mail, i);
    }
    deal_here(c, &c->rooms->told);
}

/* An answer to the present question: false: it is not, or it has failed. */
static bool note_answer(struct conductor *c, uint32_t from, const struct wire_message *m, bool dealt)
{
    char why[64];
    if (!c->rooms || c->rooms->told.number != m->token || c->dealing != dealt || c->told[from])
        return false;
    c->told[from] = true;
    c->answers++;
    if (!m->status)
        return true;
    snprintf(why, sizeof why, "node %" PRIu32 ": %s", from, strerror(-m->status));
    give_deal_up(c, why);
    return false;
}

static void note_room(struct conductor *c, uint32_t from, const struct wire_message *m)
{
    if (!note_answer(c, from, m, false))
        return;
    c->rooms->told.room[from] = m->room;
    if (c->answers == c->mail->nodes)
        tell_rooms(c);
}

static void note_dealt(struct conductor *c, uint32_t from, const struct wire_message *m)
{
    if (!note_answer(c, from, m, true))
        return;
    if (c->answers == 1)
        c->layout = m->layout;
    if (!digest_equal(&c->layout, &m->layout)) {
        log_error("node %" PRIu32 " computed another layout than those before it; this is a fault of dealfs", from);
        give_deal_up(c, "nodes do not agree");
    } else if (c->answers == c->mail->nodes) {
        conclude_deal(c, c->layout);
    }
}

void conductor_tick(struct conductor *c, uint64_t now)
{
    if (c->rooms && now > c->deadline)
        give_deal_up(c, "not all nodes have answered");
}

/* --- every node --- */

static void to_conductor(struct conductor *c, const struct wire_message *m)
{
    if (c->mail->me != 0)
        mail_say(c->mail, 0, m, NULL);
    else if (m->kind == WIRE_ROOM)
        note_room(c, 0, m);
    else
        note_dealt(c, 0, m);
}

static void tell_room(struct conductor *c, int status, uint64_t room)
{
    c->step = STEP_TOLD;
    to_conductor(c, &(struct wire_message){.kind = WIRE_ROOM, .token = c->number, .status = status, .room = room});
}

/* layout: zeros where there is none. */
static void tell_dealt(struct conductor *c, int status, struct digest layout)
{
    c->step = STEP_DEALT;
    to_conductor(c, &(struct wire_message){.kind = WIRE_DEALT, .token = c->number, .status = status, .layout = layout});
}

static void await_rooms(struct conductor *c);

/* Those of a deal that was over before they came leave us without a receive for the next. */
static void rooms_came(void *user, int status, uint32_t from, size_t n)
{
    struct conductor *c = user;
    bool right = !status && wire_rooms_check(c->inbox, n, c->mail->nodes) == 0;
    (void)from;
    c->receiving = false;
    if (!right)
        log_warning("node 0 sent rooms that make no sense");
    if (right && c->step == STEP_TOLD && c->inbox->number == c->number)
        deal_here(c, c->inbox);
    else if (c->step == STEP_ASKED || c->step == STEP_TOLD)
        await_rooms(c);
}

static void await_rooms(struct conductor *c)
{
    if (c->mail->me == 0 || c->receiving)
        return;
    int error = c->inbox || (c->inbox = malloc(told_bytes(c))) ? 0 : -ENOMEM;
    if (!error)
        error = post_receive(c->mail->post, c->inbox, told_bytes(c), 0, TAG_ROOMS, rooms_came, c);
    c->receiving = !error;
    if (error)
        mail_fail(c->mail, error, "receive the rooms of all nodes");
}

static void take_part_in(struct conductor *c, uint64_t number)
{
    c->number = number;
    c->step = STEP_ASKED;
    await_rooms(c);
    home_say(c->home, MESSAGE_ROOM, &number, sizeof number);
    if (c->home->state != HOME_LIVE)
        tell_room(c, -EHOSTDOWN, 0);
}

static void deal_here(struct conductor *c, const struct wire_rooms *rooms)
{
    c->step = STEP_DEAL;
    home_say(c->home, MESSAGE_DEAL, &rooms->number, told_bytes(c) - offsetof(struct wire_rooms, number));
    if (c->home->state != HOME_LIVE)
        tell_dealt(c, -EHOSTDOWN, no_layout);
}

static void tell_settled(struct conductor *c)
{
    struct message_settled settled = {c->settled, c->home->layout};
    home_say(c->home, MESSAGE_SETTLED, &settled, sizeof settled);
}

/* A server that is between two lives is given the layout when it resumes. */
static void settle_here(struct conductor *c, uint64_t round, const struct digest *layout)
{
    c->step = STEP_NONE;
    c->settled = round;
    c->home->layout = *layout;
    tell_settled(c);
}

void conductor_take(struct conductor *c, uint32_t from, const struct wire_message *m)
{
    bool from_conductor = m->kind == WIRE_DEAL || m->kind == WIRE_SETTLED;
    if (from_conductor ? from != 0 : c->mail->me != 0)
        log_limited(LOG_LEVEL_WARNING, 5, "node %" PRIu32 " takes part in a deal as it must not", from);
    else if (m->kind == WIRE_DEAL)
        take_part_in(c, m->token);
    else if (m->kind == WIRE_ROOM)
        note_room(c, from, m);
    else if (m->kind == WIRE_DEALT)
        note_dealt(c, from, m);
    else
        settle_here(c, m->token, &m->layout);
}

void conductor_look(struct conductor *c)
{
    struct message_room room = c->home->room;
    struct message_dealt dealt = c->home->dealt;
    c->home->room.number = c->home->dealt.number = 0;
    if (room.number && room.number == c->number && c->step == STEP_ASKED)
        tell_room(c, 0, room.room);
    if (dealt.number && dealt.number == c->number && c->step == STEP_DEAL) {
        bool failed = digest_equal(&dealt.layout, &no_layout);
        tell_dealt(c, failed ? -EIO : 0, dealt.layout);
    }
}

void conductor_server_left(struct conductor *c)
{
    if (c->step == STEP_ASKED)
        tell_room(c, -EHOSTDOWN, 0);
    else if (c->step == STEP_DEAL)
        tell_dealt(c, -EHOSTDOWN, no_layout);
}

void conductor_server_came(struct conductor *c)
{
    if (c->step == STEP_NONE && c->settled)
        tell_settled(c);
}
