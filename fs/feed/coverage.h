/* What loaders have read of the lists that this node's ranks have requested, and a report of each list.
 *
 * The input is events of inotify, per file. They name no process and no offset, the kernel merges equal neighbours, and
 * mappings cause none. So the report puts each sample into one of three classes:
 *
 *   class   when
 *   read    The file was read since the list began, at a time when its position was near that of the list's loader.
 *           Reads of other programs (`cat`, `dealfs verify`, another job) are mostly elsewhere in the list.
 *   unread  All of these hold: no event and no READ at the server; the watches were complete all the time; the loader
 *           has reported its end; no process had the file open or mapped then.
 *   unsure  All others. Also a read that may belong to two open lists: then it is unsure in both.
 *
 * Records of containers have no events: what the loader reports as read is read, all else is unsure.
 *
 * Pure, except for what it writes into `feed`; one thread. */
#ifndef FS_FEED_COVERAGE_H
#define FS_FEED_COVERAGE_H

#include "fs/feed/course.h"
#include "fs/wire/feed.h"

struct coverage;
struct coverage_plan;

struct coverage_rules {
    uint64_t (*size)(void *user, uint32_t file);
    bool (*unopened)(void *user, uint32_t file);                    /* does certainly nobody have it open or mapped? */
    void (*answered)(void *user, const struct feed_answer *answer); /* a READ: it is told once of each; or NULL */
    void *user;
};

/* `files`: of the catalog. */
int coverage_create(struct feed *feed, uint32_t files, const struct coverage_rules *rules, struct coverage **coverage);
void coverage_destroy(struct coverage *coverage);

/* A plan, of which no list has begun. The course outlives it. -ENOMEM. */
int coverage_follow(struct coverage *coverage, const struct feed_course *course, struct coverage_plan **plan);
/* A loader has requested the list of a rank: it begins, also where it had begun before. `flags`: what was not watched.
 * -ENOMEM. */
int coverage_begin(struct coverage *coverage, struct coverage_plan *plan, uint32_t list,
                   const struct feed_asking *asking, uint32_t flags);
void coverage_watched(struct coverage_plan *plan, uint32_t list); /* all the time, as has turned out */
/* 0: it has not begun. Else the number of the request that it began with. */
uint64_t coverage_begun(const struct coverage_plan *plan, uint32_t list);
/* The loader has reported its end. All events from before that have come once coverage_settle is called: see there. */
void coverage_end(struct coverage_plan *plan, uint32_t list, const struct feed_asking *asking);
void coverage_forget(struct coverage *coverage, struct coverage_plan *plan); /* it is freed */

/* The loader of a list of records has said how many of them it has read. */
void coverage_told(struct coverage_plan *plan, uint32_t list, uint32_t read, uint64_t now);

/* What happens to a file: IN_ACCESS, IN_CLOSE_NOWRITE. coverage_own: the feeder will close it; said before it does. */
enum coverage_event { COVERAGE_ACCESS, COVERAGE_CLOSE };
void coverage_own(struct coverage *coverage, uint32_t file);
void coverage_event(struct coverage *coverage, uint32_t file, enum coverage_event event, uint64_t now);
void coverage_lost(struct coverage *coverage, uint32_t flag); /* FEED_OVERFLOWED, FEED_UNWATCHED: of all open lists */
/* Before events are taken; and when the queue was empty after that: lists end whose end was known before. True: any. */
void coverage_arm(struct coverage *coverage);
bool coverage_settle(struct coverage *coverage, uint64_t now);
/* The notes of the server that have come. */
void coverage_take_notes(struct coverage *coverage);
/* A few times per second: takes the notes of the server, and once a second writes reports. */
void coverage_look(struct coverage *coverage, uint64_t now);
bool coverage_any(const struct coverage *coverage); /* is a list open? */
/* Into feed->rank: how far the loader is. False: the list has not begun. */
bool coverage_publish(const struct coverage_plan *plan, uint32_t list, struct feed_rank *rank);

#endif
