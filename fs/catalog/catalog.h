/* The catalog: the frozen index of the source, an immutable file that every process of a node maps.
 *
 * Inodes are numbered 1…: first the directories (1 is the root), then the regular files, then the symlinks. Files
 * stand in the order of samples: file number f (0…) is sample f of the list `all`, and has inode catalog_file_ino(f).
 * Children of one kind of a directory are contiguous and sorted by name (bytes). The node id of an inode in FUSE is
 * its number here.
 *
 * Every function but open and close is a pure look at the map: no I/O, no locks, any thread. */
#ifndef FS_CATALOG_CATALOG_H
#define FS_CATALOG_CATALOG_H

#include "fs/base/hash.h"
#include "fs/catalog/file-state.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct catalog;

enum { CATALOG_ROOT = 1 };

/* What the scan left out or wants to have said. */
struct catalog_notes {
    uint64_t specials;       /* sockets, fifos, devices: left out */
    uint64_t links_to_files; /* symlinks whose target is a regular file: shown as symlinks, not samples */
    uint64_t hidden;         /* 1: the source has a .dealfs of its own at its root */
    uint64_t unreadable;     /* directories that could not be read: shown empty, in the log by name */
    uint64_t linked;         /* files with several hard links: a sample each */
};

/* 0; -ENOENT; -EBADMSG: truncated, altered or of another version (rebuild it). The whole file is checked against its
 * checksum, and every offset in it against its bounds, so that nothing in a catalog that opened can lead outside it. */
int catalog_open(const char *path, struct catalog **catalog);
int catalog_open_fd(int fd, struct catalog **catalog); /* of a file that is open; it may be closed then */
/* Borrows the bytes, which must be aligned to 8 (-EINVAL); for tests and fuzzing. */
int catalog_open_memory(const void *bytes, size_t n, struct catalog **catalog);
void catalog_close(struct catalog *catalog);

uint64_t catalog_directories(const struct catalog *c);
uint32_t catalog_files(const struct catalog *c);
uint64_t catalog_links(const struct catalog *c);
uint64_t catalog_inodes(const struct catalog *c); /* the sum: inodes are 1…this */
uint64_t catalog_bytes(const struct catalog *c);  /* sum of the files' sizes */
uint64_t catalog_memory(const struct catalog *c); /* length of the catalog file */
/* Of the dataset: the same on every node, whenever and wherever it was scanned. */
const struct digest *catalog_digest(const struct catalog *c);
/* Equal: every file has the same number and version in both. */
const struct digest *catalog_versions(const struct catalog *c);
uint64_t catalog_scanned(const struct catalog *c); /* when: nanoseconds since 1970 */
const struct catalog_notes *catalog_notes(const struct catalog *c);

/* A regular file. */
struct catalog_file {
    uint64_t size;
    int64_t mtime; /* nanoseconds since 1970 */
};
struct catalog_file catalog_file(const struct catalog *c, uint32_t file);
/* How many bytes of a file tiers may keep: all, or none of one so large that nearly all of it can only be a hole. */
#define CATALOG_KEPT_MOST (UINT64_C(1) << 44)
static inline uint64_t catalog_kept_size(const struct catalog *c, uint32_t file)
{
    uint64_t size = catalog_file(c, file).size;
    return size <= CATALOG_KEPT_MOST ? size : 0;
}
struct file_state catalog_state(const struct catalog *c, uint32_t file); /* as the scan saw it */
uint64_t catalog_file_ino(const struct catalog *c, uint32_t file);
int catalog_ino_file(const struct catalog *c, uint64_t ino, uint32_t *file); /* -EISDIR, -EINVAL (link), -ENOENT */

/* Tells an inode from that of another dataset with the same number, in 32 bits, for all that keep numbers across
 * mounts. The root is always the root: 0. */
uint32_t catalog_generation(const struct catalog *c, uint64_t ino);

/* Any inode. st_ino, st_mode, st_nlink, st_uid, st_gid, st_size, st_blocks, st_blksize, times (all mtime). */
int catalog_stat(const struct catalog *c, uint64_t ino, struct stat *st);
/* May everybody list every directory and read every file, by their modes? */
bool catalog_is_public(const struct catalog *c);
const char *catalog_name(const struct catalog *c, uint64_t ino, size_t *length);        /* NUL-terminated; root: "" */
uint64_t catalog_parent(const struct catalog *c, uint64_t ino);                         /* of the root: the root */
const char *catalog_link_target(const struct catalog *c, uint64_t ino, size_t *length); /* NULL: not a symlink */

/* 0, -ENOENT or -ENOTDIR. */
int catalog_lookup(const struct catalog *c, uint64_t directory, const char *name, size_t length, uint64_t *ino);

/* The children of a directory by place 0…: subdirectories, files, symlinks; O(1) each. -ENOENT past the last. */
int catalog_child(const struct catalog *c, uint64_t directory, uint64_t place, uint64_t *ino);

/* The path below the source, without leading slash, NUL-terminated. Returns its length, or -ENAMETOOLONG.
 * PATH_MAX is not enough for every tree: paths may be up to CATALOG_PATH_MAX. */
enum { CATALOG_PATH_MAX = 65536 };
long catalog_path(const struct catalog *c, uint64_t ino, char *buffer, size_t n);
/* The inode at a relative path; "." and empty components are skipped, ".." is -ENOENT. */
int catalog_find(const struct catalog *c, const char *path, size_t length, uint64_t *ino);

/* Made of a file's path, size and mtime: the same on every node, and after a remount while the file did not change. */
struct digest catalog_file_identity(const struct catalog *c, uint32_t file);
/* 64 bits of it: seed the checksums of the file's stored values, so that a value never passes for another file's. */
uint64_t catalog_file_seed(const struct catalog *c, uint32_t file);
/* Made of the identity and of what the ctime said, which can be another on each node. Finds what this node has kept of
 * a file in a catalog with other numbers; what it kept of bytes that the file has no more is of another version. */
struct digest catalog_file_version(const struct catalog *c, uint32_t file);

#endif
