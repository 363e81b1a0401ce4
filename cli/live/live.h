/* Existing and former mounts, found without ever blocking on one that hangs.
 *
 * A mount is found by its line in /proc/self/mountinfo, which shows its user, and by that user's keeper: a process
 * `dealfs-keeper STATE` whose configuration names the mountpoint. Root gets the configuration of another user's mount
 * from dealfs-mounter if there is one, and never from a file. A mount made by `dealfs run` has a keeper but no such
 * line. Whatever may block (any access to a mount) is done by a child with a time limit: see guard.h. */
#ifndef CLI_LIVE_LIVE_H
#define CLI_LIVE_LIVE_H

#include "fs/attach/config.h"
#include "fs/base/str.h"

#include <stdbool.h>
#include <sys/types.h>

enum live_health {
    LIVE_UP,        /* mounted here, and it answers */
    LIVE_ELSEWHERE, /* its keeper is in another mount namespace (`dealfs run`) */
    LIVE_UNKNOWN,   /* mounted here, but it could not be asked, or has no server just now */
    LIVE_HUNG,      /* mounted here, but it did not answer in time */
    LIVE_DEAD,      /* mounted here, but its connection has ended: every access fails with ENOTCONN */
};

enum { LIVE_USER_SECONDS = 30, LIVE_PROBES_MOST = 256 /* at the same time */ };

struct live {
    char *mountpoint;
    char *source;
    char *control; /* the folder with `control`, `status` …, as a path for this process; NULL: not reachable (dead) */
    pid_t keeper;  /* 0: none found */
    uid_t uid;     /* its user */
    gid_t gid;
    pid_t mounter; /* root's process that mounted for another user; 0: none */
    enum live_health health;
    unsigned major, minor;      /* st_dev of the data mount; 0:0 in another namespace */
    bool configured;            /* `config` was read; only with a keeper */
    struct mount_config config; /* the state directory is config.state */
};

uint64_t live_patience(void); /* how long one mount may take to answer: nanoseconds */

/* The mount at MOUNTPOINT. 0; -ENOENT: no dealfs mount is there; else -errno. `why` gets a line for people. The path
 * itself is accessed only by a guarded child. */
int live_find(const char *mountpoint, struct live *live, struct str *why);
/* All mounts of this user, or for root of every user, sorted by mountpoint. `each` borrows `live`; a nonzero result
 * ends the loop and is returned. */
int live_each(int (*each)(void *user, const struct live *live), void *user);
/* The same as an array. The caller frees it with live_list_free. */
int live_list(struct live **list, size_t *count);
void live_list_free(struct live *list, size_t count);
void live_fini(struct live *live);
#define CLEANUP_LIVE __attribute__((cleanup(live_fini)))

const char *live_health_text(enum live_health health); /* "up", "in another namespace", "hangs" … */
/* The same; if the mount hangs because its server is stopped, also what will happen. */
void live_say_health(const struct live *live, struct str *out);

/* 0: no process of a mount has locked this state directory; -EWOULDBLOCK: one has; else -errno: unknown. */
int live_state_is_free(const char *state);
/* Wait until the keeper and everything else of a mount has ended, so that its memory and sockets are released. 0 or
 * -ETIMEDOUT, also if that cannot be seen. */
int live_wait_gone(const struct live *live, unsigned seconds);

#endif
