/* The tree of the control mount, and the table of its operations. */
#include "fs/control/control-private.h"
#include "fs/control/control-handles.h"
#include "fs/control/decoded.h"
#include "fs/control/entries.h"
#include "fs/control/jobs.h"
#include "fs/control/lists.h"
#include "fs/control/open.h"
#include "fs/control/plan-files.h"
#include "fs/control/snapshots.h"
#include "fs/fuse/reply.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

enum { READAHEAD = 1 << 20, BACKGROUND = 64 /* waiting READs of streams must not stop other requests */ };

static void tree_init(void *userdata, struct fuse_conn_info *conn)
{
    (void)userdata;
    /* Parts of one direct read must arrive in order, because the first one runs the request. Lists never change. */
    conn->want &= ~(unsigned)(FUSE_CAP_ASYNC_DIO | FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_SPLICE_READ |
                              FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE | FUSE_CAP_READDIRPLUS);
    conn->max_readahead = READAHEAD;
    conn->max_background = conn->congestion_threshold = BACKGROUND;
}

static void stat_list(const struct control *control, uint64_t ino, struct samples *list, struct stat *st)
{
    uint64_t packed = samples_count(list) * (uint64_t)sizeof(struct record);
    bool is_packed = (ino & INO_LIST) && (ino & INO_PACKED);
    entry_stat_file(control, ino, (off_t)(is_packed ? packed : samples_text_length(list)), st);
}

static int stat_inode(struct control *control, uint64_t ino, struct stat *st)
{
    const struct root_entry *entry = entry_of(ino);
    if (is_decoded_ino(ino))
        return decoded_root(control, st);
    if (entry && ino != INO_SAMPLES) {
        entry_stat(control, entry, 0, st);
        return 0;
    }
    CLEANUP_SAMPLES struct samples *list = lists_find(control, ino);
    if (!list)
        return control_filled(control) ? -ESTALE : -EAGAIN;
    stat_list(control, ino, list, st);
    return 0;
}

static double stat_timeout(const struct control *control, uint64_t ino)
{
    const struct root_entry *entry = entry_of(ino);
    if (ino == INO_CONTROL || (entry && entry->names && !control_filled(control)))
        return 0;
    return entry && !entry->names ? FOREVER : entry_timeout(control);
}

/* The kernel looks the name up again each time, so that it knows the size of the file that is opened next. */
static int lookup_generated(fuse_req_t req, const struct root_entry *entry, struct fuse_entry_param *e)
{
    struct reply *text;
    int error = snapshots_get(req, entry, true, &text);
    if (error)
        return error;
    e->ino = entry->ino;
    e->attr_timeout = stat_timeout(control_of(req), entry->ino);
    entry_stat(control_of(req), entry, (off_t)text->text.length, &e->attr);
    reply_put(text);
    return 0;
}

static int lookup_root(fuse_req_t req, const char *name, struct fuse_entry_param *e)
{
    struct control *control = control_of(req);
    for (size_t i = 0; i < ROOT_ENTRIES; i++)
        if (strcmp(root_entries[i].name, name) == 0) {
            if (root_entries[i].generate)
                return lookup_generated(req, &root_entries[i], e);
            e->ino = root_entries[i].ino;
            e->attr_timeout = stat_timeout(control, e->ino);
            e->entry_timeout = FOREVER;
            return stat_inode(control, e->ino, &e->attr);
        }
    return -ENOENT;
}

/* The kernel looks the name up again each time, since it may be another list by then. */
static int lookup_list(struct control *control, const char *name, struct fuse_entry_param *e)
{
    bool packed;
    CLEANUP_SAMPLES struct samples *list = control_filled(control) ? lists_named(control, name, &packed) : NULL;
    if (!list)
        return control_filled(control) ? -ENOENT : -EAGAIN;
    e->ino = list_ino(name, list, packed);
    e->attr_timeout = entry_timeout(control);
    stat_list(control, e->ino, list, &e->attr);
    return 0;
}

static void look_up_now(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct control *control = control_of(req);
    struct fuse_entry_param e = {0};
    int error = parent == INO_ROOT        ? lookup_root(req, name, &e)
                : parent == INO_SAMPLES_D ? lookup_list(control, name, &e)
                                          : -ENOTDIR;
    if (error)
        fuse_reply_err(req, -error);
    else
        fuse_reply_entry(req, &e);
}

static void run_lookup(struct request_job *job)
{
    look_up_now(job->req, job->ino, job->name);
}

/* Creating a list, and computing its length as text, reads every name: so a worker does it. */
static void tree_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    if (parent == INO_PLAN)
        plan_files_lookup(req, name);
    else if (is_decoded_ino(parent))
        decoded_lookup(req, parent, name);
    else if (parent == INO_SAMPLES_D || (parent == INO_ROOT && strcmp(name, "samples") == 0))
        job_defer(req, &(struct request_job){LIST_JOB, .run = run_lookup, .ino = parent}, name);
    else
        look_up_now(req, parent, name);
}

/* Was the handle created by another server, and is it needed for reading? */
static bool is_stale(const struct control *control, fuse_ino_t ino, const struct fuse_file_info *fi)
{
    const struct root_entry *entry = entry_of(ino);
    bool handled = entry && (entry->generate || ino == INO_CONTROL);
    return fi && handled && handles_check(control->handles, fi->fh) != 0;
}

static void stat_now(fuse_req_t req, fuse_ino_t ino)
{
    struct control *control = control_of(req);
    struct stat st;
    int error = stat_inode(control, ino, &st);
    if (error)
        fuse_reply_err(req, -error);
    else
        fuse_reply_attr(req, &st, stat_timeout(control, ino));
}

static void run_getattr(struct request_job *job)
{
    stat_now(job->req, job->ino);
}

static void stat_generated(fuse_req_t req, const struct root_entry *entry)
{
    struct reply *text;
    struct stat st;
    int error = snapshots_get(req, entry, false, &text);
    if (error) {
        fuse_reply_err(req, -error);
        return;
    }
    entry_stat(control_of(req), entry, (off_t)text->text.length, &st);
    fuse_reply_attr(req, &st, stat_timeout(control_of(req), entry->ino));
    reply_put(text);
}

static void tree_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    const struct root_entry *entry = entry_of(ino);
    if (is_stale(control_of(req), ino, fi))
        fuse_reply_err(req, ESTALE);
    else if (is_request_ino(ino))
        plan_files_answer(req, FILE_GETATTR, ino, 0, 0);
    else if (is_decoded_ino(ino))
        decoded_getattr(req, ino);
    else if (is_list_ino(ino))
        job_defer(req, &(struct request_job){LIST_JOB, .run = run_getattr, .ino = ino}, "samples");
    else if (entry && entry->generate)
        stat_generated(req, entry);
    else
        stat_now(req, ino);
}

/* Truncation and times of `control` are accepted without effect. */
static void tree_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int set, struct fuse_file_info *fi)
{
    (void)attr;
    if (ino != INO_CONTROL)
        fuse_reply_err(req, EROFS);
    else if (set & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))
        fuse_reply_err(req, EPERM);
    else
        tree_getattr(req, ino, fi);
}

/* A listing that is written into a buffer; entries before `skip` were listed already. */
struct tree_listing {
    fuse_req_t req;
    struct str *buffer;
    size_t room;
    off_t at, skip;
};

static bool add_name(struct tree_listing *list, const char *name, uint64_t ino, mode_t mode)
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

static void add_root(struct tree_listing *list)
{
    for (size_t i = 0; i < ROOT_ENTRIES; i++)
        if (!add_name(list, root_entries[i].name, root_entries[i].ino, root_entries[i].mode))
            return;
}

static void add_lists(struct tree_listing *list, struct control *control)
{
    /* libfuse's number for an unknown inode: a list is too expensive to create for its inode number */
    enum { UNKNOWN = 0xffffffff };
    CLEANUP_STR struct str names = STR_INIT;
    if (!control_filled(control) || samples_table_names(control->samples, false, &names) != 0)
        return;
    for (size_t at = 0; at < names.length; at += strlen(names.data + at) + 1)
        if (!add_name(list, names.data + at, UNKNOWN, S_IFREG))
            return;
}

static void add_decoded(struct tree_listing *list, const struct control *control, uint64_t ino)
{
    struct decoded_entry entry;
    /* skip listed places without looking at their names */
    uint64_t place = list->skip > list->at ? (uint64_t)(list->skip - list->at) : 0;
    for (list->at += (off_t)place; decoded_child(control, ino, place, &entry); place++)
        if (!entry.name[0])
            list->at++;
        else if (!add_name(list, entry.name, entry.ino, entry.type))
            return;
}

static void tree_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
    CLEANUP_STR struct str buffer = STR_INIT;
    struct tree_listing list = {.req = req, .buffer = &buffer, .room = size, .skip = offset};
    (void)fi;
    if (add_name(&list, ".", ino, S_IFDIR) && add_name(&list, "..", INO_ROOT, S_IFDIR)) {
        if (ino == INO_ROOT)
            add_root(&list);
        else if (ino == INO_SAMPLES_D)
            add_lists(&list, control_of(req));
        else if (is_decoded_ino(ino))
            add_decoded(&list, control_of(req), ino);
    }
    fuse_reply_buf(req, buffer.data, buffer.length);
}

static void refuse_change(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    (void)parent, (void)name;
    fuse_reply_err(req, EROFS);
}

static void refuse_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device)
{
    (void)mode, (void)device;
    refuse_change(req, parent, name);
}

static void refuse_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    (void)mode;
    refuse_change(req, parent, name);
}

static void refuse_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
    (void)target;
    refuse_change(req, parent, name);
}

static void refuse_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t to, const char *new_name,
                          unsigned flags)
{
    (void)to, (void)new_name, (void)flags;
    refuse_change(req, parent, name);
}

static void refuse_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
    (void)ino;
    refuse_change(req, parent, name);
}

static void refuse_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi)
{
    (void)mode, (void)fi;
    refuse_change(req, parent, name);
}

const struct fuse_lowlevel_ops control_ops = {
    .init = tree_init,
    .lookup = tree_lookup,
    .getattr = tree_getattr,
    .setattr = tree_setattr,
    .readdir = tree_readdir,
    .open = control_open,
    .read = control_read,
    .write = control_write,
    .release = control_release,
    .fsync = control_fsync,
    .ioctl = reply_no_ioctl,
    .create = refuse_create,
    .mknod = refuse_mknod,
    .mkdir = refuse_mkdir,
    .symlink = refuse_symlink,
    .link = refuse_link,
    .rename = refuse_rename,
    .unlink = refuse_change,
    .rmdir = refuse_change,
};
