/* Modes that the source has reduced since the scan. The catalog is frozen, but other users must not keep rights that
 * the source has taken from them: so the mount shows the catalog's mode without the rights that the source does not
 * grant now. It never shows more than the catalog.
 *
 * What is known here ends with the server: the next one learns it again. Only inodes whose mode has changed take
 * memory. Any thread; one lock, which is not taken while nothing has changed. */
#ifndef FS_STORE_MODES_H
#define FS_STORE_MODES_H

#include "fs/catalog/catalog.h"

struct modes;

int modes_create(const struct catalog *catalog, struct modes **modes);
void modes_destroy(struct modes *modes); /* NULL is allowed */

/* The source was looked at: `st` is what it said. A look that is older than another one changes nothing. */
void modes_note(struct modes *modes, uint64_t ino, const struct stat *st);
/* Removes rights from a mode of the catalog. */
mode_t modes_limit(struct modes *modes, uint64_t ino, mode_t mode);
bool modes_are_reduced(struct modes *modes); /* of any inode */

/* From now on, `changed` is called for each inode whose mode in the mount changes; and now for those that have changed
 * already. It is called without a lock, also by threads that read the source. */
void modes_listen(struct modes *modes, void (*changed)(void *user, uint64_t ino), void *user);

#endif
