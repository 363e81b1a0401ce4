/* The plans that the feeder should read ahead (fs/wire/feed.h): those requested with feed=yes. */
#ifndef FS_CONTROL_FEED_TABLE_H
#define FS_CONTROL_FEED_TABLE_H

#include "fs/plan/plan-request.h"
#include "fs/wire/feed.h"

struct control;
/* A plan's parameters, and which of its ranks are on this node. */
struct feed_wish {
    const struct plan_request *wanted;
    const struct digest *layout;  /* zeros: there never was a world */
    const struct digest *digest;  /* of the plan */
    const uint32_t *node_of_rank; /* NULL: evenly distributed */
    uint32_t nodes, me;
    bool guess; /* requested by the feeder, not by a loader */
};
/* Begins the list of wanted->rank, or the lists of all ranks. If the same plan is requested again, it keeps its number.
 * Another plan takes a free place; else that of a plan that nobody reads any more; else of a guess; else of the plan
 * with the oldest request. A guess never replaces a plan that is read. The first request waits briefly until the feeder
 * watches. Any thread of the server except those that read /dev/fuse. */
void feed_table_ask(struct control *control, const struct feed_wish *wish);

/* The end of a rank's list. */
struct feed_end {
    uint64_t epoch;
    uint32_t rank;
    bool stopped;                /* ended early */
    const struct digest *digest; /* of the plan; NULL: the only plan with a list of this epoch and rank in progress */
    uint64_t told;               /* 1 + number of samples that the loader reports as read; 0: no report */
    unsigned slot;               /* this field and the next two are set by feed_table_end: the plan's place */
    uint64_t number, asked;      /* of the plan; of the request that began the list */
    uint64_t ended;              /* number of this end: when the report is final, feed_rank.closed has this value */
};
/* Record how many samples of its list a rank's loader reports as read. `at` and -ENOENT: as for feed_table_end. */
int feed_table_told(struct control *control, struct feed_end *at, uint64_t read);
/* -ENOENT: no loader has requested such a list, or it has already ended. -EEXIST: there are several, of different
 * plans. */
int feed_table_end(struct control *control, struct feed_end *end);

#endif
