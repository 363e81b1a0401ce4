#include "fs/catalog/file-state.h"

#include "fs/base/hash.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
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

static ssize_t acl_read(int fd, const char *name, struct acl *acl)
{
    static const char attribute[] = "system.posix_acl_access";
    char path[32 + PATH_MAX];
    int n = snprintf(path, sizeof path, "/proc/self/fd/%d%s%s", fd, name ? "/" : "", name ? name : "");
    if (n >= (int)sizeof path)
        return -ENAMETOOLONG;
    ssize_t bytes = name ? lgetxattr(path, attribute, acl, sizeof *acl) : getxattr(path, attribute, acl, sizeof *acl);
    return bytes < 0 ? -errno : bytes;
}

/* Only a mode that gives rights to others than the owner can give too many. Only the answer for a descriptor says what
 * the filesystem has: a name can become a symlink meanwhile, and symlinks have no ACLs anywhere. */
void state_limit_mode(int fd, const char *name, struct stat *st, _Atomic uint64_t *without)
{
    struct acl acl;
    if (!(st->st_mode & (S_IRWXG | S_IRWXO)) || (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode)))
        return;
    if (without && atomic_load_explicit(without, memory_order_relaxed) == (uint64_t)st->st_dev + 1)
        return;
    ssize_t bytes = acl_read(fd, name, &acl);
    if (bytes == -EOPNOTSUPP && !name && without)
        atomic_store_explicit(without, (uint64_t)st->st_dev + 1, memory_order_relaxed);
    if (bytes > (ssize_t)sizeof acl.version && le32toh(acl.version) == ACL_VERSION)
        st->st_mode = acl_limit(&acl, ((size_t)bytes - sizeof acl.version) / sizeof acl.entry[0], st->st_mode);
}

/* --- the object --- */

static uint32_t hash_object(const void *bytes, size_t n)
{
    uint32_t object = (uint32_t)hash64(bytes, n, 0);
    return object ? object : 1;
}

/* A handle has the inode number and its generation. Handles of FUSE do not: a server may give a path the same number
 * again. */
static uint32_t object_of_handle(int fd, const char *name)
{
    enum { FUSE_MAGIC = 0x65735546 };
    struct {
        struct file_handle head;
        unsigned char bytes[MAX_HANDLE_SZ];
    } handle = {.head = {.handle_bytes = MAX_HANDLE_SZ}};
    struct statfs filesystem;
    int mount;
    if (name_to_handle_at(fd, name ? name : "", &handle.head, &mount, name ? 0 : AT_EMPTY_PATH) < 0 ||
        fstatfs(fd, &filesystem) < 0 || filesystem.f_type == FUSE_MAGIC)
        return 0;
    return hash_object(&handle, sizeof handle.head + handle.head.handle_bytes);
}

/* The inode number and the time of birth, where the filesystem has one: this needs no other call. The numbers of
 * removed files are given again, but not in the same instant. */
static uint32_t object_of(int fd, const char *name, const struct statx *x)
{
    const int64_t object[] = {(int64_t)x->stx_ino, x->stx_btime.tv_sec, x->stx_btime.tv_nsec};
    bool born = (x->stx_mask & STATX_BTIME) && (object[1] || object[2]);
    return born ? hash_object(object, sizeof object) : object_of_handle(fd, name);
}

/* --- stat --- */

int state_look(int fd, const char *name, int flags, struct stat *st, uint32_t *object)
{
    struct statx x;
    unsigned want = STATX_TYPE | STATX_MODE | STATX_UID | STATX_GID | STATX_SIZE | STATX_MTIME | STATX_CTIME |
                    STATX_NLINK | STATX_BLOCKS | (object ? STATX_INO | STATX_BTIME : 0);
    if (statx(fd, name ? name : "", flags | AT_NO_AUTOMOUNT | (name ? 0 : AT_EMPTY_PATH), want, &x))
        return -errno;
    *st = (struct stat){
        .st_dev = makedev(x.stx_dev_major, x.stx_dev_minor),
        .st_mode = x.stx_mode,
        .st_uid = x.stx_uid,
        .st_gid = x.stx_gid,
        .st_nlink = x.stx_nlink,
        .st_blocks = (blkcnt_t)x.stx_blocks,
        .st_size = (off_t)x.stx_size,
        .st_mtim = {.tv_sec = x.stx_mtime.tv_sec, .tv_nsec = x.stx_mtime.tv_nsec},
        .st_ctim = {.tv_sec = x.stx_ctime.tv_sec, .tv_nsec = x.stx_ctime.tv_nsec},
    };
    if (object)
        *object = S_ISREG(x.stx_mode) ? object_of(fd, name, &x) : 0;
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

struct file_state state_from(const struct stat *st, uint32_t object)
{
    return (struct file_state){
        .size = st->st_size > 0 ? (uint64_t)st->st_size : 0,
        .mtime = state_time(st->st_mtim),
        .ctime = state_time(st->st_ctim),
        .mode = st->st_mode & 07777,
        .uid = st->st_uid,
        .gid = st->st_gid,
        .links = (uint32_t)st->st_nlink,
        .object = object,
    };
}

struct file_state state_like(const struct file_state *before, bool acls, int fd, const char *name,
                             const struct stat *st, uint32_t object)
{
    struct stat limited = *st;
    bool same = before->ctime == state_time(st->st_ctim);
    if (acls && !same && before->ctime)
        state_limit_mode(fd, name, &limited, NULL);
    struct file_state state = state_from(&limited, object);
    if (acls && same)
        state.mode = before->mode;
    return state;
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
    return explained && before->object && before->object == now->object ? STATE_EXCUSED : STATE_CTIME;
}
