/* Sample lists in the control mount.
 *
 * Each version of a list has its own inode. The kernel caches what it has read of a list for ever, so a replaced list
 * needs another inode. The number is computed from the list's name and digest, so that the mount's next server, and a
 * read without a handle, find it. */
#ifndef FS_CONTROL_LISTS_H
#define FS_CONTROL_LISTS_H

#include "fs/catalog/samples.h"
#include "fs/control/budget.h"
#include "fs/plan/plan-request.h"

#include <stdint.h>

/* `packed`: the name has `.packed` appended */
uint64_t list_ino(const char *name, const struct samples *list, bool packed);

struct asker;
struct control;
struct request;
/* The list with this name in samples.d: a reference, or NULL. If samples_packed is true for it, its name with `.packed`
 * appended is the array of its records. */
struct samples *lists_named(struct control *control, const char *name, bool *packed);
/* The list behind `samples` or a file of samples.d: a reference; or NULL, also for a version that was replaced. */
struct samples *lists_find(struct control *control, uint64_t ino);
/* A list by name: a reference; other nodes are asked for it. Otherwise what lists_absent returns. */
int lists_get(struct control *control, const char *name, const struct asker *asker, struct samples **list);
/* A list was not found after sharing_look, which returned `looked`. -ENOENT: no node has it. -EHOSTUNREACH: that is not
 * known, because not all other nodes answered. `why` says so. */
int lists_absent(int looked, bool costs, const char *name, struct str *why);
/* Put or remove a list on all nodes, for verbs whose first key is the name. lists_put takes `list` over. */
struct list_put {
    const char *name;
    struct samples *list;
    uint64_t after; /* the version becomes higher than this */
};
int lists_put(struct control *control, const struct list_put *put, const struct asker *asker);
int lists_remove(struct control *control, const struct request *request, const struct asker *asker);
/* The list that a plan uses: a reference; or the part of it that `under` and `match` select, charged. Errors of
 * lists_get. -EINVAL: it does not have `count` samples, or the dataset is not `catalog`. -ENOMEM. `why` says
 * why, and which keys would select `count` samples. */
int lists_choose(struct control *control, const struct plan_request *wanted, const struct asker *asker,
                 struct charge *charge, struct samples **list);

#endif
