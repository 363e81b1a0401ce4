/* What coverage.c and coverage-report.c share. Not for others: they include coverage.h.
 *
 * An entry is a position of a list, counted through all lists of a plan. Entries of one file are a chain, in their
 * order: first, next. */
#ifndef FS_FEED_COVERAGE_INSIDE_H
#define FS_FEED_COVERAGE_INSIDE_H

#include "fs/feed/coverage.h"

enum {
    NO_ENTRY = -1,
    LATEST = 8,  /* reads of a list by which it is said where its loader is */
    STRAYS = 3,  /* of these; so many may lie anywhere, less one */
    NEAR = 64,   /* positions between a loader and what it reads; workers read batches beside each other */
    AFRESH = 32, /* reads by which a list is seen to have been left, or begun again; less for short lists */
    BORROWED = 16,
    LITTLE = 64,
    RECENT = 256,        /* reads of files of no list */
    ENTRIES_MOST = 1024, /* of a file, in all lists of a plan */
    REPORT_S = 1,        /* between two reports of a list */
};

/* A read that a newer plan could have had as well. */
struct borrowed {
    struct coverage_plan *plan;
    struct coverage_list *list;
    uint32_t own, position; /* in the list that got it; in the newer one */
};

struct coverage_list {
    uint32_t rank, length, base; /* base: its first entry */
    uint32_t flags;
    uint32_t resumed;                   /* where its loader was when the feeder before this one died */
    uint32_t others;                    /* reads of newer lists of its rank, less those of its own */
    struct borrowed borrowed[BORROWED]; /* the last ones, since a read that is this list's for sure */
    uint32_t borrows;
    uint32_t first_reached; /* where the first reads were; with `unwatched` */
    uint64_t bytes;
    uint32_t latest[AFRESH]; /* positions of the last reads */
    uint64_t reads;          /* all, repeats among them */
    uint32_t read, files, files_read;
    uint32_t mapped;             /* files that others have closed and not read */
    uint64_t again, again_since; /* again_since: the end of the list */
    uint64_t late, late_sum, late_most, late_from[FEED_PLACES];
    uint64_t note_reads[FEED_PLACES], note_bytes[FEED_PLACES];
    uint64_t looks, behind, behind_most;
    uint64_t began, ended, seen; /* of the day's clock; seen: monotonic */
    uint64_t unplanned_from, lost_from;
    uint64_t report;            /* its number, from 1; 0: it has none yet */
    bool dirty;                 /* since the last report */
    bool over;                  /* it has been left */
    bool begun_again;           /* after it had been */
    struct feed_report *before; /* of a feeder that died; NULL: none */
};

struct coverage_plan {
    struct coverage_plan *newer;
    uint64_t number, epoch;
    unsigned slot;
    bool unwatched;
    uint32_t lists, entries;
    struct coverage_list *list;
    const uint32_t *file;  /* of entries */
    int32_t *first, *next; /* first: by the hash of a file */
    uint32_t shift;        /* of the hash */
    uint64_t *is_read, *is_late;
};

struct strange {
    uint32_t file;
    uint64_t time; /* 0: nothing, or a plan that was known later has it */
};

struct coverage {
    struct feed *feed;
    uint32_t files;
    unsigned char *state;          /* of each file: enum coverage_state */
    struct coverage_plan *plans;   /* the oldest first */
    uint64_t strangers;            /* reads of files of no list */
    struct strange recent[RECENT]; /* the last of them */
    uint64_t taken, lost;          /* notes */
    uint64_t reported;             /* when; monotonic */
};

/* The lower bits count closes by the feeder that have not been seen yet. */
enum coverage_state {
    STATE_OWN = 7,
    STATE_BUSY = 8,     /* a read has begun */
    STATE_DOUBT = 16,   /* and may have ended: its close and the feeder's can come as one event */
    STATE_FOREIGN = 32, /* others have closed it and not read it */
};

static inline bool bit_get(const uint64_t *bits, uint32_t i)
{
    return bits[i / 64] >> i % 64 & 1;
}

static inline uint32_t list_few(const struct coverage_list *list)
{
    return list->length / 2 + 1 < AFRESH ? list->length / 2 + 1 : AFRESH;
}

struct coverage_list *list_of(struct coverage_plan *plan, uint32_t entry);
int32_t entry_first(const struct coverage_plan *plan, uint32_t file); /* NO_ENTRY: the plan has none of it */
void list_report(struct coverage *coverage, struct coverage_plan *plan, struct coverage_list *list);
void list_go_on(struct coverage *coverage, struct coverage_plan *plan, struct coverage_list *list);

#endif
