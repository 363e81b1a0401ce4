/* The files below plan/: the reply to a `plan` request under the name of its pairs, as an ordinary file.
 *
 * A look-up only reads the name, for the kernel locks the directory meanwhile. The plan is made at the first GETATTR,
 * OPEN or READ; of these the kernel sends the first one before anybody sees the size, since that of the look-up does
 * not count (a timeout of 0). The text is kept for a while and otherwise made again, the same, from name and layout.
 *
 * An inode number has two parts. One says what the file means: name, layout and list of the moment of the look-up, so
 * that a name comes back as another inode when it means something else; by this part alone files are found, so that
 * what is open outlives its server once the name has been looked up again. The other is new for each file that is
 * entered here: a look-up that does not know the size must not answer with an inode whose size the kernel knows, for it
 * would cut off who reads it. */
#ifndef FS_CONTROL_PLAN_FILES_H
#define FS_CONTROL_PLAN_FILES_H

#include <fuse_lowlevel.h>
#include <stdbool.h>

struct kept;
struct plan_files;

struct plan_files *plan_files_create(void); /* NULL: no memory */
void plan_files_destroy(struct plan_files *files);
struct kept *plan_files_kept(struct plan_files *files); /* the contents */

/* Replies with the entry; ENOENT: not a name of pairs; else refused, as `errors` says. */
void plan_files_lookup(fuse_req_t req, const char *name);
enum file_operation { FILE_GETATTR, FILE_OPEN, FILE_READ };
/* Replies; ESTALE: the file is not known (any more). What only making finds out is refused by it, as `errors` says.
 * `size` and `offset` are of FILE_READ. */
void plan_files_answer(fuse_req_t req, enum file_operation operation, uint64_t ino, size_t size, uint64_t offset);

#endif
