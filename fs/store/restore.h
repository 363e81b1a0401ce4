/* Opening what a tier has stored: its database, and what in it is still good for today's catalog. */
#ifndef FS_STORE_RESTORE_H
#define FS_STORE_RESTORE_H

#include "fs/store/stock.h"
#include "fs/store/tier-folder.h"

/* 0: k->rocks is set, and the map leads to what was adopted. -EBUSY, or an error that may pass: to be tried again. */
int restore_stock(struct stock *k, const struct tier_folder *folder);

#endif
