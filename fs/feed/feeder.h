/* Shared by the files of dealfs-feeder: its whole state, which ends with the process. */
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

/* A plan that was requested, at its position in feed->plan. */
struct feeder_plan {
    uint32_t version; /* the version that was last looked at */
    uint64_t number;  /* the plan that has a course, or whose lists could not be read; 0: none */
    int attempts;
    uint64_t again; /* time of the next attempt; 0: none */
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
    struct pace *pace; /* NULL: reads cannot be seen, or there is nothing to feed yet */
    struct coverage *coverage;
    struct foresight *foresight;
    struct pour pour;
    struct throttle throttle;
    struct headroom headroom;
    uint64_t file_most; /* maximum bytes of a file that are fed */
    uint64_t now;       /* when events were last taken */
    uint64_t blind;     /* reads of existing plans may have been missed until this time */
    pid_t keeper;
};

/* feeder-plans.c: takes what the server has recorded since the last call; stops early when `stop` is set. */
void plans_look(struct feeder *f, const volatile sig_atomic_t *stop);
void plans_drop_guesses(struct feeder *f, uint64_t kind);
void plans_drop(struct feeder *f);

#endif
