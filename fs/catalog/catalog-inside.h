/* The catalog file as C structs; FORMAT describes it byte by byte. Only the files of this folder may include this.
 *
 * Byte order and alignment are those of the machine that wrote it; a file with another byte order is rejected by
 * its mark. */
#ifndef FS_CATALOG_CATALOG_INSIDE_H
#define FS_CATALOG_CATALOG_INSIDE_H

#include "fs/base/hash.h"
#include "fs/catalog/catalog.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FORMAT_MAGIC "DEALFSCT"
enum {
    FORMAT_VERSION = 3,
    FORMAT_ENDIAN = 0x01020304,
    FORMAT_ALIGNMENT = 64,
    FORMAT_NAME_MOST = UINT16_MAX, /* maximum length of a name or of a link's target */
};
#define FORMAT_COUNT_MOST ((uint64_t)UINT32_MAX - 1) /* maximum number of directories, of files and of symlinks */
#define FORMAT_NAMES_MOST ((uint64_t)1 << 48)        /* maximum size of the section of names */

enum format_part {
    /* the results of the scan, which may differ between nodes */
    PART_SCAN,
    PART_VERSIONS,
    PART_SEEN,
    /* the dataset */
    PART_DIRECTORIES,
    PART_FILES,
    PART_LINKS,
    PART_ATTRIBUTES,
    PART_NAMES,
    PARTS
};

struct format_section {
    uint64_t offset, count;
};

struct format_header {
    char magic[8];
    uint32_t version, endian;
    uint64_t length;
    uint64_t scanned;
    struct digest checksum, digest, versions;
    struct catalog_notes notes;
    uint64_t bytes;
    struct format_section section[PARTS];
};

/* One per directory, parallel to the records of directories. */
struct format_scan {
    int64_t ctime;
    uint32_t specials, links_to_files;
    uint32_t flags;
    uint32_t zero;
};
enum { SCAN_UNREADABLE = 1, SCAN_HIDDEN = 2, SCAN_LACKING = 4 };

/* One per file, parallel to the records of files; so is its version (FORMAT), an int64_t. */
struct format_seen {
    int64_t ctime; /* 0: not compared */
    uint64_t blocks;
    uint32_t links;
    uint32_t object; /* see file_state */
};

/* A name: its offset in the section of names in the low 48 bits, its length above. */
static inline uint64_t name_pack(uint64_t offset, size_t length)
{
    return offset | (uint64_t)length << 48;
}

static inline uint64_t name_offset(uint64_t name)
{
    return name & (FORMAT_NAMES_MOST - 1);
}

static inline size_t name_length(uint64_t name)
{
    return (size_t)(name >> 48);
}

/* Directories are counted from 1, like their inodes; files and links from 0. */
struct format_directory {
    int64_t mtime;
    uint64_t name;
    uint32_t parent, attribute;
    uint32_t first_directory, directories;
    uint32_t first_file, files;
    uint32_t first_link, links;
};

struct format_file {
    uint64_t size;
    int64_t mtime;
    uint64_t name;
    uint32_t parent, attribute;
};

struct format_link {
    int64_t mtime;
    uint64_t name, target;
    uint32_t parent, attribute;
};

struct format_attribute {
    uint32_t mode, uid, gid; /* mode without the type */
};

_Static_assert(sizeof(struct format_header) == 256, "header");
_Static_assert(sizeof(struct format_scan) == 24, "scan record");
_Static_assert(sizeof(struct format_seen) == 24, "seen record");
_Static_assert(sizeof(struct format_directory) == 48, "directory record");
_Static_assert(sizeof(struct format_file) == 32, "file record");
_Static_assert(sizeof(struct format_link) == 32, "link record");
_Static_assert(sizeof(struct format_attribute) == 12, "attribute record");

extern const uint8_t format_size[PARTS]; /* size of a record, by section */

/* Compute the position of each section from the counts. Returns the length of the file; 0: the counts are
 * impossible. */
uint64_t format_layout(struct format_section section[PARTS]);

/* The hashes of a file with correct sections: of the dataset; of the versions and the dataset's hash; of the rest of
 * the file and both hashes. */
struct digest format_digest(const void *bytes);
struct digest format_versions(const void *bytes);
struct digest format_checksum(const void *bytes);

/* A catalog in memory: the header and the sections, in one mapping. */
struct catalog {
    const struct format_header *header;
    const struct format_scan *scan;
    const int64_t *version;
    const struct format_seen *seen;
    const struct format_directory *directory; /* the first is the root: index inode − 1 */
    const struct format_file *file;
    const struct format_link *link;
    const struct format_attribute *attribute;
    const char *names;
    uint32_t directories, files, links;
    uint64_t attributes, name_bytes;
    void *map; /* NULL: borrowed */
    size_t length;
};

static inline const struct format_directory *catalog_dir(const struct catalog *c, uint64_t ino)
{
    return &c->directory[ino - CATALOG_ROOT];
}

static inline const char *catalog_string(const struct catalog *c, uint64_t name)
{
    return c->names + name_offset(name);
}

/* The names of a directory's children of one kind: a field of consecutive records. */
struct slice {
    const uint64_t *name;
    size_t stride; /* in units of names */
    uint32_t count;
};

static inline uint64_t slice_name(const struct slice *s, uint32_t i)
{
    return s->name[i * s->stride];
}

static inline struct slice slice_directories(const struct catalog *c, const struct format_directory *d)
{
    const struct format_directory *first = c->directory + (d->first_directory - CATALOG_ROOT);
    return (struct slice){&first->name, sizeof *first / sizeof(uint64_t), d->directories};
}

static inline struct slice slice_files(const struct catalog *c, const struct format_directory *d)
{
    const struct format_file *first = c->file + d->first_file;
    return (struct slice){&first->name, sizeof *first / sizeof(uint64_t), d->files};
}

static inline struct slice slice_links(const struct catalog *c, const struct format_directory *d)
{
    const struct format_link *first = c->link + d->first_link;
    return (struct slice){&first->name, sizeof *first / sizeof(uint64_t), d->links};
}

/* A sparse file can claim 2^63 bytes, so sums of sizes saturate. */
static inline uint64_t format_sum(uint64_t sum, uint64_t size)
{
    return __builtin_add_overflow(sum, size, &sum) ? UINT64_MAX : sum;
}

/* Find the sections of a file of n bytes and check everything. 0 or -EBADMSG. */
int catalog_check(struct catalog *c, const void *bytes, size_t n);

/* The subdirectory with that name, or 0. */
uint32_t catalog_subdirectory(const struct catalog *c, uint32_t directory, const char *name, size_t length);
/* The file with that name in the directory; false: none. */
bool catalog_file_in(const struct catalog *c, uint32_t directory, const char *name, size_t length, uint32_t *file);

#endif
