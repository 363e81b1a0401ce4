/* This node, for all that works on its part in a world. */
#ifndef FS_WORLD_SELF_H
#define FS_WORLD_SELF_H

#include "fs/store/store.h"
#include "fs/wire/ring.h"
#include "fs/world/extents.h"
#include "fs/world/shelf.h"

#include <sys/types.h>

struct blob_question {
    uint32_t node; /* asks */
    uint64_t key, offset;
};

/* Borrowed, all of it, until peers_destroy. */
struct peers_config {
    const char *state;
    const struct catalog *catalog; /* NULL: the first courier brings it, see `install` */
    const char *id, *host;
    uint64_t options;       /* hash of those that must be the same everywhere */
    uint64_t peer_timeout;  /* nanoseconds */
    bool exchange;          /* samples are to move: dealing leaves room for that */
    uint64_t exchange_rate; /* bytes per second that are pulled while samples move; 0: no bound */
    const char *mountpoint;
    uint32_t groups;          /* as this node was told; 0: as the others */
    uint32_t resize, quality; /* how images are shown; 0: as they are */
    bool restarted; /* not the mount's first server: the world that the one before was in is still this node's */
    struct world_mark *mark;                                                 /* NULL: none */
    void (*command)(void *user, enum world_command command, uint64_t token); /* from another node */
    void (*joined)(void *user); /* or NULL: a world lives, or lives again after a restart */
    /* What another node asks for that is no sample: at most `room` bytes of it, whose number is returned, and the
     * length of the whole. Called by threads that others wait for. -ENOENT: there is none. NULL: none of anything. */
    ssize_t (*blob)(void *user, const struct blob_question *question, void *to, size_t room, uint64_t *length);
    /* The catalog lies at `path`: put it into the state directory, open it and a store, and call peers_fill. Called
     * once, unless it fails. */
    int (*install)(void *user, const char *path);
    /* Before that, with `resize`: the source's catalog lies at `path`; this node's part is to be resized, by what
     * `courier`, a descriptor of the caller's, is for. */
    int (*resizes)(void *user, const char *path, int courier);
    void *user;
};

struct self {
    struct peers_config config;
    /* Set by peers_fill, before there is a world, and constant from then on: */
    struct store *store;
    struct extents *extents;
    struct shelf *shelf;                       /* from the beginning */
    uint64_t began;                            /* when this server did */
    atomic_int unsaved;                        /* why the world could not be saved; 0: it is */
    _Atomic uint64_t moved;                    /* k of the last turn whose bytes have all come here */
    _Atomic uint64_t sent_samples, sent_bytes; /* so far: to who owns it now, and asked BEFORE */
    _Atomic uint64_t timeouts, bad;            /* so far: fetches that timed out, replies that did not verify */
};

#endif
