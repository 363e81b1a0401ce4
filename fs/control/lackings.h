/* Which nodes lack the last change of a list, as far as this node knows. Any thread. */
#ifndef FS_CONTROL_LACKINGS_H
#define FS_CONTROL_LACKINGS_H

#include "fs/catalog/samples.h"

#include <pthread.h>

enum { LACKING_MOST = 32 }; /* nodes that are remembered per list */

struct lacking {
    char name[sizeof((struct samples_record *)NULL)->name];
    uint32_t nodes, node[LACKING_MOST];
};

struct lackings {
    pthread_mutex_t lock; /* guards the rest */
    struct lacking list[SAMPLES_RECORDS];
    uint32_t count;
};

void lackings_note(struct lackings *l, const char *name, const bool *missing, uint32_t nodes);
uint32_t lackings_find(struct lackings *l, const char *name, uint32_t node[LACKING_MOST]); /* their number */
void lackings_clear(struct lackings *l); /* a new world has begun: all nodes look at each other */

#endif
