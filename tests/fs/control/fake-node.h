/* A node of a world, for tests of the control mount: its store and its peers stand here instead of the real ones, and
 * say what a test wants them to say. A control without peers has none here either. */
#ifndef TESTS_FS_CONTROL_FAKE_NODE_H
#define TESTS_FS_CONTROL_FAKE_NODE_H

#include "fs/attach/config.h"
#include "fs/base/str.h"
#include "fs/store/store.h"
#include "fs/world/layout.h"
#include "fs/world/peers.h"

struct control;

enum { FAKE_CHOSEN = 16 };
extern struct fake_store {
    struct store_stats stats; /* what it says */
    struct stage_progress progress;
    int start_error, stops; /* of staging */
    uint32_t chosen;        /* files of the last start; 0: all */
    uint32_t file_at[FAKE_CHOSEN];
    bool reduced;  /* the source has reduced a mode */
    uint32_t file; /* that it has, in this tier: */
    enum tier_name tier;
} fake;

/* --- the peers --- */

enum { NODES = 3 };

extern struct world_view world; /* what they say */
extern struct peer_view peer[NODES];
extern struct layout *layout, *later; /* of three files: owned by 2, none, 1; and by 1, none, 2 */
extern struct fake_peers {
    int views;            /* that are not released */
    int told, tell_error; /* commands, */
    enum world_command command;
    uint64_t token;        /* and the last of them */
    int asked, turn_error; /* for a turn; 0: the world turns */
    uint64_t seconds;      /* that the last one may take */
    struct turn_record next;
    struct control *lists; /* node 0 has its lists, and node 2 cannot be asked; NULL: nobody can */
    int false_answers;     /* of node 0, the next ones, have this in each byte of the digest: */
    unsigned char false_digest;
} others;

/* --- a mount --- */

extern struct catalog *catalog;   /* of fake_begin */
extern struct mount_config mount; /* the same */

void fake_file(const char *path, size_t bytes);
struct catalog *fake_scan(void); /* of what lies in the test's directory, in source */
void fake_begin(void);           /* node 1 of a world, with a mount of three files, a, b and c, and a folder d */
void fake_end(void);
void fake_reset(void); /* all is well, and nothing has been asked */
struct control *fake_create(bool filled);

/* --- what it says --- */

/* A value of a JSON text, as it stands there. */
void fake_check(const struct str *json, const char *path, const char *expected);
/* Several: "PATH=VALUE PATH=VALUE", where values have no spaces, and ' stands for ". */
void fake_checks(const struct str *json, const char *expected);
void fake_status(struct control *control, struct str *json);
/* The reply to a request, or the reason why it fails. */
int fake_run(struct control *control, const char *request, struct str *reply);

#endif
