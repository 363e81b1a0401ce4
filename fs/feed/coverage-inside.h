/* Shared by coverage.c, coverage-lists.c and coverage-report.c. All others include coverage.h. */
#ifndef FS_FEED_COVERAGE_INSIDE_H
#define FS_FEED_COVERAGE_INSIDE_H

#include "fs/feed/coverage.h"

enum {
    LATEST = 8,         /* number of last reads that determine a loader's position */
    STRAYS = 3,         /* up to STRAYS - 1 of these may be far from the loader */
    RECENT = 256,       /* number of remembered reads of files in no list */
    REPORT_S = 1,       /* interval between two reports of a list */
    IDLE_S = 300,       /* a list without reads for this long does not compete with others for a read */
    STALLED_S = 2,      /* if the feeder noticed the begin of a list this late, other reads may be counted */
    PROVED_MOST = 4096, /* maximum number of files of a list that may be proved unread */
};

/* State of each position of a list. ENTRY_EVENT: there was an event for its file. */
enum entry_state { ENTRY_EVENT = 1 /* something has happened to its file */, ENTRY_READ = 2, ENTRY_LATE = 4 };

struct coverage_list {
    uint64_t asked; /* 0: it has not begun */
    bool open;
    uint64_t ending, until; /* as in feed_asking; ending 0: it has not ended */
    bool stopped, armed;    /* armed: at the next coverage_settle, all events from before its end have been taken */
    uint64_t closed;
    unsigned char *state; /* per position */
    uint32_t flags;
    uint32_t told;    /* number of records that its loader reports as read */
    uint32_t resumed; /* where its loader was when the previous feeder died */
    uint32_t latest[LATEST];
    uint64_t reads; /* reads that were matched with this list */
    uint32_t files, files_read;
    uint64_t read_before; /* by the report of the previous feeder */
    uint64_t bytes, again;
    uint64_t late, late_sum, late_most, late_from[FEED_PLACES];
    uint64_t note_reads[FEED_PLACES], note_bytes[FEED_PLACES];
    uint64_t looks, behind, behind_most;
    uint64_t began, ended, seen; /* real time; seen: monotonic */
    uint64_t strange_from, lost_from;
    uint64_t report; /* its number, from 1 */
    bool dirty;      /* changed since the last report */
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
    unsigned char *state; /* per file: enum coverage_mark */
    unsigned char *turn;  /* per file: value of `turns` when the feeder last closed it */
    unsigned char turns;  /* how often the queue of events was emptied */
    struct coverage_plan *plans;
    uint64_t strangers; /* reads of files in no list */
    uint32_t recent[RECENT];
    uint64_t taken, lost; /* notes of the server */
    uint64_t reported;    /* time of the last reports; monotonic */
};

/* FILE_OWN: closes by the feeder that were not seen yet. FILE_BUSY: a read has begun, and no close was seen since. */
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
/* The state of a file in the list, from all of its positions: flags of enum entry_state. */
unsigned list_state(const struct coverage_plan *plan, uint32_t list, uint32_t file, uint32_t *first);
/* Count a READ for any list, or only for this one. */
void coverage_take_answer(struct coverage *coverage, const struct feed_answer *answer,
                          const struct coverage_list *only);
void list_look_behind(struct coverage_plan *plan); /* finds the rank that is last now */
void list_report(struct coverage *coverage, struct coverage_plan *plan, uint32_t list);
/* Find the previous feeder's report about this list: its number, or 0. */
uint64_t list_find_before(const struct coverage *coverage, const struct coverage_plan *plan, uint32_t list,
                          uint64_t asked, uint64_t *read);

#endif
