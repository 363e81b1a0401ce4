/* What loaders have read of the lists that this node feeds: where each is, and a report of each list.
 *
 * Events of inotify come in, of files by their number; each read is given to a position of a list. A file has one in
 * most plans. Where it has several, in one list, in those of several ranks or of several plans, the read is for the
 * one that nobody has read and that is nearest to where its loader is.
 *
 * A loader reads a file in several calls: a read begins with the first access, and ends with a close that is not the
 * feeder's. Readers of one file at the same time count as one, so repeats can be missed; a file that was read at all
 * never is. A file that others close and have not read is mapped, perhaps. Pure, but for what it writes into `feed`;
 * one thread. */
#ifndef FS_FEED_COVERAGE_H
#define FS_FEED_COVERAGE_H

#include "fs/wire/feed.h"

struct coverage;
struct coverage_plan;

/* The lists of one plan on this node. */
struct coverage_lists {
    uint64_t number, epoch; /* as in struct feed_plan */
    unsigned slot;          /* there */
    uint32_t flags;         /* enum feed_flag */
    bool unwatched; /* reads may have passed unseen before now: the watches were not there when it was asked for */
    uint64_t asked; /* when; clock_now. Reads seen since then are given to it, too */
    uint32_t ranks;
    const uint32_t *rank;  /* their numbers */
    const uint32_t *start; /* where each list begins in `file`, and the end of the last */
    const uint32_t *file;  /* of each position of each list: the caller's, until coverage_end */
    uint64_t (*size)(void *user, uint32_t file);
    void *user;
};

/* `files`: of the catalog. */
int coverage_create(struct feed *feed, uint32_t files, struct coverage **coverage);
void coverage_destroy(struct coverage *coverage);

/* -ENOMEM, -EFBIG; -E2BIG: it has a file too often. Where a feeder before this one has followed the plan its report is
 * gone on with. */
int coverage_begin(struct coverage *coverage, const struct coverage_lists *lists, struct coverage_plan **plan);
void coverage_confirm(struct coverage_plan *plan); /* it is no guess any more */
void coverage_forget(struct coverage_plan *plan);  /* lists of which little was read: those reads were none of it */
void coverage_end(struct coverage *coverage, struct coverage_plan *plan); /* the plan is fed no more; it is freed */

/* What happens to a file: IN_ACCESS, IN_CLOSE_NOWRITE. coverage_own: the feeder will close it; said before it does. */
enum coverage_event { COVERAGE_ACCESS, COVERAGE_CLOSE };
struct coverage_hit {
    struct coverage_plan *plan;
    uint32_t list; /* the rank's place in the plan */
    uint32_t position;
};
void coverage_own(struct coverage *coverage, uint32_t file);
/* True: a read has begun, of this position; `hit` may be NULL. */
bool coverage_event(struct coverage *coverage, uint32_t file, enum coverage_event event, uint64_t now,
                    struct coverage_hit *hit);
void coverage_answered(struct coverage *coverage, const struct feed_answer *answer);
void coverage_lost(struct coverage *coverage, uint32_t flag); /* from now on: FEED_OVERFLOWED, FEED_PARTLY */
/* A few times a second: says in `feed` how far all are, and once a second writes reports. Takes the notes of the
 * server. */
void coverage_look(struct coverage *coverage, uint64_t now);

uint32_t coverage_reached(const struct coverage_plan *plan, uint32_t list); /* the loader's next position, about */
bool coverage_is_read(const struct coverage_plan *plan, uint32_t list, uint32_t position);
uint64_t coverage_reads(const struct coverage_plan *plan, uint32_t list); /* so many so far; grows also with repeats */

#endif
