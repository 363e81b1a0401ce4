#include "fs/catalog/file-state.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/xattr.h>

/* --- ACLs --- */

/* system.posix_acl_access, little-endian: a version, and entries. */
enum { ACL_VERSION = 2, ACL_USER = 2, ACL_GROUP_OBJ = 4, ACL_GROUP = 8, ACL_MASK = 16, ACL_ENTRIES = 8191 };
struct acl_entry {
    uint16_t tag, rights;
    uint32_t id;
};
struct acl {
    uint32_t version;
    struct acl_entry entry[ACL_ENTRIES];
};

static mode_t acl_mask(const struct acl *acl, size_t entries)
{
    for (size_t i = 0; i < entries; i++)
        if (le16toh(acl->entry[i].tag) == ACL_MASK)
            return le16toh(acl->entry[i].rights);
    return S_IRWXO;
}

/* stat shows the mask as the group's rights. In the mount, a named user, or a member of a named group, may count as a
 * member of the owning group or as one of the others. A user in both groups has the rights of both. The result must not
 * give anyone more than the ACL does. */
static mode_t acl_limit(const struct acl *acl, size_t entries, mode_t mode)
{
    mode_t mask = acl_mask(acl, entries), group = mask, other = mode & S_IRWXO;
    for (size_t i = 0; i < entries; i++) {
        uint16_t tag = le16toh(acl->entry[i].tag);
        mode_t rights = le16toh(acl->entry[i].rights) & mask;
        if (tag == ACL_USER || tag == ACL_GROUP_OBJ)
            group &= rights;
        if (tag == ACL_USER || tag == ACL_GROUP)
            other &= rights;
    }
    return (mode & ~(mode_t)(S_IRWXG | S_IRWXO)) | (group & S_IRWXO) << 3 | other;
}

/* Only a mode that gives rights to others than the owner can give too many. */
void state_limit_mode(int fd, const char *name, struct stat *st)
{
    char path[32 + NAME_MAX + 1];
    struct acl acl;
    if (!(st->st_mode & (S_IRWXG | S_IRWXO)) || (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode)))
        return;
    int n = snprintf(path, sizeof path, "/proc/self/fd/%d%s%s", fd, name ? "/" : "", name ? name : "");
    if (n >= (int)sizeof path)
        return;
    ssize_t bytes = name ? lgetxattr(path, "system.posix_acl_access", &acl, sizeof acl)
                         : getxattr(path, "system.posix_acl_access", &acl, sizeof acl);
    if (bytes > (ssize_t)sizeof acl.version && le32toh(acl.version) == ACL_VERSION)
        st->st_mode = acl_limit(&acl, ((size_t)bytes - sizeof acl.version) / sizeof acl.entry[0], st->st_mode);
}

/* --- stat --- */

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
    state_limit_mode(fd, name, st);
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
