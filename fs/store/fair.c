#include "fs/store/fair.h"

#include "fs/base/clock.h"

struct store_read *read_list_take(struct read_list *list)
{
    struct store_read *read = TAILQ_FIRST(list);
    if (read)
        TAILQ_REMOVE(list, read, parked);
    return read;
}

/* Mostly the read that gives up is the one that has waited longest: the first. */
bool read_list_remove(struct read_list *list, struct store_read *read)
{
    struct store_read *at = TAILQ_FIRST(list);
    while (at && at != read)
        at = TAILQ_NEXT(at, parked);
    if (at)
        TAILQ_REMOVE(list, at, parked);
    return at;
}

bool fair_is_feds_turn(const struct fair_turns *t, bool others, enum fair_room fed)
{
    if (t->yields >= MOST_YIELDS)
        return fed != FAIR_FULL;
    return !others && fed == FAIR_WITHIN;
}

void fair_went(struct fair_turns *t, bool fed)
{
    t->yields = fed ? 0 : t->yields + (t->yields < MOST_YIELDS);
}

void fair_init(struct fair_queue *q)
{
    TAILQ_INIT(&q->list[false]);
    TAILQ_INIT(&q->list[true]);
}

bool fair_is_empty(const struct fair_queue *q)
{
    return TAILQ_EMPTY(&q->list[false]) && TAILQ_EMPTY(&q->list[true]);
}

void fair_add(struct fair_queue *q, struct store_read *read)
{
    struct read_list *list = &q->list[read->fed];
    struct store_read *last = TAILQ_LAST(list, read_list);
    while (!read->pulled && last && last->pulled && read->asked - last->asked < OVERTAKE_MS * MILLISECOND)
        last = TAILQ_PREV(last, read_list, parked);
    if (last)
        TAILQ_INSERT_AFTER(list, last, read, parked);
    else
        TAILQ_INSERT_HEAD(list, read, parked);
}

bool fair_remove(struct fair_queue *q, struct store_read *read)
{
    return read_list_remove(&q->list[read->fed], read);
}

bool fair_is_next(const struct fair_queue *q, const struct fair_turns *t, bool is_fed, enum fair_room fed)
{
    if (!TAILQ_EMPTY(&q->list[false]))
        return false;
    return !is_fed || (TAILQ_EMPTY(&q->list[true]) && fair_is_feds_turn(t, false, fed));
}

struct store_read *fair_take(struct fair_queue *q, const struct fair_turns *t, enum fair_room fed)
{
    bool others = !TAILQ_EMPTY(&q->list[false]), feeds = !TAILQ_EMPTY(&q->list[true]);
    return read_list_take(&q->list[feeds && fair_is_feds_turn(t, others, fed)]);
}
