/* The catalog: the frozen index of the source, an immutable file that every process of a node maps.
 *
 * Inodes are numbered from 1: first the directories (1 is the root), then the regular files, then the symlinks. Files
 * are in the order of samples: file number f (from 0) is sample f of the list `all`, and has inode catalog_file_ino(f).
 * Children of one kind of a directory are contiguous and sorted by name (bytes). The FUSE node id of an inode is its
 * number.
 *
 * All functions except open and close only read the mapping: no I/O, no locks, any thread. */
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

/* What the scan left out or reports. */
struct catalog_notes {
    uint64_t specials;       /* sockets, fifos, devices: left out */
    uint64_t links_to_files; /* symlinks to regular files: shown as symlinks, not samples */
    uint32_t hidden;         /* 1: the source has its own .dealfs in its root */
    uint32_t acls;           /* 1: the modes respect ACLs, see state_limit_mode; other users may use the mount */
    uint64_t unreadable;     /* directories that could not be read: shown empty, named in the log */
    uint64_t linked;         /* files with several hard links: one sample each */
};

/* 0; -ENOENT; -EBADMSG: truncated, altered or of another version (rebuild it). The file is checked against its
 * checksum, and every offset in it against its bounds, so that nothing in an open catalog leads outside of it. */
int catalog_open(const char *path, struct catalog **catalog);
int catalog_open_fd(int fd, struct catalog **catalog); /* of an open file, which may be closed afterwards */
/* Borrows the bytes, which must be aligned to 8 (-EINVAL); for tests and fuzzing. */
int catalog_open_memory(const void *bytes, size_t n, struct catalog **catalog);
void catalog_close(struct catalog *catalog);

uint64_t catalog_directories(const struct catalog *c);
uint32_t catalog_files(const struct catalog *c);
uint64_t catalog_links(const struct catalog *c);
uint64_t catalog_inodes(const struct catalog *c); /* the sum: inodes are 1 to this */
uint64_t catalog_bytes(const struct catalog *c);  /* sum of the files' sizes */
uint64_t catalog_memory(const struct catalog *c); /* length of the catalog file */
/* Of the dataset: the same on every node, independent of the scan. */
const struct digest *catalog_digest(const struct catalog *c);
/* Equal if every file has the same number and version in both catalogs. */
const struct digest *catalog_versions(const struct catalog *c);
uint64_t catalog_scanned(const struct catalog *c); /* time of the scan: nanoseconds since 1970 */
const struct catalog_notes *catalog_notes(const struct catalog *c);

/* A regular file. */
struct catalog_file {
    uint64_t size;
    int64_t mtime; /* nanoseconds since 1970 */
};
struct catalog_file catalog_file(const struct catalog *c, uint32_t file);
/* Tiers do not cache files above this size: they can only be sparse. */
#define CATALOG_KEPT_MOST (UINT64_C(1) << 44)
static inline uint64_t catalog_kept_size(const struct catalog *c, uint32_t file)
{
    uint64_t size = catalog_file(c, file).size;
    return size <= CATALOG_KEPT_MOST ? size : 0;
}
/* Have its mode, owner or links changed since the scan that first saw its bytes? (FORMAT, versions) */
bool catalog_was_excused(const struct catalog *c, uint32_t file);
struct file_state catalog_state(const struct catalog *c, uint32_t file); /* as seen by the scan */
uint64_t catalog_file_ino(const struct catalog *c, uint32_t file);
int catalog_ino_file(const struct catalog *c, uint64_t ino, uint32_t *file); /* -EISDIR, -EINVAL (link), -ENOENT */

/* 32 bits that distinguish an inode from the same number in another dataset, for programs that keep numbers across
 * mounts. Always 0 for the root. */
uint32_t catalog_generation(const struct catalog *c, uint64_t ino);

/* Any inode. st_ino, st_mode, st_nlink, st_uid, st_gid, st_size, st_blocks, st_blksize, times (all mtime). */
int catalog_stat(const struct catalog *c, uint64_t ino, struct stat *st);
/* May every user list every directory and read every file, by their modes? */
bool catalog_is_public(const struct catalog *c);
const char *catalog_name(const struct catalog *c, uint64_t ino, size_t *length);        /* NUL-terminated; root: "" */
uint64_t catalog_parent(const struct catalog *c, uint64_t ino);                         /* of the root: the root */
const char *catalog_link_target(const struct catalog *c, uint64_t ino, size_t *length); /* NULL: not a symlink */

/* 0, -ENOENT or -ENOTDIR. */
int catalog_lookup(const struct catalog *c, uint64_t directory, const char *name, size_t length, uint64_t *ino);

/* Children of a directory by place, from 0: subdirectories, files, symlinks; O(1) each. -ENOENT: after the last one. */
int catalog_child(const struct catalog *c, uint64_t directory, uint64_t place, uint64_t *ino);

/* Number of directories that lack entries for another reason than missing rights: their paths are too long, or the
 * source returned an error. `first` (may be NULL): one of them. */
uint64_t catalog_lacking(const struct catalog *c, uint64_t *first);

/* The path below the source, without leading slash, NUL-terminated. Returns its length, or -ENAMETOOLONG. PATH_MAX is
 * too short for some trees: paths may have up to CATALOG_PATH_MAX bytes. */
enum { CATALOG_PATH_MAX = 65536 };
long catalog_path(const struct catalog *c, uint64_t ino, char *buffer, size_t n);
/* The inode at a relative path; "." and empty components are skipped, ".." is -ENOENT. */
int catalog_find(const struct catalog *c, const char *path, size_t length, uint64_t *ino);

/* Computed from a file's path, size and mtime: the same on every node, and after a remount if the file has not
 * changed. */
struct digest catalog_file_identity(const struct catalog *c, uint32_t file);
/* 64 bits of it: the seed of the checksums of the file's stored values, so that no value passes for another file's. */
uint64_t catalog_file_seed(const struct catalog *c, uint32_t file);
/* Computed from the identity and the ctime, so it may differ between nodes. It identifies cached data of a file under a
 * catalog with other numbers; cached bytes of an earlier content have another version. */
struct digest catalog_file_version(const struct catalog *c, uint32_t file);

#endif
