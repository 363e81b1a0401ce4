/* Open a catalog and look at it: everything here reads the map in place. */
#include "fs/base/cleanup.h"
#include "fs/catalog/format.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

/* ---- open and close ---- */

int catalog_open_memory(const void *bytes, size_t n, struct catalog **catalog)
{
    if ((uintptr_t)bytes % sizeof(uint64_t) != 0)
        return -EINVAL;
    struct catalog *c = calloc(1, sizeof *c);
    if (!c)
        return -ENOMEM;
    int error = catalog_check(c, bytes, n);
    if (error) {
        free(c);
        return error;
    }
    *catalog = c;
    return 0;
}

int catalog_open(const char *path, struct catalog **catalog)
{
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st))
        return -errno;
    if (!S_ISREG(st.st_mode) || (size_t)st.st_size < sizeof(struct format_header))
        return -EBADMSG;
    size_t n = (size_t)st.st_size;
    void *map = mmap(NULL, n, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (map == MAP_FAILED)
        return -errno;
    int error = catalog_open_memory(map, n, catalog);
    if (error)
        munmap(map, n);
    else
        (*catalog)->map = map;
    return error;
}

void catalog_close(struct catalog *c)
{
    if (!c)
        return;
    int saved = errno;
    if (c->map)
        munmap(c->map, c->length);
    free(c);
    errno = saved;
}

/* ---- the whole ---- */

uint64_t catalog_directories(const struct catalog *c)
{
    return c->directories;
}

uint32_t catalog_files(const struct catalog *c)
{
    return c->files;
}

uint64_t catalog_links(const struct catalog *c)
{
    return c->links;
}

uint64_t catalog_inodes(const struct catalog *c)
{
    return (uint64_t)c->directories + c->files + c->links;
}

uint64_t catalog_bytes(const struct catalog *c)
{
    return c->header->bytes;
}

uint64_t catalog_memory(const struct catalog *c)
{
    return c->length;
}

const struct digest *catalog_digest(const struct catalog *c)
{
    return &c->header->digest;
}

uint64_t catalog_scanned(const struct catalog *c)
{
    return c->header->scanned;
}

const struct catalog_notes *catalog_notes(const struct catalog *c)
{
    return &c->header->notes;
}

/* ---- files ---- */

struct catalog_file catalog_file(const struct catalog *c, uint32_t file)
{
    return (struct catalog_file){.size = c->file[file].size, .mtime = c->file[file].mtime};
}

uint64_t catalog_file_ino(const struct catalog *c, uint32_t file)
{
    return CATALOG_ROOT + (uint64_t)c->directories + file;
}

int catalog_ino_file(const struct catalog *c, uint64_t ino, uint32_t *file)
{
    if (ino < CATALOG_ROOT || ino > catalog_inodes(c))
        return -ENOENT;
    if (ino <= c->directories)
        return -EISDIR;
    uint64_t number = ino - CATALOG_ROOT - c->directories;
    if (number >= c->files)
        return -EINVAL;
    *file = (uint32_t)number;
    return 0;
}

static uint64_t version_hash(const struct format_file *f)
{
    struct catalog_file version = {.size = f->size, .mtime = f->mtime};
    return hash64(&version, sizeof version, 0);
}

uint64_t catalog_file_seed(const struct catalog *c, uint32_t file)
{
    const struct format_file *f = &c->file[file];
    return hash64(catalog_string(c, f->name), name_length(f->name), version_hash(f));
}

/* The hash of a path is chained from the name up to the root, each name with its NUL, so that no path needs to be built
 * and no two paths give the same bytes. */
struct digest catalog_file_identity(const struct catalog *c, uint32_t file)
{
    const struct format_file *f = &c->file[file];
    struct digest d = hash128(catalog_string(c, f->name), name_length(f->name) + 1, version_hash(f));
    for (uint32_t at = f->parent; at != CATALOG_ROOT; at = catalog_dir(c, at)->parent) {
        uint64_t name = catalog_dir(c, at)->name;
        struct digest pair[2] = {d, hash128(catalog_string(c, name), name_length(name) + 1, 0)};
        d = hash128(pair, sizeof pair, 0);
    }
    return d;
}

/* ---- any inode ---- */

static const struct format_link *link_at(const struct catalog *c, uint64_t ino)
{
    return &c->link[ino - CATALOG_ROOT - c->directories - c->files];
}

/* Which record an inode has; the name is what all have. */
enum kind { NONE, DIRECTORY, REGULAR, LINK };

static enum kind kind_of(const struct catalog *c, uint64_t ino)
{
    if (ino < CATALOG_ROOT || ino > catalog_inodes(c))
        return NONE;
    if (ino <= c->directories)
        return DIRECTORY;
    return ino - c->directories <= c->files ? REGULAR : LINK;
}

static const struct format_file *file_at(const struct catalog *c, uint64_t ino)
{
    return &c->file[ino - CATALOG_ROOT - c->directories];
}

static uint64_t packed_name(const struct catalog *c, uint64_t ino)
{
    switch (kind_of(c, ino)) {
    case DIRECTORY:
        return catalog_dir(c, ino)->name;
    case REGULAR:
        return file_at(c, ino)->name;
    case LINK:
        return link_at(c, ino)->name;
    default:
        return 0; /* the root's: "" */
    }
}

const char *catalog_name(const struct catalog *c, uint64_t ino, size_t *length)
{
    uint64_t name = packed_name(c, ino);
    *length = name_length(name);
    return catalog_string(c, name);
}

uint64_t catalog_parent(const struct catalog *c, uint64_t ino)
{
    switch (kind_of(c, ino)) {
    case DIRECTORY:
        return catalog_dir(c, ino)->parent;
    case REGULAR:
        return file_at(c, ino)->parent;
    case LINK:
        return link_at(c, ino)->parent;
    default:
        return CATALOG_ROOT;
    }
}

const char *catalog_link_target(const struct catalog *c, uint64_t ino, size_t *length)
{
    if (kind_of(c, ino) != LINK)
        return NULL;
    uint64_t target = link_at(c, ino)->target;
    *length = name_length(target);
    return catalog_string(c, target);
}

long catalog_path(const struct catalog *c, uint64_t ino, char *buffer, size_t n)
{
    size_t length = 0;
    for (uint64_t at = ino; at != CATALOG_ROOT; at = catalog_parent(c, at))
        length += name_length(packed_name(c, at)) + 1;
    if (length > 0)
        length--; /* no slash before the first */
    if (length >= n || length > INT32_MAX)
        return -ENAMETOOLONG;
    size_t end = length;
    buffer[end] = '\0';
    for (uint64_t at = ino; at != CATALOG_ROOT; at = catalog_parent(c, at)) {
        size_t one;
        const char *name = catalog_name(c, at, &one);
        end -= one;
        memcpy(buffer + end, name, one);
        if (end > 0)
            buffer[--end] = '/';
    }
    return (long)length;
}

/* ---- stat ---- */

enum {
    BLOCK = 512,
    PREFERRED_READ = 128 << 10, /* so that stdio and Python read a sample at once */
    DIRECTORY_SIZE = 4096,
};

static void set_attribute(const struct catalog *c, struct stat *st, uint32_t attribute, mode_t type)
{
    st->st_mode = type | c->attribute[attribute].mode;
    st->st_uid = c->attribute[attribute].uid;
    st->st_gid = c->attribute[attribute].gid;
}

static void set_times(struct stat *st, int64_t mtime)
{
    enum { SECOND = 1000000000 };
    int64_t below = mtime % SECOND;
    st->st_mtim.tv_sec = mtime / SECOND - (below < 0);
    st->st_mtim.tv_nsec = below < 0 ? below + SECOND : below;
    st->st_atim = st->st_ctim = st->st_mtim;
}

static void set_size(struct stat *st, uint64_t size)
{
    st->st_size = (off_t)size;
    st->st_blocks = (blkcnt_t)((size + BLOCK - 1) / BLOCK);
}

static void stat_directory(const struct catalog *c, const struct format_directory *d, struct stat *st)
{
    set_attribute(c, st, d->attribute, S_IFDIR);
    set_times(st, d->mtime);
    set_size(st, DIRECTORY_SIZE);
    st->st_nlink = 2 + (nlink_t)d->directories;
}

int catalog_stat(const struct catalog *c, uint64_t ino, struct stat *st)
{
    enum kind kind = kind_of(c, ino);
    if (kind == NONE)
        return -ENOENT;
    memset(st, 0, sizeof *st);
    st->st_ino = ino;
    st->st_nlink = 1;
    st->st_blksize = PREFERRED_READ;
    if (kind == DIRECTORY) {
        stat_directory(c, catalog_dir(c, ino), st);
    } else if (kind == REGULAR) {
        set_attribute(c, st, file_at(c, ino)->attribute, S_IFREG);
        set_times(st, file_at(c, ino)->mtime);
        set_size(st, file_at(c, ino)->size);
    } else {
        set_attribute(c, st, link_at(c, ino)->attribute, S_IFLNK);
        set_times(st, link_at(c, ino)->mtime);
        st->st_size = (off_t)name_length(link_at(c, ino)->target);
    }
    return 0;
}
