/* Looks at the files of a directory whose names are reused from the previous catalog.
 *
 * The directory is unchanged, so its names are; but a file can have been rewritten in place. The files are divided
 * into batches, which any thread looks at. The thread that finishes the last batch gives the branch its records: those
 * of the previous catalog, which are only copied if one has changed. If a file is missing, the directory is
 * listed after all. */
#include "fs/catalog/crawl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 64 };

struct batch {
    struct crawl_job job;
    struct recheck *recheck;
    uint32_t from, to;
};

struct recheck {
    struct branch *branch;
    int fd;
    atomic_uint left;     /* unfinished batches, plus one while they are being queued */
    atomic_bool differs;  /* some record differs */
    atomic_bool vanished; /* some file is missing, is no regular file any more, or cannot be looked at */
    atomic_uint_fast64_t files, bytes;
    struct format_file *file; /* becomes the branch's memory: the arrays of records */
    struct format_seen *seen;
    int64_t *version;
    bool *changed; /* per file: these arrays have its record; otherwise the previous catalog has it */
    struct batch batch[];
};

static bool is_due(const struct crawl *c, const struct branch *n, uint32_t i)
{
    if (c->looks && !(c->looked && c->looked[n->file - c->old->file + i]))
        return true;
    return n->file[i].mtime >= c->settled || n->seen[i].ctime >= c->settled;
}

bool recheck_is_due(const struct crawl *c, const struct branch *n)
{
    for (uint32_t i = 0; i < n->files; i++)
        if (is_due(c, n, i))
            return true;
    return false;
}

/* --- one batch --- */

static int look_at_file(struct crawl_worker *w, struct recheck *r, uint32_t i)
{
    struct crawl *c = w->crawl;
    const struct branch *b = r->branch;
    struct format_file file = b->file[i];
    uint32_t old = (uint32_t)(r->branch->file - c->old->file) + i;
    struct stat st;
    int flags = AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC; /* bypass caches of network filesystems */
    uint32_t object = 0;
    const char *name = catalog_string(c->old, file.name);
    int error = look(c, r->fd, name, flags, &st, &object);
    if (!error && !S_ISREG(st.st_mode))
        error = -ENOENT;
    if (error)
        return error;
    struct look_result found = look_judge(c, r->fd, name, &old, object, &st);
    const struct file_state *now = &found.state;
    file.size = now->size;
    file.mtime = now->mtime;
    const struct format_seen seen = {now->ctime, (uint64_t)st.st_blocks, now->links, now->object};
    error = attributes_id(c->attributes, &w->memory, &st, &file.attribute);
    if (error || (memcmp(&file, &b->file[i], sizeof file) == 0 && memcmp(&seen, &b->seen[i], sizeof seen) == 0 &&
                  found.version == b->version[i]))
        return error;
    r->file[i] = file;
    r->seen[i] = seen;
    r->version[i] = found.version;
    r->changed[i] = true;
    return 0;
}

static void look_at_batch(struct crawl_worker *w, struct recheck *r, uint32_t from, uint32_t to)
{
    struct crawl *c = w->crawl;
    uint64_t bytes = 0;
    for (uint32_t i = from; i < to && !atomic_load_explicit(&c->stop, memory_order_relaxed); i++) {
        int error = is_due(c, r->branch, i) ? look_at_file(w, r, i) : 0;
        if (error == -ENOMEM)
            crawl_fail(c, error, "scan: %s", strerror(ENOMEM));
        if (error) {
            atomic_store(&r->vanished, true);
            return;
        }
        if (r->changed[i])
            atomic_store(&r->differs, true);
        bytes += r->changed[i] ? r->file[i].size : r->branch->file[i].size;
    }
    atomic_fetch_add(&r->files, to - from);
    atomic_fetch_add(&r->bytes, bytes);
    atomic_fetch_add(&c->files, to - from);
    atomic_fetch_add(&c->bytes, bytes);
}

/* --- the end --- */

static void recheck_free(struct recheck *r)
{
    free(r->file);
    free(r->changed);
    if (r->fd >= 0)
        close(r->fd);
    free(r);
}

static void use_records(struct crawl *c, struct recheck *r)
{
    struct branch *n = r->branch;
    if (!atomic_load(&r->differs))
        return;
    for (uint32_t i = 0; i < n->files; i++) {
        if (r->changed[i])
            continue;
        r->file[i] = n->file[i];
        r->seen[i] = n->seen[i];
        r->version[i] = n->version[i];
    }
    n->own = r->file;
    n->file = r->file;
    n->seen = r->seen;
    n->version = r->version;
    r->file = NULL;
    atomic_store(&c->changed, true);
}

/* List the directory after all, without reused names. */
static void list_again(struct crawl_worker *w, struct branch *n, int fd)
{
    branch_leave(w->crawl, n);
    int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = again < 0 ? -errno : 0;
    close(fd);
    if (!error) {
        listing_start(w, n, again);
    } else if (branch_is_fatal(error)) {
        branch_fail(w->crawl, n, error);
    } else {
        branch_unreadable(w->crawl, n, error);
        atomic_fetch_add(&w->crawl->directories, 1);
    }
}

static void recheck_finish(struct crawl_worker *w, struct recheck *r)
{
    struct crawl *c = w->crawl;
    struct branch *n = r->branch;
    int fd = r->fd;
    if (atomic_load(&c->stop)) {
        recheck_free(r);
        return;
    }
    r->fd = -1;
    if (atomic_load(&r->vanished)) {
        atomic_fetch_sub(&c->files, atomic_load(&r->files));
        atomic_fetch_sub(&c->bytes, atomic_load(&r->bytes));
        recheck_free(r);
        list_again(w, n, fd);
        return;
    }
    use_records(c, r);
    recheck_free(r);
    branch_keep(c, n, fd);
    crawl_push_children(c, n);
}

static void recheck_drop(struct crawl_worker *w, struct recheck *r)
{
    if (atomic_fetch_sub(&r->left, 1) == 1)
        recheck_finish(w, r);
}

static void batch_run(struct crawl_worker *w, struct crawl_job *job)
{
    struct batch *batch = (struct batch *)job;
    look_at_batch(w, batch->recheck, batch->from, batch->to);
    recheck_drop(w, batch->recheck);
}

/* --- the begin --- */

static struct recheck *recheck_make(struct branch *n, int fd, uint32_t batches)
{
    struct recheck *r = calloc(1, sizeof *r + batches * sizeof r->batch[0]);
    size_t files = n->files;
    if (!r)
        return NULL;
    r->file = malloc(files * (sizeof *r->file + sizeof *r->seen + sizeof *r->version));
    r->changed = calloc(files, sizeof *r->changed);
    r->fd = -1;
    if (!r->file || !r->changed) {
        recheck_free(r);
        return NULL;
    }
    r->seen = (void *)(r->file + files);
    r->version = (void *)(r->seen + files);
    r->branch = n;
    r->fd = fd;
    atomic_store(&r->left, batches);
    return r;
}

void recheck_start(struct crawl_worker *w, struct branch *n, int fd)
{
    uint32_t files = n->files, batches = files / BATCH + (files % BATCH > 0);
    struct recheck *r = recheck_make(n, fd, batches);
    if (!r) {
        close(fd);
        crawl_fail(w->crawl, -ENOMEM, "scan: %s", strerror(ENOMEM));
        return;
    }
    for (uint32_t i = 0; i < batches; i++) {
        uint32_t from = i * BATCH;
        r->batch[i] = (struct batch){{.run = batch_run}, r, from, files - from < BATCH ? files : from + BATCH};
        if (i > 0)
            crawl_push_job(w->crawl, &r->batch[i].job);
    }
    batch_run(w, &r->batch[0].job);
}
