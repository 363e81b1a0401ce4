/* The texts of the files that are generated.
 *
 * A look-up of a name makes one, and says its size; the open that follows takes the same. So who trusts sizes, as
 * sendfile(2) and splice(2) do, and with them `busybox cat` and Python's shutil, gets all of it. (Where several
 * look-ups overlap the kernel keeps the size of one and the open takes the text of another; these differ when a number
 * has just got a digit more. Who reads until the end always gets all.) */
#ifndef FS_CONTROL_SNAPSHOTS_H
#define FS_CONTROL_SNAPSHOTS_H

#include "fs/control/stream.h"

#include <fuse_lowlevel.h>

struct control;
struct root_entry;

struct snapshots;

struct snapshots *snapshots_create(void); /* NULL: no memory */
void snapshots_destroy(struct snapshots *snapshots);

/* A reference to a text of now; or, not `fresh`, the last one where it was made just before. -ENOMEM, and `errors` says
 * why. */
int snapshots_get(fuse_req_t req, const struct root_entry *entry, bool fresh, struct reply **text);

#endif
