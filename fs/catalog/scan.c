/* Bring a catalog up to date: scan what changed, write a new file if it makes a difference, put it in place.
 *
 * The file is written beside the old one and renamed, without fsync: whatever a crash of the machine leaves there does
 * not fit its checksum, or is the old one, and a catalog can be made again. If the source is as it was, only the time
 * of the scan is new, and the header alone, which lies in one sector, is written in place. */
#include "fs/catalog/scan.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/catalog/crawl.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>

enum { SETTLE_NS = 2000000000 }; /* clocks and time stamps are coarse: a later change may have the same mtime */

static int fail(struct str *why, int error, const char *what, const char *path)
{
    str_addf(why, "%s %s: %s", what, path, strerror(-error));
    return error;
}

/* ---- the catalog of before ---- */

static struct catalog *open_before(const char *path)
{
    struct catalog *old = NULL;
    int error = catalog_open(path, &old);
    if (error == -EBADMSG)
        log_warning("catalog %s: damaged, or of another version: built anew", path);
    else if (error && error != -ENOENT)
        log_warning("open catalog %s: %s: built anew", path, strerror(-error));
    return error ? NULL : old;
}

/* Only the time of the scan is new: a header in place of the header. */
static void touch(const struct catalog *old, const char *path, uint64_t scanned)
{
    CLEANUP_FREE char *copy = malloc(old->header->section[PART_DIRECTORIES].offset);
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (!copy || fd < 0) {
        log_warning("write catalog %s: %s", path, strerror(copy ? errno : ENOMEM));
        return;
    }
    memcpy(copy, old->header, old->header->section[PART_DIRECTORIES].offset);
    struct format_header *header = (void *)copy;
    header->scanned = scanned;
    header->checksum = format_checksum(copy);
    ssize_t n = pwrite(fd, header, sizeof *header, 0);
    if (n != (ssize_t)sizeof *header)
        log_warning("write catalog %s: %s", path, strerror(n < 0 ? errno : EIO));
}

static bool same_catalog(const struct catalog *a, const struct catalog *b)
{
    return memcmp(catalog_digest(a), catalog_digest(b), sizeof *catalog_digest(a)) == 0 &&
           memcmp(a->scan, b->scan, a->directories * sizeof *a->scan) == 0 &&
           memcmp(catalog_notes(a), catalog_notes(b), sizeof *catalog_notes(a)) == 0;
}

/* ---- the new file ---- */

/* One name for all, so that killed scans do not pile up files; its lock keeps two scans apart. */
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

/* Put `name` in the place of `path`, unless that has the same content: then it gets the time of this scan. */
static int install(const char *name, const char *path, struct catalog **old, uint64_t scanned, struct catalog **catalog)
{
    struct catalog *new;
    int error = catalog_open(name, &new);
    if (error)
        return error;
    if (*old && same_catalog(*old, new)) {
        catalog_close(new);
        unlink(name);
        touch(*old, path, scanned);
        *catalog = steal_pointer(*old);
        return 0;
    }
    if (rename(name, path)) {
        error = -errno;
        catalog_close(new);
        return error;
    }
    *catalog = new;
    return 0;
}

static int write_new(const char *path, const struct tree_order *order, const struct attributes *attributes,
                     uint64_t scanned, struct catalog **old, struct catalog **catalog, struct str *why)
{
    CLEANUP_STR struct str name = STR_INIT;
    str_addf(&name, "%s.new", path);
    if (name.failed)
        return fail(why, -ENOMEM, "write", path);
    CLEANUP_CLOSE int fd = open_new(name.data);
    if (fd < 0)
        return fail(why, fd, "write", name.data);
    int error = tree_write(fd, order, attributes, scanned);
    if (!error)
        error = install(name.data, path, old, scanned, catalog);
    if (error) {
        unlink(name.data);
        return fail(why, error, "write", name.data);
    }
    return 0;
}

/* ---- scan ---- */

static int write_tree(struct branch *root, const struct attributes *attributes, const char *path, uint64_t scanned,
                      struct catalog **old, struct catalog **catalog, struct str *why)
{
    struct tree_order order;
    int error = tree_order_make(root, &order);
    if (error == -EFBIG)
        str_addf(why,
                 "scan: the source has %" PRIu64 " files, %" PRIu64 " directories and %" PRIu64
                 " symlinks: more than %" PRIu64 " of a kind",
                 order.files, order.directories, order.links, FORMAT_COUNT_MOST);
    else if (error)
        str_addf(why, "scan: %s", strerror(-error));
    else
        error = write_new(path, &order, attributes, scanned, old, catalog, why);
    tree_order_fini(&order);
    return error;
}

static void set_result(struct scan_progress *result, const struct crawl *c)
{
    *result = (struct scan_progress){
        .directories = c->directories, .files = c->files, .bytes = c->bytes, .reused = c->reused};
}

static int scan_tree(struct crawl *c, const char *path, const struct scan_options *options, struct catalog **old,
                     struct catalog **catalog, struct str *why, struct scan_progress *result)
{
    uint64_t scanned = clock_realtime();
    struct branch root;
    branch_init(&root, NULL, "", 0, c->old ? CATALOG_ROOT : 0);
    int error = crawl_run(c, &root, options, why);
    if (!error && c->old && !c->changed) {
        touch(*old, path, scanned);
        *catalog = steal_pointer(*old);
    } else if (!error) {
        error = write_tree(&root, c->attributes, path, scanned, old, catalog, why);
    }
    branch_fini(&root);
    set_result(result, c);
    return error;
}

/* The catalog of before as it is. */
static int take_kept(struct catalog *kept, const struct scan_options *options, struct catalog **catalog,
                     struct str *why, struct scan_progress *result)
{
    *result = (struct scan_progress){
        .directories = catalog_directories(kept),
        .files = catalog_files(kept),
        .bytes = catalog_bytes(kept),
        .reused = catalog_directories(kept),
    };
    if (options->progress && options->progress(options->user, result)) {
        catalog_close(kept);
        return fail(why, -ECANCELED, "scan", "stopped");
    }
    *catalog = kept;
    return 0;
}

int scan_source(int source_fd, const char *path, const struct scan_options *options, struct catalog **catalog,
                struct str *why, struct scan_progress *result)
{
    static const struct scan_options defaults;
    struct scan_progress unwanted;
    options = options ? options : &defaults;
    result = result ? result : &unwanted;
    struct catalog *old = open_before(path);
    if (old && options->rescan == RESCAN_NEVER)
        return take_kept(old, options, catalog, why, result);
    struct attributes attributes;
    struct crawl c = {.source = source_fd, .attributes = &attributes};
    if (old && options->rescan == RESCAN_AUTO) {
        c.old = old;
        c.settled = (int64_t)catalog_scanned(old) - SETTLE_NS;
    }
    int error = attributes_init(&attributes, c.old);
    if (error) {
        str_addf(why, "scan: %s", strerror(-error));
    } else {
        error = scan_tree(&c, path, options, &old, catalog, why, result);
        attributes_fini(&attributes);
    }
    catalog_close(old);
    return error;
}
