/* What coverage.c, coverage-lists.c and coverage-report.c share. Not for others: they include coverage.h. */
#ifndef FS_FEED_COVERAGE_INSIDE_H
#define FS_FEED_COVERAGE_INSIDE_H

#include "fs/feed/coverage.h"

enum {
    LATEST = 8,         /* the last reads of a list, by which it is said where its loader is */
    STRAYS = 3,         /* of these; one less may lie anywhere */
    RECENT = 256,       /* the last reads of files of no list */
    REPORT_S = 1,       /* between two reports of a list */
    IDLE_S = 300,       /* a list that nobody has read for so long is no rival of others */
    STALLED_S = 2,      /* the feeder noticed the beginning of a list so late: other reads may be counted */
    PROVED_MOST = 4096, /* files of a list of which it is tried to prove that they were not read */
};

/* Of each position of a list. */
enum entry_state { ENTRY_EVENT = 1 /* something has happened to its file */, ENTRY_READ = 2, ENTRY_LATE = 4 };

struct coverage_list {
    uint64_t asked; /* 0: it has not begun */
    bool open;
    uint64_t ending, until; /* as in feed_asking; ending: 0: it goes on */
    bool stopped, armed;    /* armed: all events from before its end will have been taken at the next settling */
    uint64_t closed;
    unsigned char *state; /* of each position */
    uint32_t flags;
    uint32_t told;    /* of records: how many its loader says it has read */
    uint32_t resumed; /* where its loader was when the feeder before this one died */
    uint32_t latest[LATEST];
    uint64_t reads; /* that were in turn */
    uint32_t files, files_read;
    uint64_t read_before; /* by the report of a feeder that died */
    uint64_t bytes, again;
    uint64_t late, late_sum, late_most, late_from[FEED_PLACES];
    uint64_t note_reads[FEED_PLACES], note_bytes[FEED_PLACES];
    uint64_t looks, behind, behind_most;
    uint64_t began, ended, seen; /* of the day's clock; seen: monotonic */
    uint64_t strange_from, lost_from;
    uint64_t report; /* its number, from 1 */
    bool dirty;      /* since the last report */
};

struct coverage_plan {
    struct coverage_plan *next;
    const struct feed_course *course;
    struct coverage_list list[FEED_RANKS];
};

struct coverage {
    struct feed *feed;
    struct coverage_rules rules;
    uint32_t files;
    unsigned char *state; /* of each file: enum coverage_mark */
    unsigned char *turn;  /* of each file: in which turn the feeder closed it last */
    unsigned char turns;  /* the queue of events was emptied so often */
    struct coverage_plan *plans;
    uint64_t strangers; /* reads of files of no list */
    uint32_t recent[RECENT];
    uint64_t taken, lost; /* notes */
    uint64_t reported;    /* when; monotonic */
};

/* Closes by the feeder that have not been seen yet; and whether a read has begun and no close was seen since. */
enum coverage_mark { FILE_OWN = 7, FILE_BUSY = 8 };

static inline uint32_t list_length(const struct coverage_plan *p, uint32_t list)
{
    return p->course->start[list + 1] - p->course->start[list];
}

static inline uint32_t list_file(const struct coverage_plan *p, uint32_t list, uint32_t position)
{
    return p->course->file[p->course->start[list] + position];
}

uint32_t list_reached(const struct coverage_list *list, uint32_t length);
/* What is known of a file of the list, by all of its positions there: of enum entry_state. */
unsigned list_state(const struct coverage_plan *plan, uint32_t list, uint32_t file, uint32_t *first);
/* A READ of any list, or of this one only; and all that the server has noted. */
void coverage_take_answer(struct coverage *coverage, const struct feed_answer *answer,
                          const struct coverage_list *only);
void list_look_behind(struct coverage_plan *plan); /* which of its ranks is the last now */
void list_report(struct coverage *coverage, struct coverage_plan *plan, uint32_t list);
/* What a feeder before this one has written down of the same list: the number of its report, or 0. */
uint64_t list_find_before(const struct coverage *coverage, const struct coverage_plan *plan, uint32_t list,
                          uint64_t asked, uint64_t *read);

#endif
