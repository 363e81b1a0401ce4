#include "fs/fuse/data.h"

#include <string.h>

enum { BLOCK = 128 << 10 }; /* st_blksize: how much Python and stdio read per call */

void data_control_stat(const struct data_mount *m, struct stat *st)
{
    st->st_ino = data_control_ino(m);
    st->st_nlink = m->control ? 1 : 2;
    st->st_mode = m->control ? S_IFLNK | 0777 : S_IFDIR | 0555;
    st->st_size = m->control ? (off_t)strlen(m->control) : 0;
    st->st_blocks = 0;
}

int data_stat(const struct data_mount *m, fuse_ino_t ino, struct stat *st)
{
    int error = catalog_stat(m->catalog, ino == data_control_ino(m) ? CATALOG_ROOT : ino, st);
    if (error)
        return error;
    st->st_mode = store_limit_mode(m->store, ino, st->st_mode);
    st->st_blksize = BLOCK;
    if (ino == data_control_ino(m))
        data_control_stat(m, st);
    return 0;
}
