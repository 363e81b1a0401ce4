/* The files below plan/: the reply to a `plan` request under the name of its pairs, as an ordinary file.
 *
 * A file is made when its name is looked up, since its size must be true from the beginning. What the plan was made of, the
 * directory of that moment for one, is part of its inode number, so that a name comes back as another inode when it means
 * something else. The text is kept for a while and otherwise made again, the same, from name and directory. */
#ifndef FS_MOUNT_CONTROL_FILES_H
#define FS_MOUNT_CONTROL_FILES_H

#include "fs/mount/control/lists.h"
#include "fs/mount/control/stream.h"

#include <fuse_lowlevel.h>
#include <pthread.h>

#define INO_REQUEST (UINT64_C(1) << 62) /* set, and INO_LIST not, in the inode numbers of these files only */
static inline bool is_request_ino(uint64_t ino)
{
    return (ino & (INO_LIST | INO_REQUEST)) == INO_REQUEST;
}

enum { FILES_KNOWN = 4096 };

struct control;

struct request_file {
    uint64_t ino;            /* 0: none */
    struct digest directory; /* zeros: there never was a world */
    struct digest key;       /* of all that the plan was made of */
    char *name;
    uint64_t size;
    struct reply *text; /* NULL: dropped */
    uint64_t used;      /* when it was asked for last: a count */
};

struct files {
    pthread_mutex_t lock; /* of all below */
    struct request_file *file; /* FILES_KNOWN of them; NULL before the first */
    uint64_t most;  /* bytes of texts that are kept; the last one always is */
    uint64_t bytes; /* that are */
    uint64_t asked;
};

void files_init(struct files *files, uint64_t most);
void files_fini(struct files *files);

/* 0 and the entry; -ENOENT: not a name of pairs; -errno: refused, as `errors` says. */
int files_lookup(fuse_req_t req, const char *name, struct fuse_entry_param *entry);
void files_open(fuse_req_t req, uint64_t ino, struct fuse_file_info *fi); /* replies */
void files_read(fuse_req_t req, uint64_t ino, size_t size, uint64_t offset); /* replies */
int files_size(struct control *control, uint64_t ino, off_t *size); /* -ESTALE: not known (any more) */

#endif
