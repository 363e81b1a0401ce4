/* Feeding: what the feeder, the server and the keeper of a mount tell each other, in the memory of handover.h. It is
 * zeros at first.
 *
 * The server writes down which plans are to be fed. The keeper starts a feeder when there are any, and another when it
 * dies. The feeder opens the coming files of these plans through the mount and asks for readahead; the server knows its
 * READs by their process, lets all others go before them, and counts them, for their end is invisible to a client. What
 * the feeder sees of the loaders it leaves here for `status` and for reports.
 *
 * All of it can be cut off between two stores by a kill -9, and all of it can be written by the mount's user: who reads
 * it takes numbers for what they claim to be only after looking whether they are in bounds. */
#ifndef FS_WIRE_FEED_H
#define FS_WIRE_FEED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    FEED_PLANS = 8,   /* that are fed at a time: the latest that were asked for */
    FEED_RANKS = 64,  /* of one plan, on this node; those after them are not fed */
    FEED_TEXT = 2048, /* of a plan's pairs */
    FEED_PLACES = 4,  /* RAM, SSD, peer, source, as in fs/store/store.h */
    FEED_REPORTS = 256,
    FEED_NAMED = 256,  /* samples that a report names of each kind */
    FEED_NOTES = 8192, /* a power of two */
    FEED_STREAMS = 64, /* lists that are read as streams at a time */
    FEED_WORKERS = 64, /* streams of one list that are counted: of the first workers */
};

/* One rank's list: the last time that a program asked for it, and its end. Numbers grow with each request, of any list;
 * times are nanoseconds, monotonic. */
struct feed_asking {
    uint64_t asked, since; /* number of the request, 0: none; its time */
    uint64_t notes;        /* notes of READs before it */
    uint64_t ended, until; /* number of the request that ended the list, 0: none; its time */
    uint32_t stopped;      /* 1: its loader left it before the end */
    uint32_t watcher;      /* process id of the feeder that watched all directories before the reply; 0: none */
};

/* Written under `version`: odd while it is being written, and greater by 2 after. */
struct feed_plan {
    _Atomic uint32_t version;
    uint32_t ranks;  /* of this node: how many of `rank` count */
    uint64_t number; /* of the first request; 0: no plan. The same plan requested again keeps its own */
    uint64_t asked;  /* of the last request: the server's alone */
    uint64_t epoch;
    uint32_t guessed;          /* 1: only the feeder has asked for it */
    uint32_t rank[FEED_RANKS]; /* in their order */
    struct feed_asking asking[FEED_RANKS];
    uint8_t digest[16];    /* of the plan */
    char pairs[FEED_TEXT]; /* the file plan/PAIRS of the control mount, except for rank= and reply=; ends with a zero */
};

/* What is in the hands of a server now of the feeder's READs: zeros when a server begins. */
struct feed_waits {
    _Atomic uint32_t all;                  /* received and not answered */
    _Atomic uint32_t waiting[FEED_PLACES]; /* of these, by whom they wait for; one that is at hand waits for nobody */
};

struct feed_served {
    struct feed_waits waits;
    _Atomic uint64_t begun, done; /* READs, by all servers so far */
    _Atomic uint64_t reads[FEED_PLACES], bytes[FEED_PLACES];
    _Atomic uint64_t errors;
};

/* One rank of a plan, as the feeder sees it. */
struct feed_rank {
    _Atomic uint64_t number; /* of the plan; 0: nothing is here */
    _Atomic uint32_t rank;
    _Atomic uint32_t samples; /* of its list */
    _Atomic uint32_t reached; /* how far the loader is */
    _Atomic uint32_t fed;     /* how far the feeder is */
    _Atomic uint32_t read;    /* different positions of the list that were read */
    _Atomic uint32_t late;    /* of them, before they had been fed */
    _Atomic uint32_t again;   /* reads of what had been read */
    _Atomic uint32_t flags;   /* enum feed_flag */
    _Atomic uint64_t ahead;   /* bytes fed and not read yet */
    _Atomic uint64_t seen;    /* when it was last seen to read: nanoseconds, monotonic */
    _Atomic uint64_t asked;   /* number of the request whose reads are counted; 0: none */
    _Atomic uint64_t closed;  /* number of the request that ended it, once its report is final */
};

enum feed_flag {
    FEED_OVERFLOWED = 1, /* events were lost */
    FEED_MAPPED = 2,     /* others opened files of the list and did not read them: perhaps they are mapped */
    FEED_PARTLY = 4,     /* not all directories are watched */
    FEED_UNWATCHED = 8,  /* no feeder watched, or not the same one all the time */
    FEED_STALLED = 16,   /* the feeder stood still when the list began or ended: reads beyond it may be counted */
    FEED_ENDED = 32,     /* the loader has reported its end: the report is final */
    FEED_STOPPED = 64,   /* and that it left the list early */
    FEED_LEFT = 128,     /* nobody reads it any more */
};
enum { FEED_END_MS = 1000 }; /* for so long the server waits until the report of an end is final */

/* A READ that the server has answered, for who looks where samples came from and who waited for them. A ring: the
 * feeder that does not come in time misses some. */
struct feed_note {
    _Atomic uint64_t turn; /* of the note, from 1: written last; 0 while it is being written */
    _Atomic uint64_t what; /* file << 32, bytes */
    _Atomic uint64_t how;  /* nanoseconds from the READ to its answer << 8, fed << 7, place */
};

/* Whether the lists of a sampler are foreseen (the mount's sampler=). */
enum feed_foresight {
    FORESIGHT_NONE,      /* the mount has none */
    FORESIGHT_READING,   /* too little has been read yet */
    FORESIGHT_SEARCHING, /* which epoch is that? */
    FORESIGHT_FOLLOWING, /* that one */
    FORESIGHT_LOST,      /* what is read is no epoch; it is tried again after a while */
};

struct feed_missed {
    uint32_t position, file; /* its first one in the list; its number in the catalog */
};

/* What became of a rank's list in an epoch, or has become of it so far. The Nth is at N modulo FEED_REPORTS; `version`
 * is as that of a plan. Who counts where not all was seen counts at least so many. */
struct feed_report {
    _Atomic uint32_t version;
    uint32_t rank, flags;
    uint32_t loaders;        /* ranks of the plan on this node */
    uint64_t number, epoch;  /* of the plan */
    uint64_t began, ended;   /* nanoseconds, of the day's clock: first and last read */
    uint64_t asked;          /* number of the request that began the list */
    uint64_t samples, bytes; /* of the list; repeats count */
    uint64_t read;           /* files of the list: read by somebody since it began */
    uint64_t unread;         /* certainly not read */
    uint64_t unsure;         /* all others */
    uint64_t again;          /* reads of files that had been read as often as planned */
    uint64_t unplanned;      /* reads of files that no list of this node has: the same number for all its ranks */
    uint64_t late, late_sum, late_most; /* samples that waited for a server, nanoseconds */
    uint64_t late_from[FEED_PLACES];
    uint64_t reads[FEED_PLACES], read_bytes[FEED_PLACES]; /* READs of these samples, feeding and loaders together */
    uint64_t looks;                                       /* comparisons of all ranks of the node */
    uint64_t behind;                                      /* comparisons in which this rank was the last */
    uint64_t behind_most;                                 /* the most samples by which it was */
    uint64_t lost;                                        /* notes that did not come in time */
    uint32_t unread_named, unplanned_named;
    struct feed_missed missed[FEED_NAMED];
    uint32_t unplanned_file[FEED_NAMED];
};

/* A list that is read as streams of the control mount: the server's alone, which writes it under a lock. */
struct feed_stream {
    uint64_t asked;          /* number of the list, as in feed_asking; 0: none */
    uint64_t number;         /* of the first list of this pass over the plan: the same for all ranks */
    uint64_t ended;          /* 0: it goes on */
    uint64_t report;         /* its number, from 1 */
    uint64_t epoch;          /* of the plan */
    uint64_t samples, bytes; /* of the list */
    uint64_t began, last;    /* first and last READ: nanoseconds, of the day's clock */
    uint64_t told;           /* 1 + samples that its loader says it has read; 0: it has said nothing */
    uint32_t rank, workers;
    uint32_t stopped, failed, dirty; /* ended early; a READ has failed; there is more than in the report */
    uint8_t digest[16];              /* of the plan */
    uint32_t read[FEED_WORKERS];     /* samples of each worker's stream, from its beginning */
};

/* Each READ looks at `feeder`: what is written often lies on other lines of the cache. */
struct feed {
    _Alignas(64) _Atomic uint32_t feeder; /* process id, written by the keeper; 0: none runs */
    _Atomic uint32_t deaths;              /* of feeders */
    _Atomic uint32_t off;                 /* 1: they died repeatedly, or there is no program: none is started, */
    _Atomic uint32_t paused;              /* 1: the mount is being taken away, and it opens nothing */
    _Atomic uint64_t again;               /* off: until then: nanoseconds, monotonic; 0: for good */
    _Atomic uint32_t noting;              /* 1: a plan was requested, READs are noted from then on */
    _Atomic uint32_t watcher;             /* the feeder, once it watches all directories */
    _Alignas(64) _Atomic uint64_t window; /* bytes that it may be ahead, as it has chosen */
    _Atomic uint64_t ahead;               /* bytes that it is ahead */
    _Atomic uint64_t numbers;             /* the last plan's number */
    struct feed_plan plan[FEED_PLANS];
    _Alignas(64) struct feed_served served;
    _Alignas(64) struct feed_rank rank[FEED_PLANS][FEED_RANKS];
    _Atomic uint32_t foresight; /* enum feed_foresight */
    _Atomic uint32_t wrong;     /* predictions that turned out so */
    _Atomic uint32_t unmatched; /* 1: the last search found no epoch, or a prediction was wrong since */
    /* What the reads match instead of the given numbers; 0: unknown. */
    _Atomic uint32_t fitting_ranks, fitting_batch;
    _Atomic uint64_t foreseen; /* the last epoch that was found */
    _Atomic uint64_t reports;  /* so many there have been */
    struct feed_report report[FEED_REPORTS];
    _Atomic uint64_t notes; /* so many there have been */
    struct feed_note note[FEED_NOTES];
    _Atomic uint64_t
        told[FEED_PLANS][FEED_RANKS]; /* as plan.rank: 1 + samples that its loader says it has read; 0: none */
    struct feed_stream stream[FEED_STREAMS];
};

/* A copy of what one process writes and others read, taken between two writings. False: it is being written all the
 * time. One process writes a plan or a report at a time, by one thread. */
bool feed_plan_get(const struct feed *feed, unsigned i, struct feed_plan *copy);
void feed_plan_put(struct feed *feed, unsigned i, const struct feed_plan *plan);
bool feed_report_get(const struct feed *feed, unsigned i, struct feed_report *copy);
void feed_report_put(struct feed *feed, unsigned i, const struct feed_report *report);

/* Any thread of a server. */
struct feed_answer {
    uint32_t file, bytes;
    uint64_t waited; /* nanoseconds */
    unsigned place;
    bool fed; /* the feeder asked */
};
void feed_note_add(struct feed *feed, const struct feed_answer *answer);
/* The next one after `*taken`, which grows; false: there is none yet. `*lost` grows by those that are gone. */
bool feed_note_take(const struct feed *feed, uint64_t *taken, struct feed_answer *answer, uint64_t *lost);

#endif
