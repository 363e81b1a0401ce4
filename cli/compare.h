/* Is an entry of the mount what the source has: type, attributes and every byte? */
#ifndef CLI_COMPARE_H
#define CLI_COMPARE_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct compare {
    int source, mount;         /* the roots */
    char *buffer[2];           /* COMPARE_BYTES each; of this thread alone */
    bool (*stop)(void *user);  /* asked now and then: has the rest become pointless? */
    void (*read)(void *user, uint64_t bytes); /* so many more bytes have been compared */
    void *user;
};
enum { COMPARE_BYTES = 1 << 20 };

enum compare_result {
    COMPARE_SAME,
    COMPARE_DIFFERS,    /* `difference` has a line that names path, place and both sides */
    COMPARE_UNREADABLE, /* this user may read it on neither side, or not in the source */
    COMPARE_STOPPED,
};

int compare_init(struct compare *c); /* the buffers: 0 or -ENOMEM; the rest is set by the caller */
void compare_fini(struct compare *c);

/* The file, symlink or directory itself at a relative path; what is in a directory is not looked at. The file's pages in
 * the mount's page cache are dropped first, so that what is kept is read and not what was read before. */
enum compare_result compare_entry(struct compare *c, const char *path, struct str *difference);

#endif
