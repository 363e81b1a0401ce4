/* The tree of the control mount, and the table of its operations. */
#include "fs/mount/control/inside.h"

#include "fs/base/file.h"

#include <errno.h>
#include <string.h>

static const double FOREVER = 1e9;

static const struct entry entries[] = {
    {"control", INO_CONTROL, S_IFREG | 0600, NULL},
    {"status", INO_STATUS, S_IFREG | 0444, control_status},
    {"metrics", INO_METRICS, S_IFREG | 0444, control_metrics},
    {"samples", INO_SAMPLES, S_IFREG | 0444, NULL},
    {"samples.d", INO_SAMPLES_D, S_IFDIR | 0555, NULL},
    {"nodes", INO_NODES, S_IFREG | 0444, control_nodes},
    {"node", INO_NODE, S_IFREG | 0444, control_node},
    {"errors", INO_ERRORS, S_IFREG | 0444, control_errors},
    {"plan", INO_PLAN, S_IFDIR | 0555, NULL},
};
enum { ENTRIES = sizeof entries / sizeof entries[0] };

static const struct entry root = {"", INO_ROOT, S_IFDIR | 0555, NULL};

static struct control *control_of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

const struct entry *control_entry(uint64_t ino)
{
    if (ino == INO_ROOT)
        return &root;
    for (size_t i = 0; i < ENTRIES; i++)
        if (entries[i].ino == ino)
            return &entries[i];
    return NULL;
}

struct samples *control_list(struct control *control, uint64_t ino)
{
    if (!control_filled(control))
        return NULL;
    return ino == INO_SAMPLES ? samples_table_find(control->samples, "all") : lists_find(control->samples, ino);
}

static void init(void *userdata, struct fuse_conn_info *conn)
{
    (void)userdata;
    /* Parts of one direct read must come in order, for the first one runs the request. Lists never change. */
    conn->want &= ~(unsigned)(FUSE_CAP_ASYNC_DIO | FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_SPLICE_READ |
                              FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE | FUSE_CAP_READDIRPLUS);
}

static struct timespec as_timespec(uint64_t nanoseconds)
{
    return (struct timespec){(time_t)(nanoseconds / 1000000000), (long)(nanoseconds % 1000000000)};
}

static void stat_base(const struct control *control, uint64_t ino, mode_t mode, uint64_t time, struct stat *st)
{
    *st = (struct stat){
        .st_ino = ino,
        .st_mode = mode,
        .st_nlink = S_ISDIR(mode) ? (ino == INO_ROOT ? 4 : 2) : 1,
        .st_uid = control->config.mount->owner_uid,
        .st_gid = control->config.mount->owner_gid,
        .st_blksize = 128 << 10,
        .st_atim = as_timespec(time),
        .st_mtim = as_timespec(time),
        .st_ctim = as_timespec(time),
    };
}

void control_stat_file(const struct control *control, uint64_t ino, off_t size, struct stat *st)
{
    stat_base(control, ino, S_IFREG | 0444, catalog_scanned(control->config.catalog), st);
    st->st_size = size;
    st->st_blocks = (st->st_size + 511) / 512;
}

static void stat_list(const struct control *control, uint64_t ino, struct samples *list, struct stat *st)
{
    control_stat_file(control, ino, (off_t)samples_text_length(list), st);
}

/* What is generated has the size 0, as in /proc: a size that is too small by the time of the read would make cp(1) and
 * others cut the end off. */
static int stat_inode(struct control *control, uint64_t ino, struct stat *st)
{
    const struct entry *entry = control_entry(ino);

    if (entry && ino != INO_SAMPLES) {
        stat_base(control, ino, entry->mode, clock_realtime(), st);
        return 0;
    }
    if (is_request_ino(ino)) {
        int error = files_size(control, ino, &st->st_size);
        if (!error)
            control_stat_file(control, ino, st->st_size, st);
        return error;
    }
    struct samples *list = control_list(control, ino);
    if (!list)
        return control_filled(control) ? -ESTALE : -EAGAIN;
    stat_list(control, ino, list, st);
    samples_put(list);
    return 0;
}

static double stat_timeout(uint64_t ino)
{
    const struct entry *entry = control_entry(ino);

    return entry && (entry->generate || ino == INO_CONTROL) ? 0 : FOREVER;
}

static int lookup_root(struct control *control, const char *name, struct fuse_entry_param *e)
{
    for (size_t i = 0; i < ENTRIES; i++)
        if (strcmp(entries[i].name, name) == 0) {
            e->ino = entries[i].ino;
            e->attr_timeout = stat_timeout(e->ino);
            e->entry_timeout = FOREVER;
            return stat_inode(control, e->ino, &e->attr);
        }
    return -ENOENT;
}

/* The name is asked for again each time, for it may be another list by then. */
static int lookup_list(struct control *control, const char *name, struct fuse_entry_param *e)
{
    struct samples *list = control_filled(control) ? samples_table_find(control->samples, name) : NULL;

    if (!list)
        return control_filled(control) ? -ENOENT : -EAGAIN;
    e->ino = list_ino(name, list);
    e->attr_timeout = FOREVER;
    stat_list(control, e->ino, list, &e->attr);
    samples_put(list);
    return 0;
}

static void lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct control *control = control_of(req);
    struct fuse_entry_param e = {0};
    int error = parent == INO_ROOT        ? lookup_root(control, name, &e)
                : parent == INO_SAMPLES_D ? lookup_list(control, name, &e)
                : parent == INO_PLAN      ? files_lookup(req, name, &e)
                                          : -ENOTDIR;

    if (error)
        fuse_reply_err(req, -error);
    else
        fuse_reply_entry(req, &e);
}

/* Of a handle that another server gave out. */
static bool stale(const struct control *control, fuse_ino_t ino, const struct fuse_file_info *fi)
{
    return fi && stat_timeout(ino) == 0 && handles_check(control->handles, fi->fh) != 0;
}

static void getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct control *control = control_of(req);
    struct stat st;
    int error = stale(control, ino, fi) ? -ESTALE : stat_inode(control, ino, &st);

    if (error)
        fuse_reply_err(req, -error);
    else
        fuse_reply_attr(req, &st, stat_timeout(ino));
}

/* Truncation of `control`, and its times, mean nothing and are accepted. */
static void setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int set, struct fuse_file_info *fi)
{
    (void)attr;
    if (ino != INO_CONTROL)
        fuse_reply_err(req, EROFS);
    else if (set & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))
        fuse_reply_err(req, EPERM);
    else
        getattr(req, ino, fi);
}

/* A listing that is being written into a buffer; entries before `skip` have been given already. */
struct listing {
    fuse_req_t req;
    struct str *buffer;
    size_t room;
    off_t at, skip;
};

static bool add_name(struct listing *list, const char *name, uint64_t ino, mode_t mode)
{
    struct stat st = {.st_ino = ino, .st_mode = mode};

    if (list->at++ < list->skip)
        return true;
    size_t n = fuse_add_direntry(list->req, NULL, 0, name, NULL, 0);
    char *end = n <= list->room - list->buffer->length ? str_reserve(list->buffer, n) : NULL;
    if (!end)
        return false;
    fuse_add_direntry(list->req, end, n, name, &st, list->at);
    list->buffer->length += n;
    return true;
}

static void add_root(struct listing *list)
{
    for (size_t i = 0; i < ENTRIES; i++)
        if (!add_name(list, entries[i].name, entries[i].ino, entries[i].mode))
            return;
}

static void add_lists(struct listing *list, struct control *control)
{
    enum { UNKNOWN = 0xffffffff }; /* an inode number that libfuse uses for it: making a list for it is too dear */
    CLEANUP_STR struct str names = STR_INIT;

    if (!control_filled(control) || samples_table_names(control->samples, &names) != 0)
        return;
    for (size_t at = 0; at < names.length; at += strlen(names.data + at) + 1)
        if (!add_name(list, names.data + at, UNKNOWN, S_IFREG))
            return;
}

static void readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
    CLEANUP_STR struct str buffer = STR_INIT;
    struct listing list = {.req = req, .buffer = &buffer, .room = size, .skip = offset};

    (void)fi;
    if (add_name(&list, ".", ino, S_IFDIR) && add_name(&list, "..", INO_ROOT, S_IFDIR)) {
        if (ino == INO_ROOT)
            add_root(&list);
        else if (ino == INO_SAMPLES_D)
            add_lists(&list, control_of(req));
    }
    fuse_reply_buf(req, buffer.data, buffer.length);
}

static void refuse_name(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    (void)parent, (void)name;
    fuse_reply_err(req, EROFS);
}

static void refuse_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device)
{
    (void)mode, (void)device;
    refuse_name(req, parent, name);
}

static void refuse_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    (void)mode;
    refuse_name(req, parent, name);
}

static void refuse_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
    (void)target;
    refuse_name(req, parent, name);
}

static void refuse_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t to, const char *new_name,
                          unsigned flags)
{
    (void)to, (void)new_name, (void)flags;
    refuse_name(req, parent, name);
}

static void refuse_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
    (void)ino;
    refuse_name(req, parent, name);
}

static void refuse_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi)
{
    (void)mode, (void)fi;
    refuse_name(req, parent, name);
}

/* Python asks each file that it opens whether it is a terminal. */
static void refuse_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned command, void *argument, struct fuse_file_info *fi,
                         unsigned flags, const void *in, size_t in_length, size_t out_length)
{
    (void)ino, (void)command, (void)argument, (void)fi, (void)flags, (void)in, (void)in_length, (void)out_length;
    fuse_reply_err(req, ENOTTY);
}

const struct fuse_lowlevel_ops control_ops = {
    .init = init,
    .lookup = lookup,
    .getattr = getattr,
    .setattr = setattr,
    .readdir = readdir,
    .open = control_open,
    .read = control_read,
    .write = control_write,
    .release = control_release,
    .fsync = control_fsync,
    .ioctl = refuse_ioctl,
    .create = refuse_create,
    .mknod = refuse_mknod,
    .mkdir = refuse_mkdir,
    .symlink = refuse_symlink,
    .link = refuse_link,
    .rename = refuse_rename,
    .unlink = refuse_name,
    .rmdir = refuse_name,
};
