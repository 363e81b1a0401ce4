/* The mounts that are up, or were: found without ever blocking on one that hangs.
 *
 * A mount is known by its line in /proc/self/mountinfo, which says whose it is, and by that user's keeper, a process
 * `dealfs-keeper STATE` whose configuration names the mountpoint. Root takes the configuration of another user's mount
 * from dealfs-mounter where there is one, and never from a file. A mount made by `dealfs run` has a keeper and no
 * such line. What may block (any look into a mount) is done by a child under a time limit: see guard.h. */
#ifndef CLI_LIVE_LIVE_H
#define CLI_LIVE_LIVE_H

#include "fs/attach/config.h"
#include "fs/base/str.h"

#include <stdbool.h>
#include <sys/types.h>

enum live_health {
    LIVE_UP,        /* mounted here, and it answers */
    LIVE_ELSEWHERE, /* its keeper lives in another mount namespace (`dealfs run`) */
    LIVE_HUNG,      /* mounted here, but no answer came in time */
    LIVE_DEAD,      /* mounted here, but its processes are gone: everything in it says ENOTCONN */
};

enum { LIVE_PROBE_SECONDS = 5 };

struct live {
    char *mountpoint;
    char *source;
    char *control; /* the folder with `control`, `status` … as reached from here; NULL: not reachable (dead) */
    pid_t keeper;  /* 0: none found */
    uid_t uid;     /* whose it is */
    gid_t gid;
    pid_t mounter; /* root's process that mounted for another user; 0: none */
    enum live_health health;
    unsigned major, minor;      /* st_dev of the data mount; 0:0 when elsewhere. The minor is what attach_abort takes */
    bool configured;            /* `config` has been read; only with a keeper */
    struct mount_config config; /* the state directory is config.state */
};

/* The mount of MOUNTPOINT. 0; -ENOENT: no dealfs mount is there; else -errno. `why` gets the line for people. The path
 * itself is looked into by a guarded child only. */
int live_find(const char *mountpoint, struct live *live, struct str *why);
/* All mounts: of this user, or for root everybody's; sorted by mountpoint. `each` borrows `live`; non-zero ends it and
 * is returned. */
int live_each(int (*each)(void *user, const struct live *live), void *user);
void live_fini(struct live *live);

const char *live_health_text(enum live_health health); /* "up", "in another namespace", "hangs", "dead" */
/* The same, and of one that hangs because its server is stopped: what comes of that. */
void live_say_health(const struct live *live, struct str *out);

/* Wait until the keeper and everything else of a mount has ended, so that its memory and sockets are given back.
 * 0 or -ETIMEDOUT. */
int live_wait_gone(const struct live *live, unsigned seconds);

#endif
