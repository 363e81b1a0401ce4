/* decoded/: a second tree of the dataset, with each image as an array: decoded/PATH.npy, and scaled to a shorter side
 * of PIXELS: decoded/PIXELS/PATH.npy.
 *
 * The tree needs no memory: an inode number contains the directory or file of the catalog, and the size. A listing
 * shows every file, by name only. A worker finds out on lookup whether it is an image, and how long the array is. Modes
 * and owners are those of the source, so that a user who may not read a file cannot see its pixels. */
#ifndef FS_CONTROL_DECODED_H
#define FS_CONTROL_DECODED_H

#include "fs/base/json.h"
#include "fs/store/store.h"

#include <fuse_lowlevel.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct control;

/* These reply, some of them by a worker. */
void decoded_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void decoded_getattr(fuse_req_t req, fuse_ino_t ino);
void decoded_read(fuse_req_t req, fuse_ino_t ino, size_t size, uint64_t offset);
/* Attributes of `decoded` in the root: 0, or -EAGAIN without a catalog. */
int decoded_root(struct control *control, struct stat *st);
/* Children of a directory by place, from 0; false: after the last one. Some places have no name: "". */
struct decoded_entry {
    char name[NAME_MAX + 1];
    uint64_t ino;
    mode_t type;
};
bool decoded_child(const struct control *control, uint64_t ino, uint64_t place, struct decoded_entry *entry);

/* `decoded`; and `upstream`: the mean time to fetch and to decode a sample, as measured by this node. */
void decoded_add_status(struct json *json, struct control *control, const struct store_stats *stats);

#endif
