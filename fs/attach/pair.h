/* The two mounts of one dealfs mount, for a process that may mount: attaches them, and removes them. */
#ifndef FS_ATTACH_PAIR_H
#define FS_ATTACH_PAIR_H

#include "fs/attach/config.h"
#include "fs/base/str.h"

struct pair {
    const char *mountpoint, *control, *source;
    bool nested; /* the control mount is on .dealfs in the data mount */
    unsigned data_minor, control_minor;
    uid_t uid; /* user of the mounts */
    gid_t gid;
    uint64_t readahead; /* of the data mount, in bytes */
};

struct pair pair_of(const struct mount_config *config); /* borrows */

/* From descriptors of the two detached mounts. On failure both stay detached. -1, -1: fusermount3 has attached them
 * already; only their readahead is set. */
int pair_put(const struct pair *pair, int data, int control, struct str *why);
/* Remove both lazily, if they are still ours; logs failures. `spare`: do not touch another mount that may be on the
 * mountpoint by now. */
int pair_take(const struct pair *pair, bool spare);
/* If the data mount does not answer within some seconds, end all requests of both mounts, with ECONNABORTED. A killed
 * server can have threads that wait for such requests: they keep its files open, and it cannot end. */
bool pair_abort(const struct pair *pair);
/* Remove dead mounts of `uid` from the mountpoint; only for root. -ENOENT and the like: there is no such directory.
 * -EEXIST: a mount of dealfs there is alive; -EBUSY: it belongs to another user. */
int pair_clear(const struct pair *pair);
/* The minor number of what is mounted on the mountpoint; 0: nothing. On failure `why` says why. */
int pair_below(const struct pair *pair, unsigned *minor, struct str *why);
/* Take over a mount of `uid` on the mountpoint: sets `source`, which the caller frees, and `data_minor`. -ENOENT: there
 * is none; other errors: it is unknown whether there is one. */
int pair_adopt(struct pair *pair);

#endif
