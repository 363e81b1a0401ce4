/* The folder of a table of sample lists: one file per list, by name. Only the files of this folder may include this. */
#ifndef FS_CATALOG_SAMPLES_FOLDER_H
#define FS_CATALOG_SAMPLES_FOLDER_H

#include "fs/catalog/samples.h"

struct samples_folder {
    const struct catalog *catalog;
    char *path; /* NULL: lists are not stored; the owner frees it */
};

bool samples_folder_name(const char *name); /* is the name allowed for a list? */

/* Calls `show` with each stored list, a reference; NULL: the name was removed. Damaged or unreadable lists are skipped
 * with a warning; so are all lists if there is no folder. -ENOMEM. */
int samples_folder_open(struct samples_folder *folder, const struct catalog *catalog, const char *path,
                        int (*show)(void *user, const char *name, uint64_t version, struct samples *list), void *user);
/* Writes a list and replaces it by the mapped file. Without a folder it stays in memory. */
int samples_folder_keep(const struct samples_folder *folder, const char *name, uint64_t version, struct samples *s,
                        struct samples **kept);
void samples_folder_delete(const struct samples_folder *folder, const char *name);

#endif
