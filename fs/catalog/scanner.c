/* Updates a catalog: scans what changed, writes a new file if necessary, and puts it in place.
 *
 * The new file is written next to the old one and renamed, without fsync: after a crash of the machine, the file fails
 * its checksum, or is the old one; and a catalog can be made again. If the source is unchanged, only the time of the
 * scan is new: then only the header is written in place, which is within one sector. */
#include "fs/catalog/scanner.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/catalog/crawl.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>

struct scan {
    struct crawl crawl;
    const char *path;
    const struct scan_options *options;
    struct catalog *old; /* NULL: none, or it has become the current catalog */
    struct catalog *new;
    struct str *why;
};

static int scan_fail(struct scan *s, int error, const char *what, const char *path)
{
    return str_fail(s->why, error, "%s %s: %s", what, path, strerror(-error));
}

/* --- the previous catalog --- */

static struct catalog *open_before(const char *path)
{
    struct catalog *old = NULL;
    int error = catalog_open(path, &old);
    if (error == -EBADMSG)
        log_warning("catalog %s: it is damaged, or another version of dealfs wrote it: scanning the whole source",
                    path);
    else if (error && error != -ENOENT)
        log_warning("open catalog %s: %s: scanning the whole source", path, strerror(-error));
    return error ? NULL : old;
}

/* Nothing but the time of the scan is new: overwrite the header. */
static void keep_old(struct scan *s)
{
    const struct catalog *old = s->old;
    size_t bytes = old->header->section[PART_DIRECTORIES].offset;
    CLEANUP_FREE char *copy = malloc(bytes);
    CLEANUP_CLOSE int fd = open(s->path, O_WRONLY | O_CLOEXEC);
    s->new = steal_pointer(s->old);
    if (!copy || fd < 0) {
        log_warning("write catalog %s: %s", s->path, strerror(copy ? errno : ENOMEM));
        return;
    }
    memcpy(copy, old->header, bytes);
    struct format_header *header = (void *)copy;
    header->scanned = (uint64_t)s->crawl.scanned;
    header->checksum = format_checksum(copy);
    ssize_t n = pwrite(fd, header, sizeof *header, 0);
    if (n != (ssize_t)sizeof *header)
        log_warning("write catalog %s: %s", s->path, strerror(n < 0 ? errno : EIO));
}

static bool same_catalog(const struct catalog *a, const struct catalog *b)
{
    return digest_equal(catalog_digest(a), catalog_digest(b)) &&
           memcmp(a->scan, b->scan, a->directories * sizeof *a->scan) == 0 &&
           memcmp(a->version, b->version, a->files * sizeof *a->version) == 0 &&
           memcmp(a->seen, b->seen, a->files * sizeof *a->seen) == 0 &&
           memcmp(catalog_notes(a), catalog_notes(b), sizeof *catalog_notes(a)) == 0;
}

/* --- the new file --- */

/* All scans use the same name, so that killed scans leave only one file; its lock excludes concurrent scans. */
static int open_new(const char *name)
{
    CLEANUP_CLOSE int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct stat opened, named;
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) || fstat(fd, &opened) || stat(name, &named))
        return errno == EWOULDBLOCK ? -EBUSY : -errno;
    if (opened.st_ino != named.st_ino || opened.st_dev != named.st_dev)
        return -EBUSY;
    return ftruncate(fd, 0) ? -errno : steal_fd(fd);
}

/* Replace the old file by `name`, unless their contents are equal. */
static int install_new(struct scan *s, const char *name)
{
    int error = catalog_open(name, &s->new);
    if (error)
        return error;
    if (s->old && same_catalog(s->old, s->new)) {
        catalog_close(s->new);
        unlink(name);
        keep_old(s);
    } else if (rename(name, s->path)) {
        error = -errno;
        catalog_close(s->new);
    }
    return error;
}

static int write_new(struct scan *s, const struct tree_order *order)
{
    CLEANUP_STR struct str name = STR_INIT;
    str_addf(&name, "%s.new", s->path);
    if (name.failed)
        return scan_fail(s, -ENOMEM, "write", s->path);
    CLEANUP_CLOSE int fd = open_new(name.data);
    if (fd < 0)
        return scan_fail(s, fd, "write", name.data);
    int error = tree_write(fd, order, s->crawl.attributes, (uint64_t)s->crawl.scanned);
    if (!error)
        error = install_new(s, name.data);
    if (error) {
        unlink(name.data);
        return scan_fail(s, error, "write", name.data);
    }
    return 0;
}

/* --- scan --- */

static int write_tree(struct scan *s, struct branch *root)
{
    struct tree_order order;
    int error = tree_order_make(root, &order);
    order.notes.acls = s->crawl.acls;
    if (error == -EFBIG)
        str_addf(s->why,
                 "scan: the source has %" PRIu64 " files, %" PRIu64 " directories and %" PRIu64
                 " symlinks: at most %" PRIu64 " of each are supported",
                 order.files, order.directories, order.links, FORMAT_COUNT_MOST);
    else if (error)
        str_addf(s->why, "scan: %s", strerror(-error));
    else
        error = write_new(s, &order);
    tree_order_fini(&order);
    return error;
}

static int scan_tree(struct scan *s)
{
    struct crawl *c = &s->crawl;
    struct branch root;
    branch_init(&root, NULL, "", 0, c->old ? CATALOG_ROOT : 0);
    c->visit = visit_branch;
    int error = crawl_run(c, &root, s->options, s->why);
    if (!error && c->old && !c->changed)
        keep_old(s);
    else if (!error)
        error = write_tree(s, &root);
    branch_fini(&root);
    return error;
}

/* May RESCAN_NEVER use the previous catalog? Its modes may be too wide for other users. */
static bool may_keep(const struct scan *s)
{
    if (!s->crawl.acls || catalog_notes(s->old)->acls)
        return true;
    log_warning("catalog %s: its scan ignored ACLs, which matter with allow_other: scanning the whole source", s->path);
    return false;
}

/* Use the previous catalog unchanged. */
static int take_kept(struct scan *s, struct scan_progress *result)
{
    *result = (struct scan_progress){
        .directories = catalog_directories(s->old),
        .files = catalog_files(s->old),
        .bytes = catalog_bytes(s->old),
        .reused = catalog_directories(s->old),
    };
    if (s->options->progress && s->options->progress(s->options->user, result))
        return scan_fail(s, -ECANCELED, "scan", "stopped");
    s->new = steal_pointer(s->old);
    return 0;
}

/* Determine what of the previous catalog can be trusted. */
static void compare_with_old(struct scan *s)
{
    struct crawl *c = &s->crawl;
    c->old = s->old;
    c->reuses = catalog_notes(s->old)->acls == c->acls;
    c->looks = s->options->rescan == RESCAN_AUTO;
    c->looked = s->options->looked > 0 && c->reuses ? portions_read(s->options->looked, c->old) : NULL;
    for (uint32_t file = 0; c->looked && file < c->old->files; file++)
        c->shared += c->looked[file];
    c->settled = (int64_t)catalog_scanned(c->old) - SETTLE_NS;
}

int scan_source(int source_fd, const char *path, const struct scan_options *options, struct catalog **catalog,
                struct str *why, struct scan_progress *result)
{
    struct attributes attributes;
    struct scan s = {
        .crawl = {.source = source_fd,
                  .attributes = &attributes,
                  .ignores_ctime = options->ignore_ctime,
                  .acls = options->acls,
                  .scanned = (int64_t)clock_realtime()},
        .path = path,
        .options = options,
        .old = open_before(path),
        .why = why,
    };
    int error;
    if (s.old && options->rescan == RESCAN_NEVER && may_keep(&s)) {
        error = take_kept(&s, result);
    } else {
        s.crawl.insists = s.old || options->kept;
        if (s.old && options->rescan != RESCAN_ALWAYS)
            compare_with_old(&s);
        error = attributes_init(&attributes, s.crawl.old);
        if (error) {
            str_addf(why, "scan: %s", strerror(-error));
        } else {
            error = scan_tree(&s);
            attributes_fini(&attributes);
        }
        *result = crawl_progress(&s.crawl);
        free(s.crawl.looked);
    }
    catalog_close(s.old);
    if (!error)
        *catalog = s.new;
    return error;
}
