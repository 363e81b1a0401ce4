/* Chooses files of a mount, to be parsed. */
#ifndef CLI_LIVE_CHOSEN_FILES_H
#define CLI_LIVE_CHOSEN_FILES_H

#include "cli/live/live.h"

#include <stddef.h>

struct files_wish {
    const char *under; /* a directory, relative to the mount; NULL: all */
    const char *match; /* a glob; NULL: all */
};

struct chosen_file {
    char *path;
    uint32_t file; /* its number */
    uint64_t size;
};

struct chosen_files {
    struct chosen_file *chosen;
    size_t count, room;
    uint64_t total; /* sum of their bytes */
};

/* In the order of the mount's list of samples. `mount`: descriptor of its root. -ENOENT: none; -errno, and why. */
int chosen_files_find(const struct live *live, const struct files_wish *choice, int mount, struct chosen_files *files,
                      struct str *why);
void chosen_files_fini(struct chosen_files *files); /* call it also after an error */

#endif
