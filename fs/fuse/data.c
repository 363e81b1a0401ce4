/* The data mount.
 *
 * Threads: any; nothing here is written after the start. reads.c answers READs. */
#include "fs/fuse/data.h"

#include "fs/base/cleanup.h"
#include "fs/fuse/data-inside.h"
#include "fs/fuse/reply.h"

#include <string.h>

static void data_init(void *user, struct fuse_conn_info *conn)
{
    const struct data_mount *m = user;
    /* nothing changes, so caches need no invalidation; replies come from memory, so splicing does not help */
    conn->want &= ~(unsigned)(FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_SPLICE_READ |
                              FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE | FUSE_CAP_HANDLE_KILLPRIV |
                              FUSE_CAP_READDIRPLUS_AUTO /* listing.c decides */ | FUSE_CAP_ASYNC_DIO /* reads.h */);
    conn->want |= conn->capable &
                  (FUSE_CAP_ASYNC_READ | FUSE_CAP_CACHE_SYMLINKS | FUSE_CAP_READDIRPLUS | FUSE_CAP_EXPORT_SUPPORT);
    conn->max_background = DATA_BACKGROUND;
    conn->congestion_threshold = DATA_BACKGROUND;
    conn->max_readahead = m->readahead;
}

/* An NFS server that exports the mount asks for "." and "..". */
static int find_name(const struct data_mount *m, fuse_ino_t parent, const char *name, fuse_ino_t *ino)
{
    uint64_t found = 0;
    int error = 0;
    bool control = parent == data_control_ino(m);
    if (strcmp(name, ".") == 0)
        found = parent;
    else if (strcmp(name, "..") == 0)
        found = control ? CATALOG_ROOT : catalog_parent(m->catalog, parent);
    else if (parent == CATALOG_ROOT && strcmp(name, DATA_CONTROL_NAME) == 0)
        found = data_control_ino(m);
    else if (control)
        error = -ENOENT;
    else
        error = catalog_lookup(m->catalog, parent, name, strlen(name), &found);
    *ino = found;
    return error;
}

static void data_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct data_mount *m = fuse_req_userdata(req);
    struct fuse_entry_param e = {.attr_timeout = DATA_FOREVER, .entry_timeout = DATA_FOREVER};
    int error = find_name(m, parent, name, &e.ino);
    listing_count_lookup(m);
    if (!error)
        error = data_stat(m, e.ino, &e.attr);
    e.generation = error ? 0 : data_generation(m, e.ino);
    if (error == -ENOENT) {
        /* inode 0: the kernel caches that the name does not exist */
        e.ino = 0;
        error = 0;
    }
    if (error)
        fuse_reply_err(req, -error);
    else
        fuse_reply_entry(req, &e);
}

static void data_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)fi;
    struct stat st;
    int error = data_stat(fuse_req_userdata(req), ino, &st);
    if (error)
        fuse_reply_err(req, -error);
    else
        fuse_reply_attr(req, &st, DATA_FOREVER);
}

static void data_readlink(fuse_req_t req, fuse_ino_t ino)
{
    const struct data_mount *m = fuse_req_userdata(req);
    if (m->control && ino == data_control_ino(m)) {
        fuse_reply_readlink(req, m->control);
        return;
    }
    size_t length;
    const char *target = catalog_link_target(m->catalog, ino, &length);
    if (target)
        fuse_reply_buf(req, target, length);
    else
        fuse_reply_err(req, EINVAL);
}

/* ENOSYS tells the kernel to do without OPEN, RELEASE, OPENDIR and RELEASEDIR, and to keep its caches. If the operation
 * were missing, libfuse would reply that the file is open. */
static void data_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    (void)fi;
    fuse_reply_err(req, ENOSYS);
}

/* The part of the file that a READ asks for; length 0 at the end of the file. */
static int read_span(const struct data_mount *m, fuse_ino_t ino, size_t size, off_t offset, struct span *span)
{
    if (ino == data_control_ino(m))
        return -EISDIR;
    int error = catalog_ino_file(m->catalog, ino, &span->file);
    if (error)
        return error;
    /* longer READs than negotiated at INIT cannot come, and a short reply would be filled with zeros */
    if (offset < 0 || size > SPAN_BYTES)
        return -EINVAL;
    uint64_t end = catalog_file(m->catalog, span->file).size;
    uint64_t left = (uint64_t)offset < end ? end - (uint64_t)offset : 0;
    span->offset = (uint64_t)offset;
    span->length = (uint32_t)(size < left ? size : left);
    return 0;
}

static void data_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
    const struct data_mount *m = fuse_req_userdata(req);
    struct reads_request request = {.req = req, .size = size, .info = fi};
    int error = read_span(m, ino, size, offset, &request.span);
    if (error || request.span.length == 0) {
        if (error)
            fuse_reply_err(req, -error);
        else
            fuse_reply_buf(req, NULL, 0);
        return;
    }
    reads_begin(m->reads, m->store, &request);
}

static void data_statfs(fuse_req_t req, fuse_ino_t ino)
{
    (void)ino;
    const struct data_mount *m = fuse_req_userdata(req);
    enum { UNIT = 4096 }; /* for both sizes: some programs multiply f_blocks by one, some by the other */
    struct statvfs st = {
        .f_bsize = UNIT,
        .f_frsize = UNIT,
        .f_blocks = catalog_bytes(m->catalog) / UNIT + (catalog_bytes(m->catalog) % UNIT > 0),
        .f_files = catalog_inodes(m->catalog),
        .f_namemax = 255,
    };
    fuse_reply_statfs(req, &st);
}

/* The others are missing on purpose: flush, access, lseek and extended attributes get ENOSYS once and are never sent
 * again. Writes never arrive, because the mount is read-only. */
const struct fuse_lowlevel_ops data_ops = {
    .init = data_init,
    .lookup = data_lookup,
    .getattr = data_getattr,
    .readlink = data_readlink,
    .open = data_open,
    .opendir = data_open,
    .read = data_read,
    .readdir = listing_readdir,
    .readdirplus = listing_readdirplus,
    .statfs = data_statfs,
    .ioctl = reply_no_ioctl,
};
