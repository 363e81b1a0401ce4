/* Memory in a file without a name: the kernel can write it to disk, so it is not anonymous memory. For arrays that may
 * become as large as the dataset. */
#ifndef FS_BASE_SCRATCH_H
#define FS_BASE_SCRATCH_H

#include <stddef.h>

struct scratch {
    void *bytes; /* NULL: none */
    size_t length;
};

/* Zeros. In `directory`; in shared memory if it is NULL, or its filesystem has no files without names. -ENOSPC,
 * -ENOMEM, … */
int scratch_make(const char *directory, size_t length, struct scratch *scratch);
/* Such a file, empty and not mapped. A descriptor, or -1 and errno. */
int scratch_open(const char *directory);
/* Extends the file and its mapping, which may move; the first call creates the mapping. After a failure nothing has
 * changed. */
int scratch_grow(int fd, size_t length, struct scratch *scratch);
void scratch_fini(struct scratch *scratch);

#endif
