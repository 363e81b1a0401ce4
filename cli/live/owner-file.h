/* Opens files of a mount's state directory. Its owner may change anything in that directory, at any time. */
#ifndef CLI_LIVE_OWNER_FILE_H
#define CLI_LIVE_OWNER_FILE_H

#include "cli/live/live.h"

/* A descriptor for reading the file `name`, or -errno. Root never opens the path: a child with the rights of the
 * mount's owner does, and has some seconds for it. -EPERM: it is not a regular file of the owner. -EFBIG: it is longer
 * than `most` bytes; it may still grow. */
int owner_file_open(const struct live *live, const char *name, uint64_t most);

#endif
