/* Other names for the members of a record of a tar: a stream in which several records have one key puts each record's
 * position before the key, `a/cat.jpg` becoming `a/17-cat.jpg`.
 *
 * A record keeps its length: a name that would need another block has its key cut, in all members of the record alike.
 */
#ifndef FS_RECORDS_TAR_RENAME_H
#define FS_RECORDS_TAR_RENAME_H

#include "fs/records/tar-area.h"

/* A record, of which some bytes are in memory. */
struct tar_record {
    uint64_t length;
    int (*read)(void *user, void *to, size_t n, uint64_t offset); /* all n bytes of the record: 0; else -errno */
    void *user;
    uint64_t from, to; /* these are in memory: */
    char *bytes;
};

/* What must be known of the whole record before a part of it can be renamed. It does not depend on that part, and takes
 * a look at each member. */
struct tar_cut {
    struct tar_naming naming;
    uint32_t mark[]; /* mark i: the member with the byte i × TAR_MARK_EVERY begins at this block */
};
enum { TAR_MARK_EVERY = 128 << 10 };

/* -EBADMSG: the record does not consist of members of a tar; -EFBIG: it has more than TAR_MEMBERS_MOST members;
 * -ENAMETOOLONG: a name cannot be changed; -ENOMEM; or what `read` returned. The caller frees it. */
int tar_cut_make(const struct tar_record *record, uint64_t position, struct tar_cut **cut);
/* Write the headers' new names into the bytes in memory. Errors as above. */
int tar_rename(const struct tar_record *record, const struct tar_cut *cut);

#endif
