/* Lists a directory.
 *
 * The thread that visits it reads entries in buffers of 32 KiB. Every full buffer is queued as a chunk; any thread
 * looks at its entries (stat, readlink), in the order in which they were read. So a directory with a million entries
 * keeps all threads busy, and a network filesystem sees the access pattern that it prefetches for. The thread that
 * finishes the last chunk sorts all entries and makes the branch's records. */
#include "fs/catalog/crawl.h"
#include "fs/catalog/entry.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct chunk {
    struct crawl_job job;
    struct chunk *sibling; /* next chunk of the listing */
    struct crawl_listing *listing;
    struct scan_entry *entry;
    size_t entries;
    uint32_t specials, links_to_files;
    bool hides;
    size_t n;
    char raw[]; /* n bytes of struct dirent64 as the kernel returned them; entries point into it */
};

struct crawl_listing {
    struct branch *branch;
    int fd;
    struct chunk *chunks; /* set by the reading thread */
    atomic_uint left;     /* unfinished chunks, plus one while entries are being read */
    atomic_int error;     /* the first reason for missing entries */
    int failed;           /* why the directory could not be read at all */
};

static void note_error(struct crawl_listing *l, int error)
{
    int none = 0;
    atomic_compare_exchange_strong(&l->error, &none, error);
}

/* --- one entry --- */

static int look_at_link(const struct crawl *c, struct chunk *chunk, struct scan_entry *e)
{
    char target[PATH_MAX];
    struct stat st;
    int fd = chunk->listing->fd;
    ssize_t n = readlinkat(fd, e->name, target, sizeof target);
    if (n < 0)
        return -errno;
    if (n == 0 || memchr(target, '\0', (size_t)n))
        return -ENOENT;
    e->target = strndup(target, (size_t)n);
    if (!e->target)
        return -ENOMEM;
    if (look(c, fd, e->name, 0, &st, NULL) == 0 && S_ISREG(st.st_mode))
        chunk->links_to_files++;
    return 0;
}

static void judge_file(struct crawl *c, const struct crawl_listing *l, struct scan_entry *e, uint32_t object,
                       struct stat *st)
{
    uint32_t old, before = l->branch->old;
    bool known = before && catalog_file_in(c->old, before, e->name, e->length, &old);
    struct look_result found = look_judge(c, l->fd, e->name, known ? &old : NULL, object, st);
    e->state = found.state;
    e->version = found.version;
}

/* Complete an entry whose name and d_type are known. */
static int look_at(struct crawl_worker *w, struct chunk *chunk, struct scan_entry *e, unsigned char type)
{
    struct crawl *c = w->crawl;
    struct stat st = {.st_mode = DTTOIF(type)};
    int flags = AT_SYMLINK_NOFOLLOW | (c->insists ? AT_STATX_FORCE_SYNC : 0), error = 0;
    uint32_t object = 0;
    if (type == DT_REG || type == DT_LNK || type == DT_UNKNOWN)
        error = look(c, chunk->listing->fd, e->name, flags, &st, &object);
    if (error)
        return error;
    if (S_ISDIR(st.st_mode)) {
        e->kind = ENTRY_DIRECTORY; /* looked at when it is visited */
        return 0;
    }
    if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)) {
        chunk->specials++;
        return 0;
    }
    e->kind = S_ISREG(st.st_mode) ? ENTRY_FILE : ENTRY_LINK;
    if (e->kind == ENTRY_FILE)
        judge_file(c, chunk->listing, e, object, &st);
    else
        e->state = look_state(c, &st, object);
    e->blocks = (uint64_t)st.st_blocks;
    error = attributes_id(c->attributes, &w->memory, &st, &e->attribute);
    return error || e->kind == ENTRY_FILE ? error : look_at_link(c, chunk, e);
}

static bool is_ours(const struct branch *n, const char *name)
{
    return !n->parent && strcmp(name, ".dealfs") == 0;
}

static void look_at_dirent(struct crawl_worker *w, struct chunk *chunk, const struct dirent64 *d)
{
    struct branch *n = chunk->listing->branch;
    struct scan_entry *e = &chunk->entry[chunk->entries];
    if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
        return;
    if (is_ours(n, d->d_name)) {
        chunk->hides = true;
        return;
    }
    memset(e, 0, sizeof *e);
    e->name = d->d_name;
    e->length = (uint16_t)strlen(d->d_name);
    int error = n->path_length + 1 + e->length < CATALOG_PATH_MAX ? look_at(w, chunk, e, d->d_type) : -ENAMETOOLONG;
    if (error == -ENOMEM)
        crawl_fail(w->crawl, error, "scan: %s", strerror(ENOMEM));
    else if (error && error != -ENOENT)
        note_error(chunk->listing, error);
    else if (!error && e->kind != ENTRY_NONE)
        chunk->entries++;
}

static void look_at_all(struct crawl_worker *w, struct chunk *chunk)
{
    enum { LEAST = offsetof(struct dirent64, d_name) + 2 }; /* minimum size of a dirent, rounded down */
    struct crawl *c = w->crawl;
    chunk->entry = malloc((chunk->n / LEAST + 1) * sizeof *chunk->entry);
    if (!chunk->entry) {
        crawl_fail(c, -ENOMEM, "scan: %s", strerror(ENOMEM));
        return;
    }
    uint64_t files = 0, bytes = 0;
    for (size_t at = 0; at < chunk->n && !atomic_load_explicit(&c->stop, memory_order_relaxed);) {
        const struct dirent64 *d = (const void *)(chunk->raw + at);
        look_at_dirent(w, chunk, d);
        at += d->d_reclen;
    }
    for (size_t i = 0; i < chunk->entries; i++) {
        files += chunk->entry[i].kind == ENTRY_FILE;
        bytes += chunk->entry[i].kind == ENTRY_FILE ? chunk->entry[i].state.size : 0;
    }
    struct scan_entry *fitting = realloc(chunk->entry, (chunk->entries + 1) * sizeof *fitting);
    if (fitting)
        chunk->entry = fitting;
    atomic_fetch_add(&c->files, files);
    atomic_fetch_add(&c->bytes, bytes);
}

/* --- the end of a listing --- */

static void listing_free(struct crawl_listing *l)
{
    for (struct chunk *next, *chunk = l->chunks; chunk; chunk = next) {
        next = chunk->sibling;
        for (size_t i = 0; i < chunk->entries; i++)
            free(chunk->entry[i].target);
        free(chunk->entry);
        free(chunk);
    }
    if (l->fd >= 0)
        close(l->fd);
    free(l);
}

/* All entries, chunk by chunk; they stay in their chunks. */
static int gather_entries(struct crawl_listing *l, struct scan_entry ***list, size_t *count)
{
    size_t n = 0;
    for (const struct chunk *chunk = l->chunks; chunk; chunk = chunk->sibling)
        n += chunk->entries;
    *list = malloc((n + 1) * sizeof **list);
    if (!*list)
        return -ENOMEM;
    *count = 0;
    for (struct chunk *chunk = l->chunks; chunk; chunk = chunk->sibling) {
        for (size_t i = 0; i < chunk->entries; i++)
            (*list)[(*count)++] = &chunk->entry[i];
        l->branch->specials += chunk->specials;
        l->branch->links_to_files += chunk->links_to_files;
        l->branch->hides |= chunk->hides;
    }
    return 0;
}

static int make_branch(struct crawl_listing *l, const struct catalog *old)
{
    struct scan_entry **list;
    size_t count;
    int error = gather_entries(l, &list, &count);
    if (error)
        return error;
    error = entries_sort(list, &count);
    if (!error)
        error = entries_to_branch(list, count, old, l->branch);
    free(list);
    return error;
}

static void listing_finish(struct crawl_worker *w, struct crawl_listing *l)
{
    struct crawl *c = w->crawl;
    struct branch *n = l->branch;
    if (atomic_load(&c->stop)) {
        listing_free(l);
        return;
    }
    atomic_store(&c->changed, true);
    atomic_fetch_add(&c->directories, 1);
    int error = l->failed ? l->failed : atomic_load(&l->error);
    if (l->failed && !n->parent)
        crawl_fail(c, error, "read the source: %s", strerror(-error));
    else if (error)
        branch_unreadable(c, n, error);
    error = l->failed ? 0 : make_branch(l, c->old);
    if (error)
        crawl_fail(c, error, "scan: %s", strerror(-error));
    branch_keep(c, n, l->fd);
    l->fd = -1;
    listing_free(l);
    crawl_push_children(c, n);
}

static void listing_drop(struct crawl_worker *w, struct crawl_listing *l)
{
    if (atomic_fetch_sub(&l->left, 1) == 1)
        listing_finish(w, l);
}

static void chunk_run(struct crawl_worker *w, struct crawl_job *job)
{
    struct chunk *chunk = (struct chunk *)job;
    look_at_all(w, chunk);
    listing_drop(w, chunk->listing);
}

/* --- reading --- */

static struct chunk *chunk_make(struct crawl_listing *l, const char *raw, size_t n)
{
    struct chunk *chunk = malloc(sizeof *chunk + n);
    if (!chunk)
        return NULL;
    memset(chunk, 0, sizeof *chunk);
    memcpy(chunk->raw, raw, n);
    chunk->n = n;
    chunk->job.run = chunk_run;
    chunk->listing = l;
    chunk->sibling = l->chunks;
    l->chunks = chunk;
    atomic_fetch_add(&l->left, 1);
    return chunk;
}

/* A chunk is queued when there is a next one: so the last one is looked at by this thread. */
static void read_entries(struct crawl_worker *w, struct crawl_listing *l)
{
    struct crawl *c = w->crawl;
    struct chunk *held = NULL;
    ssize_t n;
    while (!atomic_load(&c->stop) && (n = getdents64(l->fd, w->buffer, WORKER_BUFFER)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            l->failed = -errno;
            break;
        }
        struct chunk *chunk = chunk_make(l, w->buffer, (size_t)n);
        if (!chunk) {
            crawl_fail(c, -ENOMEM, "scan: %s", strerror(ENOMEM));
            break;
        }
        if (held)
            crawl_push_job(c, &held->job);
        held = chunk;
    }
    if (l->failed == -ENOENT && l->branch->parent) { /* removed while it was being read */
        l->branch->gone = true;
        l->failed = 0;
    }
    if (held)
        chunk_run(w, &held->job);
}

void listing_start(struct crawl_worker *w, struct branch *n, int fd)
{
    struct crawl_listing *l = calloc(1, sizeof *l);
    if (!l) {
        close(fd);
        crawl_fail(w->crawl, -ENOMEM, "scan: %s", strerror(ENOMEM));
        return;
    }
    l->branch = n;
    l->fd = fd;
    atomic_store(&l->left, 1);
    read_entries(w, l);
    listing_drop(w, l);
}
