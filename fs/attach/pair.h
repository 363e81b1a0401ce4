/* The two mounts of one start, by a process that may mount: put in their places, and taken away again. */
#ifndef FS_ATTACH_PAIR_H
#define FS_ATTACH_PAIR_H

#include "fs/attach/config.h"
#include "fs/base/str.h"

struct pair {
    const char *mountpoint, *control, *source;
    bool nested; /* the control mount is in the data mount, on its .dealfs */
    unsigned data_minor, control_minor;
    uid_t uid; /* whose they are */
    gid_t gid;
    uint64_t readahead; /* of the data mount, in bytes */
};

struct pair pair_of(const struct mount_config *config); /* borrows */

/* From descriptors of the two mounts, which nobody sees yet. On failure both are as before. -1, -1: fusermount3 has put
 * them in their places already, and only their readahead is set. */
int pair_put(const struct pair *pair, int data, int control, struct str *why);
/* Both, lazily, where they are still ours; logs what fails. `spare`: another mount may be on the mountpoint by now; it
 * is left alone. */
int pair_take(const struct pair *pair, bool spare);
/* Root removes dead mounts of `uid` from the mountpoint. -EBUSY: a dealfs mount is there that is not dead, or another
 * user's. */
int pair_clear(const struct pair *pair, struct str *why);

#endif
