/* The store, as tests of the control mount want it: it stands here instead of the real one. */
#ifndef TESTS_FS_CONTROL_FAKE_STORE_H
#define TESTS_FS_CONTROL_FAKE_STORE_H

#include "fs/store/store.h"

enum { FAKE_CHOSEN = 16 };
extern struct fake_store {
    struct store_stats stats; /* what it says */
    struct stage_progress progress;
    int start_error, stops; /* of staging */
    uint32_t chosen;        /* files of the last start; 0: all */
    uint32_t file_at[FAKE_CHOSEN];
    uint32_t file; /* that it has, in this tier: */
    enum tier_name tier;
} fake;

#endif
