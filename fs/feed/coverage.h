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
    bool (*unopened)(void *user, uint32_t file); /* true: certainly no process has the file open or mapped */
    /* called once for each READ of the notes; or NULL */
    void (*answered)(void *user, const struct feed_answer *answer);
    void *user;
};

/* `files`: number of files in the catalog. */
int coverage_create(struct feed *feed, uint32_t files, const struct coverage_rules *rules, struct coverage **coverage);
void coverage_destroy(struct coverage *coverage);

/* Follow a plan; none of its lists has begun. The course must outlive it. -ENOMEM. */
int coverage_follow(struct coverage *coverage, const struct feed_course *course, struct coverage_plan **plan);
/* A loader has requested the list of a rank: the list begins, or begins again. `flags`: what was not watched.
 * -ENOMEM. */
int coverage_begin(struct coverage *coverage, struct coverage_plan *plan, uint32_t list,
                   const struct feed_asking *asking, uint32_t flags);
/* it turned out that all directories were watched all the time */
void coverage_watched(struct coverage_plan *plan, uint32_t list);
/* Number of the request with which it began; 0: it has not begun. */
uint64_t coverage_begun(const struct coverage_plan *plan, uint32_t list);
/* The loader has reported its end. coverage_settle ends the list. */
void coverage_end(struct coverage_plan *plan, uint32_t list, const struct feed_asking *asking);
void coverage_forget(struct coverage *coverage, struct coverage_plan *plan); /* frees it */

/* The loader of a list of records reports how many of them it has read. */
void coverage_told(struct coverage_plan *plan, uint32_t list, uint32_t read, uint64_t now);

/* An event for a file: IN_ACCESS or IN_CLOSE_NOWRITE. coverage_own announces a close by the feeder itself. */
enum coverage_event { COVERAGE_ACCESS, COVERAGE_CLOSE };
void coverage_own(struct coverage *coverage, uint32_t file);
void coverage_event(struct coverage *coverage, uint32_t file, enum coverage_event event, uint64_t now);
/* flag: FEED_OVERFLOWED or FEED_UNWATCHED; applies to all open lists */
void coverage_lost(struct coverage *coverage, uint32_t flag);
/* Call coverage_arm before taking events, and coverage_settle if the queue was empty afterwards: lists whose end was
 * known at coverage_arm end now. True: any did. */
void coverage_arm(struct coverage *coverage);
bool coverage_settle(struct coverage *coverage, uint64_t now);
/* Takes the server's notes that have arrived. */
void coverage_take_notes(struct coverage *coverage);
/* Call it several times per second: takes the server's notes, and writes reports once per second. */
void coverage_look(struct coverage *coverage, uint64_t now);
bool coverage_any(const struct coverage *coverage); /* is any list open? */
/* Write the loader's position into feed->rank. False: the list has not begun. */
bool coverage_publish(const struct coverage_plan *plan, uint32_t list, struct feed_rank *rank);

#endif
