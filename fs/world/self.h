/* This node, for all modules that work on its part in a world. */
#ifndef FS_WORLD_SELF_H
#define FS_WORLD_SELF_H

#include "fs/store/store.h"
#include "fs/wire/ring.h"
#include "fs/world/extents.h"
#include "fs/world/shelf.h"

#include <sys/types.h>

struct blob_question {
    uint32_t node;        /* the node that is asked; at that node, the one that asks */
    uint64_t key, offset; /* offset: that of a piece, BLOB_PIECE times its number */
};

/* All of it is borrowed until peers_destroy. */
struct peers_config {
    const char *state;
    const struct catalog *catalog; /* NULL: the first courier brings it; see `install` */
    const char *id, *host;
    uint64_t options;       /* hash of the options that must be the same on all nodes */
    uint64_t peer_timeout;  /* nanoseconds */
    bool exchange;          /* mounted with `exchange`: layouts leave room for moving samples */
    uint64_t exchange_rate; /* maximum bytes per second that are pulled by a move; 0: unlimited */
    const char *mountpoint;
    uint32_t groups;          /* as configured; 0: as configured on the other nodes */
    uint32_t resize, quality; /* how images are shown; 0: unchanged */
    bool restarted;           /* not the mount's first server: it resumes the previous server's world */
    struct world_mark *mark;  /* NULL: none */
    void (*command)(void *user, enum world_command command, uint64_t token); /* a command of another node */
    void (*joined)(void *user); /* NULL, or called when a world lives, also again after a restart */
    /* Another node asks for an object other than a sample: copy at most `room` bytes of it and return how many; set
     * `length` to the whole. Must be quick, since ring threads call it. -ENOENT: there is none. NULL: there are no
     * objects. */
    ssize_t (*blob)(void *user, const struct blob_question *question, void *to, size_t room, uint64_t *length);
    /* The catalog is at `path`: move it into the state directory, open it and a store, and call peers_fill. Called
     * until it succeeds. `why`: empty, or the reason of a failure. */
    int (*install)(void *user, const char *path, struct str *why);
    /* Before that, with `resize`: the source's catalog is at `path`; resize this node's part. The resizer talks to
     * `courier`, a descriptor that the caller owns. */
    int (*resizes)(void *user, const char *path, int courier);
    void *user;
};

struct self {
    struct peers_config config;
    /* Set by peers_fill before there is a world, then constant: */
    struct store *store;
    struct extents *extents;
    struct shelf *shelf;                       /* set from the beginning */
    uint64_t began;                            /* start time of this server */
    atomic_bool joined;                        /* a courier has come since */
    atomic_int unsaved;                        /* errno of the failed save of the world; 0: saved */
    _Atomic uint64_t moved;                    /* k of the last turn whose bytes have all arrived here */
    _Atomic uint64_t sent_samples, sent_bytes; /* totals: sent to new owners in answers to BEFORE */
    _Atomic uint64_t timeouts, bad;            /* totals: fetches that timed out, answers that failed verification */
};

#endif
