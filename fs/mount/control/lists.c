/* Inode numbers of sample lists, computed and never kept. */
#include "fs/mount/control/lists.h"

#include <string.h>

uint64_t list_ino(const char *name, const struct samples *list)
{
    const struct digest *digest = samples_digest(list);

    return hash64(digest, sizeof *digest, hash64(name, strlen(name), 0)) | INO_LIST;
}

struct samples *lists_find(struct samples_table *table, uint64_t ino)
{
    CLEANUP_STR struct str names = STR_INIT;

    if (!(ino & INO_LIST) || samples_table_names(table, &names) != 0)
        return NULL;
    for (size_t at = 0; at < names.length; at += strlen(names.data + at) + 1) {
        struct samples *list = samples_table_find(table, names.data + at);
        if (list && list_ino(names.data + at, list) == ino)
            return list;
        if (list)
            samples_put(list);
    }
    return NULL;
}
