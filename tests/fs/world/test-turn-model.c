/* The rules of a turn and of the move after it (fs/world/FORMAT), as a small state machine whose every interleaving is
 * looked at: three nodes, extents that go to another node, back, and on, losses and restarts at any moment, and a
 * reader at any node.
 *
 * A state is expanded by all actions that are possible in it; each action is one message that arrives, or one step of
 * one node. In every state these hold:
 *
 *   - an extent that had a holder has one, unless its last one was lost, or restarted with it in a staging;
 *   - what is dropped is another node's, which has stored it;
 *   - no question goes over more than two hops, and a read can always go on;
 *   - after a join each extent has an owner in the world, who holds it where anybody does;
 *   - where nothing is left to do, all nodes are at the same turn, their moves are done, and what has moved is dropped;
 *   - where nothing is lost and all has room, the source is read for nothing, but by a question that a turn overtakes.
 *
 * The checker is also checked: with one rule broken it must find what goes wrong. */
#include "tests/lib/tap.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/hash.h"

enum { NODES = 3, EXTENTS = 2 };

/* What is looked at together; all at once would be too much. */
struct scope {
    const char *what;
    uint8_t extents, turns, losses, restarts;
    bool reads, scarce; /* scarce: a node may have no room for what comes */
};
static const struct scope *scope;

enum broken {
    NONE,
    DROP_WHEN_HELD,    /* the old owner drops what the new one holds in a staging only */
    ANSWER_OUTLIVES,   /* "stored" is believed after the next turn */
    BEFORE_IS_LOADED,  /* who is asked with BEFORE loads it where it lacks it */
    NOT_HELD_ENDS,     /* NOT-HELD is final where who says so has not turned yet */
    TRIM_AT_TURN,      /* what is not owned is dropped when a turn begins */
    JOIN_TAKES_LOWEST, /* at a join the lowest number is the owner, whatever it holds */
    DROP_AT_JOIN,      /* at a join what is not owned is dropped, without a question */
    RULES,
};
static const char *const broken_names[] = {
    [DROP_WHEN_HELD] = "dropped when held",  [ANSWER_OUTLIVES] = "an answer outlives its turn",
    [BEFORE_IS_LOADED] = "BEFORE is loaded", [NOT_HELD_ENDS] = "NOT-HELD of who is behind is final",
    [TRIM_AT_TURN] = "trimmed at a turn",    [JOIN_TAKES_LOWEST] = "the lowest number owns",
    [DROP_AT_JOIN] = "dropped at a join",
};

enum hold { NOTHING, STAGING, STORED };
enum load { NO_LOAD, AT_BEFORE, AT_SOURCE };
enum question { NOT_ASKED, ASKED, ANSWERED };
enum reading { IDLE, STARTS, ASKS, ASKS_BEFORE, WAITS };
enum conducting { AT_REST, COMPUTING, SETTLING };

/* Bytes only, so that equal states are equal in memory. */
struct node_state {
    uint8_t alive, k, computed;
    uint8_t said; /* it told the others that its move is done; they may know that longer than it is true */
    uint8_t hold[EXTENTS], load[EXTENTS], from[EXTENTS]; /* from: who is asked with BEFORE */
    uint8_t refused[EXTENTS], not_held[EXTENTS];
    uint8_t question, of, asked_at; /* "have you stored it", of which extent, at which turn */
};

struct state {
    struct node_state node[NODES];
    uint8_t base[EXTENTS]; /* the owners at turn 0 */
    uint8_t members;       /* of the world, or of the last one: a bit a node */
    uint8_t world, turn, conducting;
    uint8_t turns_left, losses_left, restarts_left;
    uint8_t excused[EXTENTS]; /* the last holder was lost */
    struct {
        uint8_t phase, node, extent, to, k;
    } read;
};

static const char *wrong; /* what was found */
static enum broken broken;

static void must(bool condition, const char *what)
{
    if (!condition && !wrong)
        wrong = what;
}

/* --- layouts: there and back --- */

static uint8_t next_node(const struct state *s, uint8_t node)
{
    do
        node = (uint8_t)((node + 1) % NODES);
    while (!(s->members >> node & 1));
    return node;
}

static uint8_t owner_at(const struct state *s, int extent, uint8_t k)
{
    return k % 2 ? next_node(s, s->base[extent]) : s->base[extent];
}

static bool owns(const struct state *s, int node, int extent)
{
    return owner_at(s, extent, s->node[node].k) == node;
}

static bool at_same_turn(const struct state *s)
{
    for (int n = 0; n < NODES; n++)
        if (s->node[n].alive && s->node[n].k != s->turn)
            return false;
    return true;
}

/* --- holders --- */

/* Will it keep what it holds? Not where it was told that the owner has stored it. */
static bool keeps(const struct state *s, int n, int e)
{
    const struct node_state *node = &s->node[n];
    bool told = node->question == ANSWERED && node->of == e && node->asked_at == node->k;
    return node->alive && node->hold[e] != NOTHING && !told;
}

static bool is_held(const struct state *s, int e)
{
    for (int n = 0; n < NODES; n++)
        if (s->node[n].alive && s->node[n].hold[e] != NOTHING)
            return true;
    return false;
}

static void excuse(struct state *s)
{
    for (int e = 0; e < scope->extents; e++) {
        bool kept = false;
        for (int n = 0; n < NODES; n++)
            kept |= keeps(s, n, e);
        s->excused[e] |= !kept;
    }
}

/* Nothing went wrong, and all has room: then a turn costs the source nothing, except for reads that were asked
 * before. */
static void check_source(const struct state *s)
{
    bool overtaken = s->read.phase != IDLE && s->read.k != s->turn;
    must(scope->scarce || scope->restarts || scope->losses || overtaken, "the source is read though a node has it");
}

static void check_holders(const struct state *s)
{
    for (int e = 0; e < scope->extents; e++)
        must(s->excused[e] || is_held(s, e), "an extent has no holder any more");
}

/* --- loads: one for what is lacking, from who had it before, else from the source --- */

static void start_load(struct state *s, int n, int e)
{
    struct node_state *node = &s->node[n];
    if (node->load[e] != NO_LOAD)
        return;
    uint8_t before = node->k > 0 ? owner_at(s, e, (uint8_t)(node->k - 1)) : (uint8_t)n;
    node->load[e] = s->world && before != n ? AT_BEFORE : AT_SOURCE;
    node->from[e] = node->load[e] == AT_BEFORE ? before : 0;
}

/* Each node that waits for it has it; it is kept where it is owned and has room. */
static void end_load(struct state *s, int n, int e, bool room)
{
    struct node_state *node = &s->node[n];
    node->load[e] = NO_LOAD;
    node->from[e] = 0;
    if (s->read.phase == WAITS && s->read.to == n && s->read.extent == e)
        memset(&s->read, 0, sizeof s->read);
    if (!owns(s, n, e) || node->hold[e] != NOTHING)
        return;
    if (!room) {
        node->refused[e] = 1;
        return;
    }
    node->hold[e] = STAGING;
    s->excused[e] = 0;
}

/* BEFORE arrives: answered from what is held, or not at all. */
static void answer_before(struct state *s, int n, int e, bool room)
{
    struct node_state *node = &s->node[n];
    const struct node_state *before = &s->node[node->from[e]];
    if (before->hold[e] != NOTHING) {
        end_load(s, n, e, room);
        return;
    }
    if (broken == BEFORE_IS_LOADED && before->k > 0 && owner_at(s, e, (uint8_t)(before->k - 1)) != node->from[e])
        must(false, "a question goes over a third hop");
    check_source(s);
    node->load[e] = AT_SOURCE;
    node->from[e] = 0;
    node->not_held[e] = 1;
}

/* --- reads --- */

static void end_read(struct state *s)
{
    memset(&s->read, 0, sizeof s->read);
}

static void ask(struct state *s)
{
    const struct node_state *node = &s->node[s->read.node];
    int e = s->read.extent;
    uint8_t owner = owner_at(s, e, node->k);
    if (node->hold[e] != NOTHING || (owner != s->read.node && !s->world)) {
        end_read(s); /* from its tiers, or from the source, and nothing is kept */
        return;
    }
    s->read.to = owner;
    s->read.k = node->k;
    s->read.phase = owner == s->read.node ? WAITS : ASKS;
    if (s->read.phase == WAITS)
        start_load(s, owner, e);
}

/* NOT-HELD: the owner has not turned yet, perhaps. Then the one before is asked as the owner would, then the source. */
static void ask_before(struct state *s)
{
    uint8_t k = s->node[s->read.node].k, before = k > 0 ? owner_at(s, s->read.extent, (uint8_t)(k - 1)) : s->read.to;
    if (broken == NOT_HELD_ENDS || before == s->read.to || before == s->read.node) {
        check_source(s);
        end_read(s);
        return;
    }
    s->read.phase = ASKS_BEFORE;
    s->read.to = before;
}

static void answer_read(struct state *s)
{
    int e = s->read.extent, to = s->read.to;
    if (s->node[to].hold[e] != NOTHING) {
        end_read(s);
    } else if (owns(s, to, e)) {
        s->read.phase = WAITS;
        start_load(s, to, e);
    } else if (owner_at(s, e, s->node[s->read.node].k) != to) {
        ask(s); /* the layout has turned meanwhile */
    } else {
        ask_before(s);
    }
}

/* It has dropped it only where the owner has turned and stored it since it was asked. */
static void answer_read_before(struct state *s)
{
    int e = s->read.extent;
    if (s->node[s->read.to].hold[e] == NOTHING && s->node[owner_at(s, e, s->read.k)].hold[e] != STORED)
        check_source(s);
    end_read(s);
}

/* Nobody reaches anybody any more. */
static void end_questions(struct state *s)
{
    for (int n = 0; n < NODES; n++) {
        struct node_state *node = &s->node[n];
        node->question = node->of = node->asked_at = node->computed = 0;
        for (int e = 0; e < scope->extents; e++) {
            node->load[e] = node->load[e] == NO_LOAD ? NO_LOAD : AT_SOURCE;
            node->from[e] = 0;
        }
    }
    if (s->read.phase == ASKS || s->read.phase == ASKS_BEFORE || (s->read.phase == WAITS && s->read.to != s->read.node))
        end_read(s); /* from the source */
}

/* --- moves --- */

static bool has_moved(const struct state *s, int n)
{
    const struct node_state *node = &s->node[n];
    for (int e = 0; e < scope->extents && node->k > 0; e++)
        if (owns(s, n, e) && owner_at(s, e, (uint8_t)(node->k - 1)) != n && node->hold[e] == NOTHING &&
            !node->refused[e] && !node->not_held[e])
            return false;
    return true;
}

static void drop(struct state *s, int n, int e)
{
    int owner = owner_at(s, e, s->node[n].k);
    must(owner != n, "a node drops what it owns");
    must(s->node[owner].hold[e] == STORED, "what is dropped is not stored by its owner");
    s->node[n].hold[e] = NOTHING;
}

/* What the broken rules do. */
static void drop_foreign(struct state *s)
{
    for (int n = 0; n < NODES; n++)
        for (int e = 0; e < scope->extents; e++)
            if (s->node[n].hold[e] != NOTHING && !owns(s, n, e))
                drop(s, n, e);
}

static void answer_question(struct state *s, int n)
{
    struct node_state *node = &s->node[n];
    uint8_t owner = owner_at(s, node->of, node->asked_at);
    enum hold enough = broken == DROP_WHEN_HELD ? STAGING : STORED;
    node->question = s->node[owner].hold[node->of] >= enough ? ANSWERED : NOT_ASKED;
    if (node->question == NOT_ASKED)
        node->of = node->asked_at = 0;
}

static void take_answer(struct state *s, int n)
{
    struct node_state *node = &s->node[n];
    int e = node->of;
    if (node->asked_at == node->k || broken == ANSWER_OUTLIVES)
        drop(s, n, e);
    node->question = node->of = node->asked_at = 0;
}

/* --- turns --- */

static void begin_turn(struct state *s)
{
    s->conducting = COMPUTING;
    s->turns_left--;
    if (broken == TRIM_AT_TURN)
        drop_foreign(s);
}

static void forget_move(struct node_state *node)
{
    node->said = 0;
    memset(node->refused, 0, sizeof node->refused);
    memset(node->not_held, 0, sizeof node->not_held);
}

static void compute(struct state *s, int n)
{
    bool all = true;
    s->node[n].computed = 1;
    for (int i = 0; i < NODES; i++)
        all &= !s->node[i].alive || s->node[i].computed;
    if (all) { /* and the digests are the same */
        s->conducting = SETTLING;
        s->turn++;
    }
}

static void settle(struct state *s, int n)
{
    s->node[n].k++;
    s->node[n].computed = 0;
    forget_move(&s->node[n]);
    if (at_same_turn(s))
        s->conducting = AT_REST;
}

/* --- what is lost, and a join --- */

/* The next server finds what was ingested, and the turn that it was at. */
static void restart(struct state *s, int n)
{
    struct node_state *node = &s->node[n];
    s->restarts_left--;
    for (int e = 0; e < scope->extents; e++)
        node->hold[e] = node->hold[e] == STORED ? STORED : NOTHING;
    memset(node->load, NO_LOAD, sizeof node->load);
    memset(node->from, 0, sizeof node->from);
    memset(node->refused, 0, sizeof node->refused);
    memset(node->not_held, 0, sizeof node->not_held);
    node->question = node->of = node->asked_at = 0;
    if (s->conducting == COMPUTING)
        node->computed = 0;
    if (s->read.phase != IDLE && s->read.node == n)
        s->read.phase = STARTS; /* the request is still in its slot */
    else if (s->read.phase == WAITS && s->read.to == n)
        s->read.phase = ASKS; /* its courier asks the next server */
    if (s->read.phase == STARTS)
        s->read.to = s->read.k = 0;
    excuse(s);
}

/* A courier is lost, or a node with all that it holds. */
static void lose(struct state *s, int n, bool node_too)
{
    s->losses_left--;
    s->world = 0;
    s->conducting = AT_REST;
    end_questions(s);
    if (!node_too)
        return;
    if (s->read.phase != IDLE && s->read.node == n)
        end_read(s);
    memset(&s->node[n], 0, sizeof s->node[n]);
    excuse(s);
}

static int claim_of(const struct state *s, int n, int e, const uint8_t *owner)
{
    if (!s->node[n].alive)
        return -1;
    if (broken == JOIN_TAKES_LOWEST)
        return 0;
    return s->node[n].hold[e] == NOTHING ? 0 : owner[n * EXTENTS + e] ? 2 : 1;
}

static void join(struct state *s)
{
    uint8_t owned[NODES * EXTENTS];
    for (int n = 0; n < NODES; n++)
        for (int e = 0; e < scope->extents; e++)
            owned[n * EXTENTS + e] = s->node[n].alive && owns(s, n, e);
    for (int e = 0; e < scope->extents; e++) {
        int best = -1;
        for (int n = 0; n < NODES; n++)
            if (s->node[n].alive && (best < 0 || claim_of(s, n, e, owned) > claim_of(s, best, e, owned)))
                best = n;
        s->base[e] = (uint8_t)best;
        must(s->node[best].hold[e] != NOTHING || !is_held(s, e), "after a join the owner lacks what another one holds");
    }
    s->members = 0;
    for (int n = 0; n < NODES; n++) {
        s->members |= (uint8_t)(s->node[n].alive << n);
        s->node[n].k = 0;
        forget_move(&s->node[n]);
    }
    s->world = 1;
    s->turn = 0;
    if (broken == DROP_AT_JOIN)
        drop_foreign(s);
}

/* --- all states --- */

static struct {
    struct state *state;
    uint32_t *from; /* the state before */
    const char **action;
    uint32_t *table; /* by hash: the state's number and 1 */
    uint32_t count, slots;
} seen;

static void seen_init(void)
{
    seen.slots = 1 << 20;
    seen.count = 0;
    seen.table = calloc(seen.slots, sizeof *seen.table);
    seen.state = malloc((size_t)seen.slots * sizeof *seen.state);
    seen.from = malloc((size_t)seen.slots * sizeof *seen.from);
    seen.action = malloc((size_t)seen.slots * sizeof *seen.action);
    if (!seen.table || !seen.state || !seen.from || !seen.action)
        bail_out("no memory for states");
}

static void seen_fini(void)
{
    free(seen.table);
    free(seen.state);
    free(seen.from);
    free(seen.action);
}

static void reach(const struct state *s, uint32_t from, const char *action)
{
    check_holders(s);
    uint32_t at = (uint32_t)hash64(s, sizeof *s, 0) & (seen.slots - 1);
    for (; seen.table[at]; at = (at + 1) & (seen.slots - 1))
        if (memcmp(&seen.state[seen.table[at] - 1], s, sizeof *s) == 0)
            return;
    if (seen.count >= seen.slots / 2)
        bail_out("more states than there is room for");
    seen.state[seen.count] = *s;
    seen.from[seen.count] = from;
    seen.action[seen.count] = action;
    seen.table[at] = ++seen.count;
}

/* --- what can happen --- */

struct expansion {
    const struct state *s;
    uint32_t number;
    bool goes_on; /* something is left to do */
};

static void go(struct expansion *x, const struct state *t, const char *action)
{
    reach(t, x->number, action);
    x->goes_on = true;
}

static void go_turns(struct expansion *x, int n)
{
    const struct node_state *node = &x->s->node[n];
    struct state t = *x->s;
    if (t.conducting == COMPUTING && !node->computed) {
        compute(&t, n);
        go(x, &t, "computes");
    } else if (t.conducting == SETTLING && node->k < t.turn) {
        settle(&t, n);
        go(x, &t, "settles");
    }
    t = *x->s;
    if (t.world && !node->said && has_moved(x->s, n)) {
        t.node[n].said = 1;
        go(x, &t, "says that it has moved");
    }
}

static void go_loads(struct expansion *x, int n, int e)
{
    const struct node_state *node = &x->s->node[n];
    struct state t = *x->s;
    bool foreign = owns(x->s, n, e) && node->k > 0 && owner_at(x->s, e, (uint8_t)(node->k - 1)) != n;
    if (t.world && foreign && node->hold[e] == NOTHING && node->load[e] == NO_LOAD && !node->refused[e] &&
        !node->not_held[e]) {
        start_load(&t, n, e);
        go(x, &t, "pulls");
    }
    for (int room = !scope->scarce; room < 2 && node->load[e] != NO_LOAD; room++) {
        t = *x->s;
        if (node->load[e] == AT_BEFORE)
            answer_before(&t, n, e, room);
        else
            end_load(&t, n, e, room);
        go(x, &t, room ? "has loaded" : "has loaded, no room");
    }
    t = *x->s;
    if (node->hold[e] == STAGING) {
        t.node[n].hold[e] = STORED;
        go(x, &t, "ingests");
    }
}

static void go_questions(struct expansion *x, int n)
{
    const struct node_state *node = &x->s->node[n];
    struct state t = *x->s;
    if (!t.world)
        return;
    if (node->question == ASKED) {
        answer_question(&t, n);
        go(x, &t, "is told what is stored");
    } else if (node->question == ANSWERED) {
        take_answer(&t, n);
        go(x, &t, "drops");
    }
    for (int e = 0; e < scope->extents && node->question == NOT_ASKED && at_same_turn(x->s); e++) {
        if (node->hold[e] == NOTHING || owns(x->s, n, e))
            continue;
        t = *x->s;
        t.node[n].question = ASKED;
        t.node[n].of = (uint8_t)e;
        t.node[n].asked_at = node->k;
        reach(&t, x->number, "asks what is stored");
        x->goes_on |= t.node[owner_at(&t, e, node->k)].hold[e] == STORED;
    }
}

static void go_read(struct expansion *x)
{
    const struct state *s = x->s;
    struct state t = *s;
    switch (s->read.phase) {
    case IDLE:
        if (!scope->reads)
            return;
        for (int n = 0; n < NODES; n++)
            for (int e = 0; e < scope->extents && s->node[n].alive; e++) {
                t = *s;
                t.read.phase = STARTS;
                t.read.node = (uint8_t)n;
                t.read.extent = (uint8_t)e;
                reach(&t, x->number, "is read at");
            }
        return;
    case STARTS:
        ask(&t);
        go(x, &t, "looks up the owner");
        return;
    case ASKS:
        must(s->world && s->node[s->read.to].alive, "a read asks who is not there");
        answer_read(&t);
        go(x, &t, "is asked");
        return;
    case ASKS_BEFORE:
        must(s->world && s->node[s->read.to].alive, "a read asks who is not there");
        answer_read_before(&t);
        go(x, &t, "is asked with BEFORE");
        return;
    default:
        must(s->node[s->read.to].load[s->read.extent] != NO_LOAD, "a read waits for nothing");
    }
}

static void go_wrong_ways(struct expansion *x)
{
    const struct state *s = x->s;
    struct state t = *s;
    for (int n = 0; n < NODES; n++) {
        if (!s->node[n].alive)
            continue;
        t = *s;
        if (s->restarts_left) {
            restart(&t, n);
            reach(&t, x->number, "restarts");
        }
        t = *s;
        if (s->losses_left && s->world) {
            lose(&t, n, true);
            reach(&t, x->number, "is lost");
        }
    }
    t = *s;
    if (s->losses_left && s->world) {
        lose(&t, 0, false);
        reach(&t, x->number, "a courier is lost");
    } else if (!s->world) {
        join(&t);
        reach(&t, x->number, "they join");
    }
}

static void go_begin(struct expansion *x)
{
    struct state t = *x->s;
    bool all = t.world && t.conducting == AT_REST && t.turns_left;
    for (int n = 0; n < NODES; n++)
        all &= !t.node[n].alive || t.node[n].said;
    if (!all)
        return;
    begin_turn(&t);
    reach(&t, x->number, "a turn begins");
}

/* Nothing is left to do: has the turn ended, and the move? */
static void check_rest(const struct state *s)
{
    must(s->read.phase == IDLE, "a read does not end");
    must(s->conducting == AT_REST, "a turn does not end");
    must(!s->world || at_same_turn(s), "nodes stay at different turns");
    for (int n = 0; n < NODES && s->world; n++) {
        must(!s->node[n].alive || s->node[n].said, "a move does not end");
        for (int e = 0; e < scope->extents; e++)
            must(!s->node[n].alive || s->node[n].hold[e] == NOTHING || owns(s, n, e) ||
                     s->node[owner_at(s, e, s->node[n].k)].hold[e] != STORED,
                 "what its owner has stored is not dropped");
    }
}

static void expand(const struct state *s, uint32_t number)
{
    struct expansion x = {.s = s, .number = number};
    for (int n = 0; n < NODES; n++) {
        if (!s->node[n].alive)
            continue;
        go_turns(&x, n);
        go_questions(&x, n);
        for (int e = 0; e < scope->extents; e++)
            go_loads(&x, n, e);
    }
    go_read(&x);
    if (!x.goes_on)
        check_rest(s);
    go_begin(&x);
    go_wrong_ways(&x);
}

/* What led to a state, the last action first. */
static void tell(uint32_t number)
{
    for (; number; number = seen.from[number]) {
        const struct state *s = &seen.state[number];
        diag("%-24s turn %u.%u  k %u %u %u  held %u%u %u%u %u%u", seen.action[number], s->turn, s->conducting,
             s->node[0].k, s->node[1].k, s->node[2].k, s->node[0].hold[0], s->node[0].hold[1], s->node[1].hold[0],
             s->node[1].hold[1], s->node[2].hold[0], s->node[2].hold[1]);
    }
}

static uint32_t explore(const struct scope *of, enum broken rule)
{
    struct state first = {.base = {0, 1}, .members = 7, .world = 1};
    scope = of;
    first.turns_left = of->turns;
    first.losses_left = of->losses;
    first.restarts_left = of->restarts;
    wrong = NULL;
    broken = rule;
    seen.count = 0;
    memset(seen.table, 0, seen.slots * sizeof *seen.table);
    for (int n = 0; n < NODES; n++)
        first.node[n].alive = 1;
    for (int e = 0; e < scope->extents; e++)
        first.node[first.base[e]].hold[e] = STORED;
    reach(&first, 0, "");
    for (uint32_t i = 0; i < seen.count && !wrong; i++) {
        struct state s = seen.state[i];
        expand(&s, i);
        if (wrong && rule == NONE)
            tell(i);
    }
    return seen.count;
}

static const struct scope scopes[] = {
    {"one extent, two turns, reads, a restart and a loss", 1, 2, 1, 1, true, true},
    {"one extent, three turns, reads, two losses", 1, 3, 2, 0, true, true},
    {"one extent, three turns, two restarts and a loss", 1, 3, 1, 2, false, true},
    {"two extents, two turns, a restart", 2, 2, 0, 1, false, true},
    {"two extents, a turn, a restart and a loss", 2, 1, 1, 1, false, true},
    {"two extents, two turns, reads, room for all", 2, 2, 0, 0, true, false},
};

int main(void)
{
    seen_init();
    uint32_t all = 0;
    for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++) {
        uint32_t states = explore(&scopes[i], NONE);
        ok(wrong == NULL, "%s: %u states%s%s", scopes[i].what, states, wrong ? ": " : "", wrong ? wrong : "");
        all += states;
    }
    diag("%u states", all);
    for (enum broken rule = NONE + 1; rule < RULES; rule++) {
        uint32_t states = explore(&scopes[rule == NOT_HELD_ENDS ? 5 : 0], rule);
        ok(wrong != NULL, "%s: found after %u states: %s", broken_names[rule], states, wrong ? wrong : "nothing");
    }
    seen_fini();
    return done_testing();
}
