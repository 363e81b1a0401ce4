/* Texts of the generated files.
 *
 * A lookup of a name generates the text and returns its size; the open that follows uses the same text. So readers that
 * trust the size, such as sendfile(2) and splice(2), and with them `busybox cat` and Python's shutil, get the complete
 * text. If several lookups overlap, the kernel may keep the size of one while the open takes the text of another; these
 * differ only if a number has just got another digit. A reader that reads to the end always gets everything. */
#ifndef FS_CONTROL_SNAPSHOTS_H
#define FS_CONTROL_SNAPSHOTS_H

#include "fs/control/stream.h"

#include <fuse_lowlevel.h>

struct control;
struct root_entry;

struct snapshots;

struct snapshots *snapshots_create(void); /* NULL: no memory */
void snapshots_destroy(struct snapshots *snapshots);

/* A reference to a new text; unless `fresh`, to the last one if it was generated just before. -ENOMEM: recorded in
 * `errors`. */
int snapshots_get(fuse_req_t req, const struct root_entry *entry, bool fresh, struct reply **text);

#endif
