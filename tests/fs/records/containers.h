/* Containers in memory, and their records as text: "offset+length key", with a ! behind the length of a line that has
 * no newline. */
#ifndef TESTS_FS_RECORDS_CONTAINERS_H
#define TESTS_FS_RECORDS_CONTAINERS_H

#include "fs/records/container.h"

/* What it finds, a line each, is in `found`; records outside of the container, or not in order, abort. The return value
 * is that of container_scan. */
int containers_scan(const void *bytes, size_t n, const struct container_format *format, uint32_t row, struct str *found,
                    struct str *why);

void tar_add(struct str *tar, const char *name, char type, const void *data, size_t n);
void tar_end(struct str *tar);
void tfrecord_add(struct str *file, const void *data, size_t n);

#endif
