/* Exchange, in four passes over the extents:
 *
 *   count   how many extents each node owns
 *   draw    which extents are drawn; the grade of each: its cost in eighths of a power of two
 *   deal    each drawn extent's owner goes into the deck of its class; the deck is shuffled as it grows
 *   hand    the n-th drawn extent of a class gets the n-th owner of its deck
 *
 * A class is one grade or, if few extents were drawn, several neighbouring grades. All decks are in one array. */
#include "fs/plan/exchange.h"

#include "fs/base/cleanup.h"
#include "fs/plan/random.h"

#include <errno.h>
#include <stdbool.h>

enum {
    GRADES_OF_DOUBLE = 8, /* between a cost and its double */
    GRADES = 64 * GRADES_OF_DOUBLE,
    NOT_DRAWN = GRADES,
    THIN = 4, /* a class with fewer extents per node also takes the next grade */
};

struct exchange_quota {
    uint64_t owned, wanted; /* among the remaining extents */
};

struct exchange_deck {
    uint64_t from, length; /* position in the array; number of owners so far */
};

struct exchange_work {
    const struct exchange *exchange;
    struct exchange_quota *quota;      /* per node of the group */
    uint64_t of_grade[GRADES];         /* number of drawn extents */
    struct exchange_deck deck[GRADES]; /* per class, at its first grade */
    uint16_t class[GRADES];            /* first grade of each grade's class */
    uint16_t *grade;                   /* per extent, or NOT_DRAWN */
    uint16_t *card;                    /* the decks */
    uint64_t draws, places;            /* streams of random numbers */
};

static uint32_t grade_of(uint64_t cost)
{
    unsigned power = 63 - (unsigned)__builtin_clzll(cost);
    uint64_t eighths = power >= 3 ? cost >> (power - 3) : cost << (3 - power);
    return power * GRADES_OF_DOUBLE + (uint32_t)(eighths % GRADES_OF_DOUBLE);
}

static void count_owned(struct exchange_work *w, const uint16_t *owner)
{
    const struct exchange *x = w->exchange;
    for (uint64_t i = 0; i < x->extents; i++) {
        uint32_t node = (uint32_t)owner[i] - x->first;
        if (node < x->nodes)
            w->quota[node].owned++;
    }
    for (uint32_t v = 0; v < x->nodes; v++)
        w->quota[v].wanted = (w->quota[v].owned * x->fraction + EXCHANGE_ALL / 2) / EXCHANGE_ALL;
}

/* Each remaining extent has the same probability to be among the wanted ones. */
static bool is_drawn(struct exchange_quota *q, uint64_t random)
{
    bool drawn = random_pick(random, q->owned--) < q->wanted;
    q->wanted -= drawn;
    return drawn;
}

static uint64_t draw(struct exchange_work *w, const uint16_t *owner)
{
    const struct exchange *x = w->exchange;
    uint64_t drawn = 0;
    for (uint64_t i = 0; i < x->extents; i++) {
        uint32_t node = (uint32_t)owner[i] - x->first;
        w->grade[i] = NOT_DRAWN;
        if (node >= x->nodes || !is_drawn(&w->quota[node], random_in(w->draws, i)))
            continue;
        w->grade[i] = (uint16_t)grade_of(x->cost(x->user, i));
        w->of_grade[w->grade[i]]++;
        drawn++;
    }
    return drawn;
}

/* From the cheapest grade on: a class takes further grades while it is thin, but none that costs more than double. */
static void make_classes(struct exchange_work *w)
{
    uint64_t from = 0, length = 0;
    uint32_t first = 0;
    for (uint32_t g = 0; g < GRADES; g++) {
        if (length >= (uint64_t)THIN * w->exchange->nodes || g - first >= GRADES_OF_DOUBLE || length == 0) {
            first = g;
            from += length;
            length = 0;
            w->deck[g].from = from;
        }
        w->class[g] = (uint16_t)first;
        length += w->of_grade[g];
    }
}

/* Insert the new owner at a random place of the deck, or at its end; the one that was there moves to the end. */
static void deal(struct exchange_work *w, const uint16_t *owner)
{
    for (uint64_t i = 0; i < w->exchange->extents; i++) {
        if (w->grade[i] == NOT_DRAWN)
            continue;
        struct exchange_deck *deck = &w->deck[w->class[w->grade[i]]];
        uint16_t *card = w->card + deck->from;
        uint64_t end = deck->length++, place = random_pick(random_in(w->places, i), deck->length);
        card[end] = card[place];
        card[place] = owner[i];
    }
}

static void hand(struct exchange_work *w, uint16_t *owner)
{
    for (uint64_t i = 0; i < w->exchange->extents; i++)
        if (w->grade[i] != NOT_DRAWN)
            owner[i] = w->card[w->deck[w->class[w->grade[i]]].from++];
}

int exchange_run(const struct exchange *x, uint16_t *owner)
{
    uint64_t key = random_at(random_at(x->seed, RANDOM_EXCHANGE, x->epoch), RANDOM_GROUP, x->group);
    CLEANUP_FREE struct exchange_quota *quota = calloc(x->nodes, sizeof *quota);
    CLEANUP_FREE uint16_t *grade = malloc((x->extents + 1) * sizeof *grade);
    struct exchange_work w = {
        .exchange = x,
        .quota = quota,
        .grade = grade,
        .draws = random_stream(key, RANDOM_DRAWS),
        .places = random_stream(key, RANDOM_PLACES),
    };
    if (!quota || !grade)
        return -ENOMEM;
    count_owned(&w, owner);
    uint64_t drawn = draw(&w, owner);
    CLEANUP_FREE uint16_t *card = malloc((drawn + 1) * sizeof *card);
    if (!card)
        return -ENOMEM;
    w.card = card;
    make_classes(&w);
    deal(&w, owner);
    hand(&w, owner);
    return 0;
}
