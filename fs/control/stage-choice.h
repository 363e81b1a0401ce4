/* Staging only some files, in a chosen order.
 *
 * The files that a request has chosen are the sample list `staged`, which all nodes have. An odd round says that this
 * list is staged, an even one that all files are. The version of the list is the round, or one less. So a node that is
 * told of a round, and a server that resumes it, know whether they have the right list. */
#ifndef FS_CONTROL_STAGE_CHOICE_H
#define FS_CONTROL_STAGE_CHOICE_H

#include "fs/catalog/samples.h"
#include "fs/control/protocol.h"
#include "fs/wire/ring.h"

#define STAGE_LIST "staged"

/* The keys of `stage` that choose, as they stand one after the other in the table of its keys. */
#define STAGE_CHOICE_KEYS                                                                                              \
    {.name = "under", .value = "DIR"}, {.name = "match", .value = "GLOB"}, {.name = "samples", .value = "LIST"},       \
    {                                                                                                                  \
        .name = "plan", .value = "KEY=VALUE,..."                                                                       \
    }
enum { CHOICE_UNDER, CHOICE_MATCH, CHOICE_SAMPLES, CHOICE_PLAN, CHOICE_KEYS };

bool stage_choice_given(const struct key_value value[CHOICE_KEYS]);
/* The files that these values choose, each once: a reference. -EINVAL: they contradict each other, or choose nothing;
 * or as lists_choose and plan_answer fail. `why` tells. */
int stage_choice_make(struct control *control, const struct key_value value[CHOICE_KEYS], const struct asker *asker,
                      struct samples **files, struct str *why);
/* Puts the list on all nodes that can be asked, and gives it a round greater than `after`. Takes the list over. */
int stage_choice_put(struct control *control, struct samples *files, uint64_t after, const struct asker *asker,
                     uint64_t *round, struct str *why);
/* What is staged in a round: 0 and a reference, NULL for all files. -ENOENT: the list is not here; then other nodes are
 * asked for it. */
int stage_choice_find(struct control *control, uint64_t round, struct samples **files);

#endif
