/* What the parts of dealfs-feeder share: its whole state, none of which outlives it. */
#ifndef FS_FEED_FEEDER_H
#define FS_FEED_FEEDER_H

#include "fs/attach/config.h"
#include "fs/feed/coverage.h"
#include "fs/feed/courses.h"
#include "fs/feed/foresee.h"
#include "fs/feed/pace.h"
#include "fs/feed/pour.h"
#include "fs/feed/recipe.h"
#include "fs/feed/headroom.h"
#include "fs/feed/throttle.h"
#include "fs/wire/handover.h"

#include <signal.h>

/* A plan that was asked for, in the order of feed->plan. */
struct feeder_plan {
    uint32_t version; /* that was looked at last */
    uint64_t number;  /* whose course there is, or whose lists could not be had: 0: none */
    int attempts;
    uint64_t again; /* when to try again; 0: not needed */
};

struct feeder {
    struct handover *handover;
    struct feed *feed;
    struct mount_config config;
    struct catalog *catalog;
    struct window_files files;
    struct feed_courses courses;
    struct recipe_book book;
    struct feeder_plan plan[FEED_PLANS];
    struct pace *pace; /* NULL: nothing can be seen, or nothing is to be fed yet */
    struct coverage *coverage;
    struct foresight *foresight;
    struct pour pour;
    struct throttle throttle;
    struct headroom headroom;
    uint64_t file_most; /* bytes of a file that are fed */
    uint64_t now;       /* when events were last taken */
    uint64_t blind;     /* until then reads of a plan that was there may have passed unseen */
    pid_t keeper;
};

/* feeder-plans.c: takes over what the server has written down since the last look; less of it once `stop` is set. */
void plans_look(struct feeder *f, const volatile sig_atomic_t *stop);
void plans_drop_guesses(struct feeder *f, uint64_t kind);
void plans_drop(struct feeder *f);

#endif
