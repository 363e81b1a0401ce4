/* The headers of one member of a tar:
 *
 *   [x: path=NAME] [L: NAME] header [map]      data
 *   '----- its area --------------------'
 *
 * Both functions are pure: they read the bytes of an area, and write no others than those of `out`. */
#ifndef FS_RECORDS_TAR_AREA_H
#define FS_RECORDS_TAR_AREA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tar_area {
    size_t n;      /* bytes of the area; while it is incomplete: how many of them the next call needs */
    size_t main;   /* where the member's own header begins */
    uint64_t data; /* bytes of data after the area, padded */
    bool file;
    bool named;          /* extension headers have names, so the one of the member's own header does not count */
    size_t name, length; /* the last name, which counts */
    size_t stem;         /* length of the longest last part of a key, of all names */

    /* Until it is complete. */
    bool extension, map; /* what the bytes before n are */
    bool sized;          /* an extension header has the size of the data */
    uint64_t size;
};

void tar_area_init(struct tar_area *area);
/* Parse n bytes of an area; the bytes of the calls before are the same. 1: it is longer, see n; 0: it is complete;
 * -EBADMSG: it is broken, or longer than TAR_AREA_MOST; -ENAMETOOLONG: a name is longer than TAR_NAME_MOST. */
int tar_area_take(struct tar_area *area, const char *bytes);

/* New names: `prefix` before the last part of each key, of which `kept` bytes stay. */
struct tar_naming {
    char prefix[24];
    size_t kept;
};
/* Make a complete area with these names, which has as many bytes, in `out`; NULL: only check that this is possible.
 * -ENAMETOOLONG: the names do not fit, and `out` is undefined. With fewer `kept` bytes they may fit. */
int tar_area_rename(const struct tar_area *area, const char *bytes, const struct tar_naming *naming, char *out);

#endif
