/* Opens what a tier has stored: its database, and those contents that are valid for the current catalog. */
#ifndef FS_STORE_RESTORE_H
#define FS_STORE_RESTORE_H

#include "fs/store/stock.h"
#include "fs/store/tier-folder.h"

/* 0: k->rocks is set, and the map leads to adopted values. -EBUSY, or another error that may pass: try again. */
int restore_stock(struct stock *k, const struct tier_folder *folder);

#endif
