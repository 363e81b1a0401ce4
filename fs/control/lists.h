/* Sample lists as the control mount has them.
 *
 * Each version of each list has an inode of its own. The kernel keeps what it has read of a list for ever, so a list
 * that is replaced must come back as another inode. Its number is made of the list's name and digest, so that the next
 * server of the mount, and a read without a handle, find it again. */
#ifndef FS_CONTROL_LISTS_H
#define FS_CONTROL_LISTS_H

#include "fs/catalog/samples.h"
#include "fs/control/budget.h"
#include "fs/plan/plan-request.h"

#include <stdint.h>

uint64_t list_ino(const char *name, const struct samples *list, bool packed); /* the name with or without `.packed` */

struct asker;
struct control;
struct request;
/* The list of a name in samples.d, a reference, or NULL. For a list that is samples_packed there also is its name with
 * `.packed` behind: the array of them. */
struct samples *lists_named(struct control *control, const char *name, bool *packed);
/* The list behind `samples` or a file of samples.d: a reference, or NULL, which a version is that has been replaced. */
struct samples *lists_find(struct control *control, uint64_t ino);
/* A list by its name, a reference; other nodes are asked for it. -ENOENT: `why` tells. */
int lists_get(struct control *control, const char *name, const struct asker *asker, struct samples **list,
              struct str *why);
/* Put and removed on all nodes; for the verbs, whose first key is the name. lists_put takes the list over. */
int lists_put(struct control *control, const char *name, struct samples *list, const struct asker *asker,
              struct str *reply, struct str *why);
/* The same, with a version higher than `after`. */
int lists_put_after(struct control *control, const char *name, uint64_t after, struct samples *list,
                    const struct asker *asker, struct str *reply, struct str *why);
int lists_remove(struct control *control, const struct request *request, bool costs, const struct asker *asker,
                 struct str *reply, struct str *why);
/* The list that a plan is of: a reference, or what `under` and `match` leave of it, charged for. -ENOENT: there is none
 * of the name; -EINVAL: it has not `count` samples, or the dataset is not `catalog`; -ENOMEM. `why` tells, and then
 * which keys would choose as many. */
int lists_choose(struct control *control, const struct plan_request *wanted, const struct asker *asker,
                 struct charge *charge, struct samples **list, struct str *why);

#endif
