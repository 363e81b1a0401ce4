/* What crawling threads do with a directory: report failures, open it, keep it open for its children. */
#include "fs/base/beneath.h"
#include "fs/base/cleanup.h"
#include "fs/base/log.h"
#include "fs/catalog/crawl.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

bool branch_is_fatal(int error)
{
    return error == -ENOMEM || error == -EMFILE || error == -ENFILE;
}

/* A path for a line of the log; of a very long path only its end. */
static void add_path(struct str *line, const struct branch *n)
{
    enum { MOST = 1024 };
    if (!n->parent) {
        str_adds(line, "scan the source");
        return;
    }
    CLEANUP_FREE char *path = branch_path(n);
    size_t length = path ? strlen(path) : 0, skipped = length > MOST ? length - MOST : 0;
    str_adds(line, skipped ? "scan ..." : "scan ");
    str_add_printable(line, path ? path + skipped : "?", path ? length - skipped : 1);
}

void branch_fail(struct crawl *c, const struct branch *n, int error)
{
    CLEANUP_STR struct str line = STR_INIT;
    add_path(&line, n);
    crawl_fail(c, error, "%s: %s", line.failed ? "scan" : line.data, strerror(-error));
}

void branch_unreadable(struct crawl *c, struct branch *n, int error)
{
    CLEANUP_STR struct str line = STR_INIT;
    add_path(&line, n);
    log_limited(LOG_LEVEL_WARNING, 100, "%s: %s", line.failed ? "scan" : line.data, strerror(-error));
    n->unreadable = true;
    n->lacking = error != -EACCES && error != -EPERM;
    atomic_store(&c->changed, true);
}

/* --- directories that stay open for their children --- */

void branch_keep(struct crawl *c, struct branch *n, int fd)
{
    if (fd < 0)
        return;
    if (n->directories == 0) {
        close(fd);
        return;
    }
    if (atomic_fetch_sub(&c->spare_fds, 1) <= 0) {
        atomic_fetch_add(&c->spare_fds, 1);
        close(fd);
        return;
    }
    n->fd = fd;
    atomic_store(&n->opening, n->directories);
}

/* A child no longer needs its parent's descriptor. */
void branch_release_parent(struct crawl *c, struct branch *n)
{
    struct branch *parent = n->parent;
    if (!parent || parent->fd < 0 || atomic_fetch_sub(&parent->opening, 1) > 1)
        return;
    close(parent->fd);
    parent->fd = -1;
    atomic_fetch_add(&c->spare_fds, 1);
}

int branch_open_path(const struct crawl *c, const struct branch *n, int flags)
{
    CLEANUP_FREE char *path = branch_path(n);
    return path ? beneath_open(c->source, path, flags) : -ENOMEM;
}

int branch_open(struct crawl *c, const struct branch *n, int flags)
{
    flags |= O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    if (n->parent && n->parent->fd < 0)
        return branch_open_path(c, n, flags);
    int fd = openat(n->parent ? n->parent->fd : c->source, n->parent ? n->name : ".", flags);
    return fd >= 0 ? fd : -errno;
}

void branch_leave(struct crawl *c, struct branch *n)
{
    free(n->children);
    n->children = NULL;
    n->directories = n->files = n->links = n->specials = n->links_to_files = 0;
    n->hides = false;
    atomic_fetch_sub(&c->directories, 1);
    atomic_fetch_sub(&c->reused, 1);
}
