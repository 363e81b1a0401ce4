/* Feeding: what the feeder, the server and the keeper of a mount tell each other, in the memory of handover.h. Zeros at
 * first.
 *
 *   server   records which plans are to be fed. It recognises the feeder's READs by their process, serves all others
 *            first, and counts them, because a client cannot see when they end
 *   keeper   starts a feeder when there are plans, and another one when it dies
 *   feeder   opens the coming files of these plans through the mount and requests readahead. It leaves here what it has
 *            seen of the loaders, for `status` and reports
 *
 * A kill -9 can interrupt any writer between two stores, and the mount's user can write all of it: so readers check
 * every number against its bounds before use. */
#ifndef FS_WIRE_FEED_H
#define FS_WIRE_FEED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    FEED_PLANS = 8,   /* maximum that are fed concurrently: the latest ones */
    FEED_RANKS = 64,  /* of one plan on this node; further ranks are not fed */
    FEED_TEXT = 2048, /* maximum length of a plan's pairs */
    FEED_PLACES = 4,  /* RAM, SSD, peer, source: as in fs/store/store.h */
    FEED_REPORTS = 256,
    FEED_NAMED = 256,   /* samples that a report names, per kind */
    FEED_NOTES = 8192,  /* a power of two */
    FEED_STREAMS = 64,  /* lists that are read concurrently as streams */
    FEED_WORKERS = 256, /* streams of one list that are counted: those of the first workers */
};

/* One rank's list: the last request for it, and its end. Numbers grow with each request for any list; times are
 * nanoseconds, monotonic. */
struct feed_asking {
    uint64_t asked, since; /* number of the request, 0: none; its time */
    uint64_t notes;        /* number of READ notes before it */
    uint64_t ended, until; /* number of the request that ended the list, 0: none; its time */
    uint32_t stopped;      /* 1: its loader left it before the end */
    uint32_t watcher;      /* process id of the feeder that watched all directories before the reply; 0: none */
};

/* Guarded by `version`: odd while it is being written, then 2 higher than before. */
struct feed_plan {
    _Atomic uint32_t version;
    uint32_t ranks;  /* of this node: number of used elements of `rank` */
    uint64_t number; /* of the first request; 0: no plan. A repeated request for the same plan keeps this number */
    uint64_t asked;  /* of the last request; only the server uses it */
    uint64_t epoch;
    uint32_t guessed;          /* 1: only the feeder has requested it */
    uint32_t rank[FEED_RANKS]; /* in ascending order */
    struct feed_asking asking[FEED_RANKS];
    uint8_t digest[16];    /* of the plan */
    char pairs[FEED_TEXT]; /* file name plan/PAIRS in the control mount, without rank= and reply=; NUL-terminated */
};

/* The feeder's READs that the current server has in progress: zeros when a server begins. */
struct feed_waits {
    _Atomic uint32_t all; /* received and not answered */
    /* of these, by what they wait for; a READ that is being answered waits for nothing */
    _Atomic uint32_t waiting[FEED_PLACES];
};

struct feed_served {
    struct feed_waits waits;
    _Atomic uint64_t begun, done; /* READs, by all servers so far */
    _Atomic uint64_t reads[FEED_PLACES], bytes[FEED_PLACES];
    _Atomic uint64_t errors;
};

/* One rank of a plan, as seen by the feeder. */
struct feed_rank {
    _Atomic uint64_t number; /* of the plan; 0: unused */
    _Atomic uint32_t rank;
    _Atomic uint32_t samples; /* of its list */
    _Atomic uint32_t reached; /* position of the loader */
    _Atomic uint32_t fed;     /* position of the feeder */
    _Atomic uint32_t read;    /* number of different positions that were read */
    _Atomic uint32_t late;    /* of these, how many were read before they were fed */
    _Atomic uint32_t again;   /* repeated reads */
    _Atomic uint32_t flags;   /* enum feed_flag */
    _Atomic uint64_t ahead;   /* bytes fed and not read yet */
    _Atomic uint64_t seen;    /* last time that it was read: nanoseconds, monotonic */
    _Atomic uint64_t asked;   /* number of the request whose reads are counted; 0: none */
    _Atomic uint64_t closed;  /* number of the request that ended it, when its report is final */
};

enum feed_flag {
    FEED_OVERFLOWED = 1, /* events were lost */
    FEED_MAPPED = 2,     /* other processes opened files of the list without reading: they may have mapped them */
    FEED_PARTLY = 4,     /* not all directories are watched */
    FEED_UNWATCHED = 8,  /* no feeder watched, or not the same one all the time */
    FEED_STALLED = 16,   /* the feeder was delayed when the list began or ended: reads outside of it may be counted */
    FEED_ENDED = 32,     /* the loader has reported its end: the report is final */
    FEED_STOPPED = 64,   /* the loader left the list early */
    FEED_LEFT = 128,     /* nobody reads it any more */
};
enum { FEED_END_MS = 1000 }; /* how long the server waits until the report of an end is final */

/* A READ that the server has answered: it shows where samples came from and how long loaders waited. A ring buffer: a
 * feeder that is late misses notes. */
struct feed_note {
    _Atomic uint64_t turn; /* number of the note, from 1; written last; 0 while it is being written */
    _Atomic uint64_t what; /* file << 32 | bytes */
    _Atomic uint64_t how;  /* nanoseconds from READ to answer << 8 | fed << 7 | place */
};

/* State of predicting a sampler's lists (the mount's sampler=). */
enum feed_foresight {
    FORESIGHT_NONE,      /* the mount has no sampler= */
    FORESIGHT_READING,   /* too few reads yet */
    FORESIGHT_SEARCHING, /* searching for the epoch */
    FORESIGHT_FOLLOWING, /* following an epoch */
    FORESIGHT_LOST,      /* the reads match no epoch; searches again later */
};

struct feed_missed {
    uint32_t position, file; /* first file in the list; its number in the catalog */
};

/* Report about a rank's list in an epoch, possibly in progress. The Nth is at N modulo FEED_REPORTS; `version` works as
 * in a plan. If not everything was seen, counts are lower bounds. */
struct feed_report {
    _Atomic uint32_t version;
    uint32_t rank, flags;
    uint32_t loaders;                   /* number of the plan's ranks on this node */
    uint64_t number, epoch;             /* of the plan */
    uint64_t began, ended;              /* first and last read: nanoseconds, real time */
    uint64_t asked;                     /* number of the request that began the list */
    uint64_t samples, bytes;            /* of the list, repeats included */
    uint64_t read;                      /* files of the list that were read since it began */
    uint64_t unread;                    /* certainly not read */
    uint64_t unsure;                    /* all others */
    uint64_t again;                     /* reads of files that had already been read as often as planned */
    uint64_t unplanned;                 /* reads of files in no list of this node; the same number for all its ranks */
    uint64_t late, late_sum, late_most; /* samples that waited for a server; nanoseconds */
    uint64_t late_from[FEED_PLACES];
    uint64_t reads[FEED_PLACES], read_bytes[FEED_PLACES]; /* READs of these samples, by feeder and loaders */
    uint64_t looks;                                       /* comparisons of all ranks of the node */
    uint64_t behind;                                      /* comparisons in which this rank was last */
    uint64_t behind_most;                                 /* maximum number of samples by which it was behind */
    uint64_t lost;                                        /* notes that were missed */
    uint32_t unread_named, unplanned_named;
    struct feed_missed missed[FEED_NAMED];
    uint32_t unplanned_file[FEED_NAMED];
};

/* A list that is read as streams of the control mount. Only the server writes it, with a lock held. */
struct feed_stream {
    uint64_t asked;          /* number of the list, as in feed_asking; 0: unused */
    uint64_t number;         /* of the first list of this pass over the plan: the same for all ranks */
    uint64_t ended;          /* 0: not ended */
    uint64_t report;         /* its number, from 1 */
    uint64_t epoch;          /* of the plan */
    uint64_t samples, bytes; /* of the list */
    uint64_t began, last;    /* first and last READ: nanoseconds, real time */
    uint64_t told;           /* 1 + number of samples that its loader reports as read; 0: no report */
    uint32_t rank, workers;
    uint32_t stopped, failed;    /* ended early; a READ has failed */
    uint16_t dirty, final;       /* changed since the last report; its loader reported its end: nothing changes */
    uint8_t digest[16];          /* of the plan */
    uint32_t read[FEED_WORKERS]; /* samples of each worker's stream, from its start */
};

/* Each READ looks at `feeder`, so fields that are written often are in other cache lines. */
struct feed {
    _Alignas(64) _Atomic uint32_t feeder; /* process id, written by the keeper; 0: none runs */
    _Atomic uint32_t deaths;              /* number of feeders that died */
    _Atomic uint32_t off;                 /* 1: no feeder is started: they died repeatedly, or the program is missing */
    _Atomic uint32_t paused;              /* 1: the mount is being unmounted, and the feeder opens nothing */
    _Atomic uint64_t again;               /* until when `off` lasts: nanoseconds, monotonic; 0: permanently */
    _Atomic uint32_t noting;              /* 1: a plan was requested; READs are noted from then on */
    _Atomic uint32_t watcher;             /* process id of the feeder, when it watches all directories */
    _Alignas(64) _Atomic uint64_t window; /* bytes that it may be ahead, as it has decided */
    _Atomic uint64_t ahead;               /* bytes that it is ahead */
    _Atomic uint64_t numbers;             /* number of the last plan */
    struct feed_plan plan[FEED_PLANS];
    _Alignas(64) struct feed_served served;
    _Alignas(64) struct feed_rank rank[FEED_PLANS][FEED_RANKS];
    _Atomic uint32_t foresight; /* enum feed_foresight */
    _Atomic uint32_t wrong;     /* number of wrong predictions */
    _Atomic uint32_t unmatched; /* 1: the last search found no epoch, or a later prediction was wrong */
    /* Values that the reads match instead of the given ones; 0: unknown. */
    _Atomic uint32_t fitting_ranks, fitting_batch;
    _Atomic uint64_t foreseen; /* the last epoch that was recognised */
    _Atomic uint64_t reports;  /* total number */
    struct feed_report report[FEED_REPORTS];
    _Atomic uint64_t notes; /* total number */
    struct feed_note note[FEED_NOTES];
    _Atomic uint64_t
        /* indexed like plan.rank: 1 + number of samples that the loader reports as read; 0: none */
        told[FEED_PLANS][FEED_RANKS];
    struct feed_stream stream[FEED_STREAMS];
};

/* A consistent copy of what another process writes. False: it is being written all the time. One thread of one process
 * writes a plan or report at a time. */
bool feed_plan_get(const struct feed *feed, unsigned i, struct feed_plan *copy);
void feed_plan_put(struct feed *feed, unsigned i, const struct feed_plan *plan);
bool feed_report_get(const struct feed *feed, unsigned i, struct feed_report *copy);
void feed_report_put(struct feed *feed, unsigned i, const struct feed_report *report);

/* Any thread of a server. */
struct feed_answer {
    uint32_t file, bytes;
    uint64_t waited; /* nanoseconds */
    unsigned place;
    bool fed; /* requested by the feeder */
};
void feed_note_add(struct feed *feed, const struct feed_answer *answer);
/* Take the note after number `*taken`, which is updated; false: there is none yet. `*lost` counts missed notes. */
bool feed_note_take(const struct feed *feed, uint64_t *taken, struct feed_answer *answer, uint64_t *lost);

#endif
