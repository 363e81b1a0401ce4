/* Other names for the members of a record of a tar: a stream in which several records have one key puts each record's
 * position before the key, `a/cat.jpg` becoming `a/17-cat.jpg`.
 *
 * A record keeps its length: a name that would need another block has its key cut, in all members of the record alike.
 */
#ifndef FS_RECORDS_TAR_RENAME_H
#define FS_RECORDS_TAR_RENAME_H

#include <stddef.h>
#include <stdint.h>

struct tar_record {
    uint64_t length;
    int (*read)(void *user, void *to, size_t n, uint64_t offset); /* all n bytes of the record: 0; else -errno */
    void *user;
};

/* `bytes` are those of the record from `from` to `to`: writes the headers' new names into them. -EBADMSG: the record
 * does not consist of members of a tar; -ENAMETOOLONG: a name cannot be changed; or what `read` returned. */
int tar_rename(const struct tar_record *record, uint64_t position, uint64_t from, uint64_t to, char *bytes);

#endif
