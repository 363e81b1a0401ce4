/* The cuts of records that streams rename and read in several parts (fs/records/tar-rename.h). A cut needs a look at
 * each member of its record, so it is made once, by the READ that comes first; others wait for it. The last few are
 * kept, which have at most 128 KiB each. */
#ifndef FS_CONTROL_RECORD_CUTS_H
#define FS_CONTROL_RECORD_CUTS_H

#include <stdbool.h>
#include <stdint.h>

struct tar_cut;
struct record_cuts;

int record_cuts_create(struct record_cuts **cuts);
void record_cuts_destroy(struct record_cuts *cuts); /* no cut is in use; NULL is allowed */

struct record_cuts_wish {
    uint64_t stream, position; /* which record */
    int (*make)(void *user, struct tar_cut **cut);
    bool (*gave_up)(void *user); /* true: nobody waits any more */
    void *make_user, *gave_up_user;
};
struct kept_cut {
    const struct tar_cut *cut;
    int place; /* -1: nothing keeps it */
};
/* Waits while another thread makes it. What `make` returned; -EINTR: nobody waits any more. `cuts` NULL: always make
 * it. */
int record_cuts_get(struct record_cuts *cuts, const struct record_cuts_wish *wish, struct kept_cut *kept);
void record_cuts_put(struct record_cuts *cuts, struct kept_cut *kept);

#endif
