/* The fixed entries in the root of the control mount, and the attributes of everything in it. */
#ifndef FS_CONTROL_ENTRIES_H
#define FS_CONTROL_ENTRIES_H

#include "fs/base/str.h"

#include <fuse_lowlevel.h>

struct control;

/* Inode numbers. */
enum {
    INO_ROOT = FUSE_ROOT_ID,
    INO_CONTROL,
    INO_STATUS,
    INO_METRICS,
    INO_SAMPLES,
    INO_SAMPLES_D,
    INO_NODES,
    INO_NODE,
    INO_ERRORS,
    INO_EPOCHS,
    INO_PLAN,
};

#define INO_LIST (UINT64_C(1) << 63)    /* set only in the numbers of sample lists */
#define INO_PACKED (UINT64_C(1) << 61)  /* together with INO_LIST: the list's records, packed */
#define INO_REQUEST (UINT64_C(1) << 62) /* set, without INO_LIST, only in the numbers of files below plan/ */
static inline bool is_list_ino(uint64_t ino)
{
    return ino == INO_SAMPLES || ino & INO_LIST;
}
static inline bool is_request_ino(uint64_t ino)
{
    return (ino & (INO_LIST | INO_REQUEST)) == INO_REQUEST;
}

/* The highest bit that is set in the inode numbers of decoded/ and everything below it, and in no others. */
#define INO_DECODED (UINT64_C(1) << 61)
static inline bool is_decoded_ino(uint64_t ino)
{
    return ino >> 61 == 1;
}

static const double FOREVER = 1e9; /* timeout in seconds, for entries that never change */

struct root_entry {
    const char *name;
    uint64_t ino;
    mode_t mode;
    bool names; /* contains names of files: only for users who may see all of them */
    int (*generate)(struct control *control, struct str *text); /* NULL: not a generated file */
};

enum { ROOT_ENTRIES = 11 };
extern const struct root_entry root_entries[ROOT_ENTRIES];
const struct root_entry *entry_of(uint64_t ino); /* also for the root; NULL: none */

/* Of the attributes of an entry that shows names or bytes of files. */
double entry_timeout(const struct control *control);
void entry_stat(const struct control *control, const struct root_entry *entry, off_t size, struct stat *st);
/* Attributes of a list, or of a file below plan/. */
void entry_stat_file(const struct control *control, uint64_t ino, off_t size, struct stat *st);

#endif
