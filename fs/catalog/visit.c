/* Visits a directory: reuses its entries of the previous catalog, or opens and lists it. */
#include "fs/base/cleanup.h"
#include "fs/catalog/crawl.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

static bool is_vanished(int error)
{
    return error == -ENOENT || error == -ENOTDIR || error == -ELOOP || error == -ESTALE;
}

/* Does a directory have the times of the previous catalog, and did these times come long before that scan? */
static bool has_old_times(const struct crawl *c, const struct branch *n, const struct stat *st)
{
    int64_t mtime = state_time(st->st_mtim), ctime = state_time(st->st_ctim);
    return mtime == catalog_dir(c->old, n->old)->mtime && ctime == c->old->scan[n->old - CATALOG_ROOT].ctime &&
           mtime < c->settled && ctime < c->settled;
}

/* The root is always asked, so that a source without ACLs is asked once. */
static int look_at_branch(struct crawl *c, const struct branch *n, int fd, const char *name, int flags, struct stat *st)
{
    int error = look(c, fd, name, flags, st, NULL);
    if (error)
        return error;
    if (n->parent && n->old && c->reuses && has_old_times(c, n, st))
        st->st_mode = S_IFDIR | c->old->attribute[catalog_dir(c->old, n->old)->attribute].mode;
    else
        look_limit(c, fd, name, st);
    return 0;
}

static int stat_branch(struct crawl *c, const struct branch *n, struct stat *st)
{
    if (!n->parent)
        return look_at_branch(c, n, c->source, NULL, AT_STATX_FORCE_SYNC, st);
    if (n->parent->fd >= 0)
        return look_at_branch(c, n, n->parent->fd, n->name, AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC, st);
    CLEANUP_CLOSE int fd = branch_open_path(c, n, O_PATH);
    return fd >= 0 ? look_at_branch(c, n, fd, NULL, AT_STATX_FORCE_SYNC, st) : fd;
}

static int describe_branch(struct crawl_worker *w, struct branch *n, const struct stat *st)
{
    n->mtime = state_time(st->st_mtim);
    n->ctime = state_time(st->st_ctim);
    return attributes_id(w->crawl->attributes, &w->memory, st, &n->attribute);
}

/* --- reuse --- */

static bool is_unchanged(const struct crawl *c, const struct branch *n, const struct stat *st)
{
    return has_old_times(c, n, st) && !(c->old->scan[n->old - CATALOG_ROOT].flags & SCAN_UNREADABLE);
}

static int take_children(struct crawl *c, struct branch *n)
{
    const struct format_directory *d = catalog_dir(c->old, n->old);
    if (d->directories == 0)
        return 0;
    n->children = malloc(d->directories * sizeof *n->children);
    if (!n->children)
        return -ENOMEM;
    for (uint32_t i = 0; i < d->directories; i++) {
        uint64_t name = catalog_dir(c->old, d->first_directory + i)->name;
        branch_init(&n->children[i], n, catalog_string(c->old, name), name_length(name), d->first_directory + i);
    }
    n->directories = d->directories;
    return 0;
}

static void take_entries(struct crawl *c, struct branch *n)
{
    const struct format_directory *d = catalog_dir(c->old, n->old);
    const struct format_scan *s = &c->old->scan[n->old - CATALOG_ROOT];
    n->file = c->old->file + d->first_file;
    n->seen = c->old->seen + d->first_file;
    n->version = c->old->version + d->first_file;
    n->files = d->files;
    n->link = c->old->link + d->first_link;
    n->links = d->links;
    n->names = c->old->names;
    n->specials = s->specials;
    n->links_to_files = s->links_to_files;
    n->hides = s->flags & SCAN_HIDDEN;
    if (n->attribute != d->attribute)
        atomic_store(&c->changed, true);
    atomic_fetch_add(&c->directories, 1);
    atomic_fetch_add(&c->reused, 1);
}

/* False: it could not be opened, and nothing was reused. */
static bool take_over(struct crawl_worker *w, struct branch *n, const struct stat *st, int *fd)
{
    struct crawl *c = w->crawl;
    int error = describe_branch(w, n, st);
    if (!error)
        error = take_children(c, n);
    if (error) {
        branch_fail(c, n, error);
        return true;
    }
    take_entries(c, n);
    bool due = recheck_is_due(c, n);
    if (due || n->directories > 0)
        *fd = branch_open(c, n, O_PATH);
    if (!due || *fd >= 0) /* without the descriptor, the children are opened by path */
        return true;
    branch_leave(c, n);
    return false;
}

/* Complete a directory that was reused unchanged. */
static void finish_taken(struct crawl *c, struct branch *n, int fd)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < n->files; i++)
        bytes += n->file[i].size;
    atomic_fetch_add(&c->files, n->files);
    atomic_fetch_add(&c->bytes, bytes);
    branch_keep(c, n, fd);
    crawl_push_children(c, n);
}

/* --- listing --- */

/* The parent lists it, but it cannot be opened: its attributes can still be shown. */
static void cannot_open(struct crawl_worker *w, struct branch *n, int error)
{
    struct crawl *c = w->crawl;
    struct stat st;
    if (branch_is_fatal(error) || !n->parent) {
        branch_fail(c, n, error);
        return;
    }
    int looked = is_vanished(error) ? error : stat_branch(c, n, &st);
    n->gone = looked || !S_ISDIR(st.st_mode);
    atomic_store(&c->changed, true);
    if (n->gone)
        return;
    branch_unreadable(c, n, error);
    atomic_fetch_add(&c->directories, 1);
    error = describe_branch(w, n, &st);
    if (error)
        branch_fail(c, n, error);
}

static int open_anew(struct crawl_worker *w, struct branch *n, int *fd)
{
    struct stat st;
    *fd = branch_open(w->crawl, n, O_RDONLY);
    if (*fd < 0)
        return *fd;
    /* before its entries are read: a concurrent change must look like one to the next scan */
    int error = look_at_branch(w->crawl, n, *fd, NULL, 0, &st);
    if (!error)
        error = describe_branch(w, n, &st);
    if (error)
        close(*fd);
    return error;
}

void visit_branch(struct crawl_worker *w, struct branch *n)
{
    struct crawl *c = w->crawl;
    if (atomic_load(&c->stop))
        return;
    struct stat st;
    int fd = -1, error = 0;
    bool taken = n->old && c->reuses && stat_branch(c, n, &st) == 0 && S_ISDIR(st.st_mode) && is_unchanged(c, n, &st) &&
                 take_over(w, n, &st, &fd);
    if (!taken)
        error = open_anew(w, n, &fd);
    if (error)
        cannot_open(w, n, error);
    branch_release_parent(c, n);
    if (taken && recheck_is_due(c, n))
        recheck_start(w, n, fd);
    else if (taken)
        finish_taken(c, n, fd);
    else if (!error)
        listing_start(w, n, fd);
}
