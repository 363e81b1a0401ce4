/* Staging only some files, in a chosen order.
 *
 * The chosen files are the sample list `staged`, which all nodes get. An odd round stages this list, an even round all
 * files. The version of the list is the round, or the round minus 1. So a node that learns of a round, and a server
 * that resumes it, can check that they have the right list. */
#ifndef FS_CONTROL_STAGE_CHOICE_H
#define FS_CONTROL_STAGE_CHOICE_H

#include "fs/catalog/samples.h"
#include "fs/control/protocol.h"

#define STAGE_LIST "staged"

/* The keys of `stage` that choose files, in the order of its table of keys. */
#define STAGE_CHOICE_KEYS                                                                                              \
    {.name = "under", .value = "DIR"}, {.name = "match", .value = "GLOB"}, {.name = "samples", .value = "LIST"},       \
    {                                                                                                                  \
        .name = "plan", .value = "KEY=VALUE,..."                                                                       \
    }
enum { CHOICE_UNDER, CHOICE_MATCH, CHOICE_SAMPLES, CHOICE_PLAN, CHOICE_KEYS };

bool stage_choice_given(const struct key_value value[CHOICE_KEYS]);
/* The files that these values choose, each once: a reference. -EINVAL: the values contradict each other, or choose
 * nothing; else the errors of lists_choose and plan_answer. See `why`. */
int stage_choice_make(struct control *control, const struct key_value value[CHOICE_KEYS], const struct asker *asker,
                      struct samples **files);
/* Put the list on all nodes that can be asked, with a round greater than `after`. Takes the list over. */
int stage_choice_put(struct control *control, struct samples *files, uint64_t after, const struct asker *asker,
                     uint64_t *round);
/* The files of a round: 0 and a reference; NULL: all files. -ENOENT: this node lacks the list; then other nodes are
 * asked for it. */
int stage_choice_find(struct control *control, uint64_t round, struct samples **files);

#endif
