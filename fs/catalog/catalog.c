/* Opens a catalog and answers queries: everything reads the mapping in place. */
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/catalog/catalog-inside.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

/* --- open and close --- */

int catalog_open_memory(const void *bytes, size_t n, struct catalog **catalog)
{
    if ((uintptr_t)bytes % sizeof(uint64_t) != 0)
        return -EINVAL;
    struct catalog *c = calloc(1, sizeof *c);
    if (!c)
        return -ENOMEM;
    int error = catalog_check(c, bytes, n);
    if (error)
        free(c);
    else
        *catalog = c;
    return error;
}

int catalog_open_fd(int fd, struct catalog **catalog)
{
    void *map;
    size_t n;
    int error = file_map(fd, sizeof(struct format_header), &map, &n);
    if (error)
        return error;
    error = catalog_open_memory(map, n, catalog);
    if (error)
        munmap(map, n);
    else
        (*catalog)->map = map;
    return error;
}

int catalog_open(const char *path, struct catalog **catalog)
{
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return fd < 0 ? -errno : catalog_open_fd(fd, catalog);
}

void catalog_close(struct catalog *c)
{
    if (!c)
        return;
    KEEP_ERRNO;
    if (c->map)
        munmap(c->map, c->length);
    free(c);
}

/* --- the whole catalog --- */

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

const struct digest *catalog_versions(const struct catalog *c)
{
    return &c->header->versions;
}

uint64_t catalog_scanned(const struct catalog *c)
{
    return c->header->scanned;
}

const struct catalog_notes *catalog_notes(const struct catalog *c)
{
    return &c->header->notes;
}

/* --- files --- */

struct catalog_file catalog_file(const struct catalog *c, uint32_t file)
{
    return (struct catalog_file){.size = c->file[file].size, .mtime = c->file[file].mtime};
}

bool catalog_was_excused(const struct catalog *c, uint32_t file)
{
    int64_t version = c->version[file], ctime = c->seen[file].ctime;
    return ctime && version && version != ctime && version != (int64_t)catalog_scanned(c);
}

struct file_state catalog_state(const struct catalog *c, uint32_t file)
{
    const struct format_file *f = &c->file[file];
    const struct format_attribute *a = &c->attribute[f->attribute];
    const struct format_seen *seen = &c->seen[file];
    return (struct file_state){.size = f->size,
                               .mtime = f->mtime,
                               .ctime = seen->ctime,
                               .mode = a->mode,
                               .uid = a->uid,
                               .gid = a->gid,
                               .links = seen->links,
                               .object = seen->object};
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

/* The hash of a path is chained from the name up to the root, each name with its NUL. So no path needs to be built, and
 * different paths give different bytes. */
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

uint64_t catalog_file_seed(const struct catalog *c, uint32_t file)
{
    struct digest identity = catalog_file_identity(c, file);
    return digest_head(&identity);
}

struct digest catalog_file_version(const struct catalog *c, uint32_t file)
{
    struct digest identity = catalog_file_identity(c, file);
    return hash128(&identity, sizeof identity, (uint64_t)c->version[file]);
}

/* --- any inode --- */

/* The kind of record of an inode. */
enum inode_kind { NONE, DIRECTORY, REGULAR, LINK };

static enum inode_kind kind_of(const struct catalog *c, uint64_t ino)
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

static const struct format_link *link_at(const struct catalog *c, uint64_t ino)
{
    return &c->link[ino - CATALOG_ROOT - c->directories - c->files];
}

/* The common fields of all kinds; for an unknown inode, the root's name and parent. */
struct common {
    uint64_t name;
    int64_t mtime;
    uint32_t parent, attribute;
};
#define COMMON_OF(record) ((struct common){(record)->name, (record)->mtime, (record)->parent, (record)->attribute})

static inline struct common common_of(const struct catalog *c, uint64_t ino)
{
    switch (kind_of(c, ino)) {
    case DIRECTORY:
        return COMMON_OF(catalog_dir(c, ino));
    case REGULAR:
        return COMMON_OF(file_at(c, ino));
    case LINK:
        return COMMON_OF(link_at(c, ino));
    case NONE:
        break;
    }
    return (struct common){.parent = CATALOG_ROOT};
}

uint32_t catalog_generation(const struct catalog *c, uint64_t ino)
{
    return ino == CATALOG_ROOT ? 0 : (uint32_t)digest_head(&c->header->digest);
}

const char *catalog_name(const struct catalog *c, uint64_t ino, size_t *length)
{
    uint64_t name = common_of(c, ino).name;
    *length = name_length(name);
    return catalog_string(c, name);
}

uint64_t catalog_parent(const struct catalog *c, uint64_t ino)
{
    return common_of(c, ino).parent;
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
        length += name_length(common_of(c, at).name) + 1;
    if (length > 0)
        length--; /* no slash before the first component */
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

uint64_t catalog_lacking(const struct catalog *c, uint64_t *first)
{
    uint64_t count = 0, directories = c->header->notes.unreadable > 0 ? catalog_directories(c) : 0;
    for (uint64_t i = 0; i < directories; i++) {
        if (!(c->scan[i].flags & SCAN_LACKING))
            continue;
        if (count++ == 0 && first)
            *first = CATALOG_ROOT + i;
    }
    return count;
}

/* --- stat --- */

enum {
    BLOCK = 512,
    PREFERRED_READ = 128 << 10, /* so that stdio and Python read a sample in one call */
    DIRECTORY_SIZE = 4096,
};

static void set_times(struct stat *st, int64_t mtime)
{
    enum { SECOND = 1000000000 };
    int64_t below = mtime % SECOND;
    st->st_mtim.tv_sec = mtime / SECOND - (below < 0);
    st->st_mtim.tv_nsec = below < 0 ? below + SECOND : below;
    st->st_atim = st->st_ctim = st->st_mtim;
}

static bool attribute_allows(const struct catalog *c, uint32_t attribute, uint32_t mode)
{
    return (c->attribute[attribute].mode & mode) == mode;
}

/* The list of attributes may include unused ones of earlier catalogs; usually it avoids looking at each file. */
bool catalog_is_public(const struct catalog *c)
{
    enum { LIST = 0555, READ = 0444 };
    uint64_t open = 0, inodes = catalog_directories(c) + catalog_files(c);
    while (open < c->attributes && attribute_allows(c, (uint32_t)open, READ))
        open++;
    for (uint64_t ino = CATALOG_ROOT; ino <= catalog_directories(c); ino++)
        if (!attribute_allows(c, catalog_dir(c, ino)->attribute, LIST))
            return false;
    for (uint64_t ino = catalog_directories(c) + 1; open < c->attributes && ino <= inodes; ino++)
        if (!attribute_allows(c, file_at(c, ino)->attribute, READ))
            return false;
    return true;
}

int catalog_stat(const struct catalog *c, uint64_t ino, struct stat *st)
{
    static const mode_t type[] = {[DIRECTORY] = S_IFDIR, [REGULAR] = S_IFREG, [LINK] = S_IFLNK};
    enum inode_kind kind = kind_of(c, ino);
    if (kind == NONE)
        return -ENOENT;
    struct common common = common_of(c, ino);
    const struct format_attribute *attribute = &c->attribute[common.attribute];
    *st = (struct stat){
        .st_ino = ino,
        .st_mode = type[kind] | attribute->mode,
        .st_uid = attribute->uid,
        .st_gid = attribute->gid,
        .st_nlink = 1,
        .st_blksize = PREFERRED_READ,
    };
    set_times(st, common.mtime);
    if (kind == DIRECTORY) {
        st->st_size = DIRECTORY_SIZE;
        st->st_blocks = DIRECTORY_SIZE / BLOCK;
        st->st_nlink = 2 + (nlink_t)catalog_dir(c, ino)->directories;
    } else if (kind == REGULAR) {
        st->st_size = (off_t)file_at(c, ino)->size;
        st->st_blocks = (blkcnt_t)c->seen[file_at(c, ino) - c->file].blocks;
    } else {
        st->st_size = (off_t)name_length(link_at(c, ino)->target);
    }
    return 0;
}
