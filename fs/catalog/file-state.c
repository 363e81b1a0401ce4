#include "fs/catalog/file-state.h"

#include <errno.h>
#include <fcntl.h>

int state_look(int fd, const char *name, int flags, struct stat *st)
{
    struct statx x;
    unsigned want = STATX_TYPE | STATX_MODE | STATX_UID | STATX_GID | STATX_SIZE | STATX_MTIME | STATX_CTIME |
                    STATX_NLINK | STATX_BLOCKS;
    if (statx(fd, name ? name : "", flags | AT_NO_AUTOMOUNT | (name ? 0 : AT_EMPTY_PATH), want, &x))
        return -errno;
    *st = (struct stat){
        .st_mode = x.stx_mode,
        .st_uid = x.stx_uid,
        .st_gid = x.stx_gid,
        .st_nlink = x.stx_nlink,
        .st_blocks = (blkcnt_t)x.stx_blocks,
        .st_size = (off_t)x.stx_size,
        .st_mtim = {.tv_sec = x.stx_mtime.tv_sec, .tv_nsec = x.stx_mtime.tv_nsec},
        .st_ctim = {.tv_sec = x.stx_ctime.tv_sec, .tv_nsec = x.stx_ctime.tv_nsec},
    };
    return 0;
}

int64_t state_time(struct timespec t)
{
    int64_t ns;
    if (__builtin_mul_overflow((int64_t)t.tv_sec, (int64_t)1000000000, &ns) ||
        __builtin_add_overflow(ns, (int64_t)t.tv_nsec, &ns))
        return t.tv_sec < 0 ? INT64_MIN : INT64_MAX;
    return ns;
}

struct file_state state_from(const struct stat *st)
{
    return (struct file_state){
        .size = st->st_size > 0 ? (uint64_t)st->st_size : 0,
        .mtime = state_time(st->st_mtim),
        .ctime = state_time(st->st_ctim),
        .mode = st->st_mode & 07777,
        .uid = st->st_uid,
        .gid = st->st_gid,
        .links = (uint32_t)st->st_nlink,
    };
}

enum state_change state_compare(const struct file_state *before, const struct file_state *now)
{
    if (before->size != now->size)
        return STATE_SIZE;
    if (before->mtime != now->mtime)
        return STATE_MTIME;
    if (before->ctime == 0 || before->ctime == now->ctime)
        return STATE_SAME;
    bool explained =
        before->mode != now->mode || before->uid != now->uid || before->gid != now->gid || before->links != now->links;
    return explained ? STATE_SAME : STATE_CTIME;
}
