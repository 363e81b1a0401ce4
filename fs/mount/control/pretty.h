/* JSON for people: a value a line, but what is small and has nothing inside it on one line. */
#ifndef FS_MOUNT_CONTROL_PRETTY_H
#define FS_MOUNT_CONTROL_PRETTY_H

#include "fs/base/str.h"

/* `compact` is valid JSON without blanks between its tokens; the result is appended, with a newline at its end. */
void pretty_json(const char *compact, size_t n, struct str *out);

#endif
