/* The files below plan/: the reply to a `plan` request as an ordinary file, whose name is the request's pairs.
 *
 * A lookup only parses the name, because the kernel locks the directory meanwhile. The plan is made by the first
 * GETATTR, OPEN or READ. The kernel sends one of these before it shows the size to anybody: the lookup's size has a
 * timeout of 0. The text is cached for a while; later it is made again from name and layout, with the same result.
 *
 * An inode number has two parts:
 *
 *   meaning  depends on name, layout and list at the time of the lookup. If a name gets another meaning, it gets
 *            another inode. Files are found by this part only, so that open files survive their server.
 *   entry    new for each file that is entered here. A lookup does not know the size, so it must not reply with an
 *            inode whose size the kernel already knows: that would truncate the file for its readers. */
#ifndef FS_CONTROL_PLAN_FILES_H
#define FS_CONTROL_PLAN_FILES_H

#include <fuse_lowlevel.h>

struct kept;
struct plan_files;

struct plan_files *plan_files_create(void); /* NULL: no memory */
void plan_files_destroy(struct plan_files *files);
struct kept *plan_files_kept(struct plan_files *files); /* the cached contents */

/* Replies with the entry. ENOENT: the name is not made of pairs. Other refusals are recorded in `errors`. */
void plan_files_lookup(fuse_req_t req, const char *name);
enum file_operation { FILE_GETATTR, FILE_OPEN, FILE_READ };
/* Replies. ESTALE: the file is not known (any more). Errors that only making the plan can find are recorded in
 * `errors`. `size` and `offset` are for FILE_READ. */
void plan_files_answer(fuse_req_t req, enum file_operation operation, uint64_t ino, size_t size, uint64_t offset);

#endif
