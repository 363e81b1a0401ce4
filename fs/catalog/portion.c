/* A portion of a rescan that another node does. All nodes with the same cached catalog look at a range of its files.
 * The result is a list of files that differ from the catalog or could not be looked at. The scanning node looks at
 * these itself, and at none of the others.
 *
 * Threads: each takes the next batch of files. A batch has one directory open at a time. */
#include "fs/base/beneath.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/base/thread.h"
#include "fs/catalog/crawl.h"
#include "fs/catalog/scanner.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BATCH = 64, THREADS_MOST = 256 };

/* As written; followed by `count` file numbers. */
struct portion {
    struct digest known; /* digest of the catalog */
    uint32_t from, to, count, zero;
};

struct portion_search {
    struct crawl *crawl;
    uint32_t from, to;
    _Atomic uint64_t next;
    atomic_uint_fast8_t *differs; /* per file, beginning with `from` */
};

/* The result is only valid for nodes that know the same about each file. Equal versions are not enough: if a link was
 * added or removed, nodes may have seen different ctimes. */
static struct digest known_digest(const struct catalog *c)
{
    uint64_t seed = hash64(catalog_versions(c), sizeof *catalog_versions(c), catalog_notes(c)->acls);
    return hash128(c->seen, c->files * sizeof *c->seen, seed);
}

static bool is_as_before(const struct portion_search *s, int directory, uint32_t file)
{
    const struct catalog *c = s->crawl->old;
    struct stat st;
    int flags = AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC;
    uint32_t object = 0;
    const char *name = catalog_string(c, c->file[file].name);
    if (look(s->crawl, directory, name, flags, &st, &object) || !S_ISREG(st.st_mode))
        return false;
    struct file_state before = catalog_state(c, file);
    if (before.ctime == 0)
        look_limit(s->crawl, directory, name, &st);
    struct file_state now = look_state(s->crawl, &st, object);
    if (catalog_notes(c)->acls && before.ctime)
        now.mode = before.mode; /* an ACL does not change without the ctime, which is compared */
    return before.size == now.size && before.mtime == now.mtime && before.ctime == now.ctime &&
           before.mode == now.mode && before.uid == now.uid && before.gid == now.gid && before.links == now.links &&
           before.object == now.object && (uint64_t)st.st_blocks == c->seen[file].blocks;
}

static int open_directory(const struct portion_search *s, uint32_t directory)
{
    char path[CATALOG_PATH_MAX];
    long n = catalog_path(s->crawl->old, directory, path, sizeof path);
    int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    return n < 0 ? (int)n : beneath_open(s->crawl->source, n ? path : ".", flags);
}

static void look_at_batch(struct portion_search *s, uint32_t from, uint32_t to)
{
    uint32_t opened = 0;
    CLEANUP_CLOSE int fd = -1;
    for (uint32_t file = from; file < to; file++) {
        uint32_t parent = s->crawl->old->file[file].parent;
        if (parent != opened) {
            if (fd >= 0)
                close(fd);
            fd = open_directory(s, parent);
            opened = parent;
        }
        s->differs[file - s->from] = fd < 0 || !is_as_before(s, fd, file);
    }
}

static void *search_main(void *arg)
{
    struct portion_search *s = arg;
    uint64_t at;
    while ((at = atomic_fetch_add(&s->next, BATCH)) < s->to)
        look_at_batch(s, (uint32_t)at, s->to - at < BATCH ? s->to : (uint32_t)at + BATCH);
    return NULL;
}

static void search_all(struct portion_search *s, int threads)
{
    pthread_t thread[THREADS_MOST];
    int n = threads_start(thread, threads < THREADS_MOST ? threads : THREADS_MOST, "search", search_main, s);
    if (n == 0)
        search_main(s);
    threads_join(thread, n);
}

/* A source without ACLs is asked once. */
static void look_at_root(struct crawl *c)
{
    struct stat st;
    if (look(c, c->source, NULL, 0, &st, NULL) == 0)
        look_limit(c, c->source, NULL, &st);
}

static int write_found(const struct portion_search *s, int fd)
{
    CLEANUP_STR struct str out = STR_INIT;
    struct portion head = {.known = known_digest(s->crawl->old), .from = s->from, .to = s->to};
    str_add(&out, (const char *)&head, sizeof head);
    for (uint32_t file = s->from; file < s->to; file++)
        if (s->differs[file - s->from]) {
            str_add(&out, (const char *)&file, sizeof file);
            head.count++;
        }
    if (out.failed)
        return -ENOMEM;
    memcpy(out.data, &head, sizeof head);
    return file_write_all(fd, out.data, out.length);
}

int scan_portion(int source_fd, const char *path, const struct scan_options *options, struct scan_part part, int fd)
{
    struct catalog *c;
    if (options->rescan != RESCAN_AUTO)
        return 0;
    int error = catalog_open(path, &c);
    if (error)
        return error;
    struct crawl crawl = {.source = source_fd,
                          .old = c,
                          .ignores_ctime = options->ignore_ctime,
                          .acls = catalog_notes(c)->acls,
                          .delay = look_delay()};
    struct portion_search s = {.crawl = &crawl,
                               .from = (uint32_t)((uint64_t)c->files * part.number / part.count),
                               .to = (uint32_t)((uint64_t)c->files * (part.number + 1) / part.count)};
    atomic_init(&s.next, s.from);
    s.differs = calloc(s.to - s.from + 1u, sizeof *s.differs);
    if (s.differs) {
        look_at_root(&crawl);
        search_all(&s, options->threads);
        error = write_found(&s, fd);
    } else {
        error = -ENOMEM;
    }
    free(s.differs);
    catalog_close(c);
    return error;
}

/* --- on the scanning node --- */

/* Mark all files of the next portion except the listed ones; false: it is malformed. */
static bool mark_portion(const char **at, const char *end, const struct catalog *c, uint8_t *looked)
{
    struct portion head;
    struct digest ours = known_digest(c);
    if ((size_t)(end - *at) < sizeof head)
        return false;
    memcpy(&head, *at, sizeof head);
    *at += sizeof head;
    if (memcmp(&head.known, &ours, sizeof ours) != 0 || head.from > head.to || head.to > c->files ||
        head.count > (size_t)(end - *at) / sizeof(uint32_t))
        return false;
    memset(looked + head.from, 1, head.to - head.from);
    for (uint32_t i = 0; i < head.count; i++, *at += sizeof(uint32_t)) {
        uint32_t file;
        memcpy(&file, *at, sizeof file);
        if (file < c->files)
            looked[file] = 0;
    }
    return true;
}

uint8_t *portions_read(int fd, const struct catalog *c)
{
    CLEANUP_STR struct str text = STR_INIT;
    CLEANUP_FREE uint8_t *looked = calloc((size_t)c->files + 1, 1);
    struct stat st;
    if (!looked || fstat(fd, &st) < 0 || lseek(fd, 0, SEEK_SET) < 0 || file_read_fd(fd, (size_t)st.st_size, &text) < 0)
        return NULL;
    for (const char *at = text.data, *end = at + text.length; at < end;)
        if (!mark_portion(&at, end, c, looked)) {
            log_warning("the scan results of other nodes are malformed: this node checks all files itself");
            return NULL;
        }
    return steal_pointer(looked);
}
