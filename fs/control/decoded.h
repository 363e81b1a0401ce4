/* decoded/: a second tree of the dataset, with each picture as an array: decoded/PATH.npy, and with its shorter
 * side scaled decoded/PIXELS/PATH.npy.
 *
 * Nothing of it is kept: an inode's number says which directory or file of the catalog it is, and how large. A listing
 * shows every file, by its name alone; whether it is a picture, and how long the array, a look-up finds out, which a
 * worker does. Modes and owners are those of the source, so that who may not read a file cannot see its pixels. */
#ifndef FS_CONTROL_DECODED_H
#define FS_CONTROL_DECODED_H

#include "fs/base/json.h"
#include "fs/store/store.h"

#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stdint.h>

struct control;

/* These reply, some of them by a worker. */
void decoded_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void decoded_getattr(fuse_req_t req, fuse_ino_t ino);
void decoded_read(fuse_req_t req, fuse_ino_t ino, size_t size, uint64_t offset);
/* Of what is named `decoded` in the root: 0, or -EAGAIN without a catalog. */
int decoded_root(struct control *control, struct stat *st);
/* The children of a directory by place 0…; false past the last. Some places have no name: "". */
bool decoded_child(const struct control *control, uint64_t ino, uint64_t place, char *name, size_t room,
                   uint64_t *child, mode_t *type);

/* `decoded`; and `upstream`, what a mean sample takes to be fetched, and to be decoded, as this node has seen it. */
void decoded_add_status(struct json *json, struct control *control, const struct store_stats *stats);

#endif
