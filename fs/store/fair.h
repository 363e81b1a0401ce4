/* A fair queue: reads that wait for slots or threads, and whose turn it is.
 *
 *   1. Reads go in the order in which they came, but overtake pulls, for which no reader waits. A pull that has waited
 *      for OVERTAKE_MS is not overtaken.
 *   2. What is fed goes when nothing else waits, within its share.
 *   3. After MOST_YIELDS others a fed read goes first, also beyond its share: a loader may wait for it.
 *
 * Plain data: the lock of its user guards it. */
#ifndef FS_STORE_FAIR_H
#define FS_STORE_FAIR_H

#include "fs/store/store.h"

enum { MOST_YIELDS = 8, OVERTAKE_MS = 50 };

/* Several queues for the same slots share one. */
struct fair_turns {
    int yields; /* how many others went since a fed read did, up to MOST_YIELDS */
};

/* May what is fed go? Not at all; only by rule 3; yes. */
enum fair_room { FAIR_FULL, FAIR_BEYOND, FAIR_WITHIN };

bool fair_is_feds_turn(const struct fair_turns *turns, bool others, enum fair_room fed);
void fair_went(struct fair_turns *turns, bool fed);

struct fair_queue {
    struct read_list list[2]; /* by `fed` */
};
void fair_init(struct fair_queue *queue);
bool fair_is_empty(const struct fair_queue *queue);
void fair_add(struct fair_queue *queue, struct store_read *read);    /* it is `fed` or `pulled`, and was `asked` now */
bool fair_remove(struct fair_queue *queue, struct store_read *read); /* false: it is not in there */
/* Would a read be the next if it were added? */
bool fair_is_next(const struct fair_queue *queue, const struct fair_turns *turns, bool is_fed, enum fair_room fed);
/* Takes the next out of the queue; NULL: nothing may go. The caller that lets it go calls fair_went. */
struct store_read *fair_take(struct fair_queue *queue, const struct fair_turns *turns, enum fair_room fed);

struct store_read *read_list_take(struct read_list *list);              /* the first, or NULL */
bool read_list_remove(struct read_list *list, struct store_read *read); /* false: it is not in there */

#endif
