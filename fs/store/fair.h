/* A fair queue of reads that wait for slots or threads. It decides which is next:
 *
 *   1. Reads are served in order of arrival, but overtake pulls, for which no reader waits. A pull that has waited for
 *      OVERTAKE_MS is not overtaken.
 *   2. The feeder's reads are served when nothing else waits, within the feeder's share.
 *   3. After MOST_YIELDS other reads, one of the feeder's is next, even beyond its share: a loader may wait for it.
 *
 * No threads, no locks: the user's lock guards it. */
#ifndef FS_STORE_FAIR_H
#define FS_STORE_FAIR_H

#include "fs/store/read.h"

enum { MOST_YIELDS = 8, OVERTAKE_MS = 50 };

/* Shared by all queues for the same slots. */
struct fair_turns {
    int yields; /* reads served since the feeder's last one, at most MOST_YIELDS */
};

/* May the feeder's reads be served: not at all; only by rule 3; yes? */
enum fair_room { FAIR_FULL, FAIR_BEYOND, FAIR_WITHIN };

bool fair_is_feds_turn(const struct fair_turns *turns, bool others, enum fair_room fed);
void fair_went(struct fair_turns *turns, bool fed);

struct fair_queue {
    struct read_list list[2]; /* indexed by `fed` */
};
void fair_init(struct fair_queue *queue);
bool fair_is_empty(const struct fair_queue *queue);
void fair_add(struct fair_queue *queue, struct store_read *read);    /* set `fed`, `pulled` and `asked` before */
bool fair_remove(struct fair_queue *queue, struct store_read *read); /* false: it is not in the queue */
/* Would a read be next if it were added now? */
bool fair_is_next(const struct fair_queue *queue, const struct fair_turns *turns, bool is_fed, enum fair_room fed);
/* Remove and return the next read; NULL: none may be served. The caller then calls fair_went. */
struct store_read *fair_take(struct fair_queue *queue, const struct fair_turns *turns, enum fair_room fed);

struct store_read *read_list_take(struct read_list *list);              /* removes the first; or NULL */
bool read_list_remove(struct read_list *list, struct store_read *read); /* false: it is not in the list */

#endif
