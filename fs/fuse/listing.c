/* Directory listings by place: "." is 0, ".." is 1, child k is k + 2. The offset of an entry is the place after it, so
 * that any server can continue a listing from any entry. `.dealfs` is never listed: a loader that takes each directory
 * for a class must not find it. */
#include "fs/fuse/data-inside.h"

#include "fs/base/cleanup.h"

#include <string.h>

enum { FIRST_ENTRIES = 64, MANY_LOOKUPS = 16, THOROUGH = 1024 };

struct dir_listing {
    fuse_req_t req;
    const struct data_mount *mount;
    fuse_ino_t directory;
    bool plus;
    uint64_t whole; /* entries up to this place have attributes: the kernel creates inodes for them */
    char *buffer;
    size_t size, used;
};

static int place_inode(const struct dir_listing *l, uint64_t place, fuse_ino_t *ino, const char **name)
{
    const struct catalog *c = l->mount->catalog;
    bool control = l->directory == data_control_ino(l->mount);
    if (place == 0) {
        *name = ".";
        *ino = l->directory;
        return 0;
    }
    if (place == 1) {
        *name = "..";
        *ino = control ? CATALOG_ROOT : catalog_parent(c, l->directory);
        return 0;
    }
    uint64_t child;
    int error = control ? -ENOENT : catalog_child(c, l->directory, place - 2, &child);
    if (error)
        return error;
    size_t length;
    *ino = child;
    *name = catalog_name(c, child, &length);
    return 0;
}

/* -ENOSPC: the buffer is full. */
static int listing_add(struct dir_listing *l, uint64_t place)
{
    fuse_ino_t ino;
    const char *name;
    struct fuse_entry_param e = {.attr_timeout = DATA_FOREVER, .entry_timeout = DATA_FOREVER};
    int error = place_inode(l, place, &ino, &name);
    if (!error)
        error = data_stat(l->mount, ino, &e.attr);
    if (error)
        return error;
    e.generation = data_generation(l->mount, ino);
    e.ino = place < 2 || place >= l->whole ? 0 : ino; /* no dentries for "." and ".." */
    size_t room = l->size - l->used, need;
    char *at = l->buffer + l->used;
    if (l->plus)
        need = fuse_add_direntry_plus(l->req, at, room, name, &e, (off_t)place + 1);
    else
        need = fuse_add_direntry(l->req, at, room, name, &e.attr, (off_t)place + 1);
    if (need > room)
        return -ENOSPC;
    l->used += need;
    return 0;
}

static void listing_reply(struct dir_listing *l, off_t offset)
{
    l->mount = fuse_req_userdata(l->req);
    struct stat st;
    int error = data_stat(l->mount, l->directory, &st);
    if (!error && !S_ISDIR(st.st_mode))
        error = -ENOTDIR;
    if (!error && offset < 0)
        error = -EINVAL;
    CLEANUP_FREE char *buffer = error ? NULL : malloc(l->size);
    l->buffer = buffer;
    if (!error && !buffer)
        error = -ENOMEM;
    uint64_t place = (uint64_t)offset;
    while (!error)
        error = listing_add(l, place++);
    /* end of the directory, or a full buffer; an empty reply means the end */
    if (error == -ENOENT || (error == -ENOSPC && l->used > 0))
        fuse_reply_buf(l->req, l->buffer, l->used);
    else
        fuse_reply_err(l->req, error == -ENOSPC ? EINVAL : -error);
}

void listing_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
    (void)fi;
    listing_reply(&(struct dir_listing){.req = req, .directory = ino, .size = size}, offset);
}

/* Entries with attributes cost the kernel ten times as much as names, but a single lookup costs ten times more again.
 * So the first entries of a directory get attributes, the others do not. If many names are looked up nevertheless, the
 * next directories are listed with attributes. */
static bool is_thorough(struct data_mount *m, off_t offset)
{
    if (atomic_exchange_explicit(&m->lookups, 0, memory_order_relaxed) >= MANY_LOOKUPS)
        atomic_store_explicit(&m->thorough, THOROUGH, memory_order_relaxed);
    uint32_t left = atomic_load_explicit(&m->thorough, memory_order_relaxed);
    if (left && offset == 0)
        atomic_compare_exchange_strong_explicit(&m->thorough, &left, left - 1, memory_order_relaxed,
                                                memory_order_relaxed);
    return left > 0;
}

void listing_count_lookup(struct data_mount *m)
{
    if (atomic_load_explicit(&m->lookups, memory_order_relaxed) < MANY_LOOKUPS)
        atomic_fetch_add_explicit(&m->lookups, 1, memory_order_relaxed);
}

void listing_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
    (void)fi;
    uint64_t whole = is_thorough(fuse_req_userdata(req), offset) ? UINT64_MAX : FIRST_ENTRIES;
    listing_reply(&(struct dir_listing){.req = req, .directory = ino, .size = size, .plus = true, .whole = whole},
                  offset);
}
