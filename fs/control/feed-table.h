/* The plans that are to be fed, for the feeder (fs/wire/feed.h): what was asked for with feed=yes. */
#ifndef FS_CONTROL_FEED_TABLE_H
#define FS_CONTROL_FEED_TABLE_H

#include "fs/plan/plan-request.h"
#include "fs/wire/feed.h"

struct control;
/* What a plan was made of, and which of its ranks are on this node. */
struct feed_wish {
    const struct plan_request *wanted;
    const struct digest *layout;  /* zeros: there never was a world */
    const struct digest *digest;  /* of the plan */
    const uint32_t *node_of_rank; /* NULL: evenly */
    uint32_t nodes, me;
    bool guess; /* the feeder asks, not a loader */
};
/* Begins the lists of wanted->rank, or of all ranks. The same plan requested again keeps its number. Another one takes
 * a free place, or that of a plan that nobody reads any more, of a guess, or of the plan whose last request is the
 * oldest; a guess never takes the place of a plan that is read. The first request waits for a moment until the feeder
 * watches. Any thread of the server but those that read /dev/fuse. */
void feed_table_ask(struct control *control, const struct feed_wish *wish);

/* The end of a rank's list. */
struct feed_end {
    uint64_t epoch;
    uint32_t rank;
    bool stopped;                /* early */
    const struct digest *digest; /* of the plan; NULL: the plan that was requested last */
    uint64_t told;               /* 1 + samples that its loader says it has read; 0: it says nothing */
    unsigned slot;               /* set by feed_table_end, as the next two: where the plan is */
    uint64_t number, asked;      /* of the plan; of the request that began the list */
    uint64_t ended;              /* of this one: feed_rank.closed becomes this when the report is final */
};
/* How many samples of its list a rank's loader says it has read; `at` as for an end. -ENOENT: as there. */
int feed_table_told(struct control *control, struct feed_end *at, uint64_t read);
/* -ENOENT: no loader has requested such a list, or it has ended already. */
int feed_table_end(struct control *control, struct feed_end *end);

#endif
