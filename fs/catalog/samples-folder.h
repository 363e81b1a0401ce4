/* The folder of a table of sample lists: one file per list, by its name. For the files of this folder only. */
#ifndef FS_CATALOG_SAMPLES_FOLDER_H
#define FS_CATALOG_SAMPLES_FOLDER_H

#include "fs/catalog/samples.h"

struct samples_folder {
    const struct catalog *catalog;
    char *path; /* NULL: lists are not kept; the owner frees it */
};

bool samples_folder_name(const char *name); /* may a list have it? */

/* Calls `show` with each list in it, which takes the reference over; NULL: its name is removed. What is damaged, or
 * cannot be read here, is left out with a warning, and so are all lists where there is no folder. -ENOMEM. */
int samples_folder_open(struct samples_folder *folder, const struct catalog *catalog, const char *path,
                        int (*show)(void *user, const char *name, uint64_t version, struct samples *list), void *user);
/* Writes a list, and takes it back from disk: what is kept is mapped. Without a folder it is in memory. */
int samples_folder_keep(const struct samples_folder *folder, const char *name, uint64_t version, struct samples *s,
                        struct samples **kept);
void samples_folder_delete(const struct samples_folder *folder, const char *name);

#endif
