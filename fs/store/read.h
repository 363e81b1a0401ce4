/* One read of the store, and the interface to other nodes, which may answer it. */
#ifndef FS_STORE_READ_H
#define FS_STORE_READ_H

#include "fs/store/answer.h"

#include <sys/queue.h>

struct store;
struct store_read;

enum place { PLACE_RAM, PLACE_SSD, PLACE_PEER, PLACE_SOURCE, PLACES };
extern const char *const place_names[PLACES];

/* One read. It belongs to the store from the call of store_read until `done`, or until store_read returns anything
 * other than -EINPROGRESS. */
struct store_read {
    struct span span;
    bool fed; /* a read of the feeder: all others take precedence wherever it waits */
    void (*done)(struct store_read *read, int error);
    /* NULL, or called once by store_read before anything that may take long. From then on, until `done` is called or
     * store_read returns anything other than -EINPROGRESS, store_cancel may be called. */
    void (*waits)(struct store_read *read);
    /* the answer: */
    struct answer answer; /* release it after use */
    enum place place;     /* where it came from */
    /* private to the store: */
    TAILQ_ENTRY(store_read) parked; /* where it waits */
    uint64_t asked;                 /* when it began to wait for a slot */
    bool pulled;                    /* no reader waits for it: see fair.h */
    uint64_t began;
    uint64_t lacked;    /* 1 + offset of the last byte that it parked for; 0: never parked */
    int tries;          /* how often it made no progress beyond that */
    bool waiting;       /* `waits` was called */
    bool here;          /* for another node: see store_load */
    bool before;        /* owned here, and to be asked of the previous owner */
    enum place brought; /* the slowest place that loads it waited for came from */
    bool quiet;         /* not counted */
    bool drawn;         /* only the disk is asked: see doubts.c */
    /* private to the peers: */
    struct peer_pull *pull; /* a thread waits for it, not the store */
    bool damaged;           /* the last answer failed verification */
    bool unshared;          /* a courier could not answer it without its server */
    uint32_t peer;          /* the node that was asked last */
    uint32_t small;         /* bytes of its answer, if it may be asked for together with others; else 0 */
};

TAILQ_HEAD(read_list, store_read); /* in order of arrival */

/* Called with the i-th requested value in stored form; the bytes are valid during the call. */
typedef int (*stored_take)(void *user, uint32_t i, const void *bytes, uint32_t length);

/* Other nodes, which own what this node does not. A read asks the tiers, then the owner, then the source. What this
 * node does not own never enters its tiers. */
struct store_peers {
    void *user;
    /* Does this node own the extent with this byte? Any thread, at any time. */
    bool (*keeps)(void *user, uint32_t file, uint64_t offset);
    /* Fetch a span of one extent from its owner or, with read->before, from the previous owner. -EINPROGRESS:
     * store_fetched will be called once, with the answer or an error. Otherwise nobody can be asked now. Never
     * waits. */
    int (*fetch)(void *user, struct store_read *read);
    /* Like store_cancel, for reads that wait there. NULL: they cannot be cancelled. */
    bool (*cancel)(void *user, struct store_read *read);
    /* Get stored values of one extent, owned here, from its previous owner; each is handed to `take`: 0. Called by
     * threads of the loader; waits, with a timeout. -ENOENT: there is no previous owner, or it lacks some; else they
     * are unavailable now, or the result of `take`. Some may have been taken. NULL: there are no previous owners. */
    int (*before)(void *user, const struct value_run *run, stored_take take, void *to);
    /* A load of a pull has ended: 0; -ENOSPC: no tier had room; -ENOENT: the previous owner lacks some of it; otherwise
     * it is unavailable now. */
    void (*pulled)(void *user, uint32_t number, const struct span *span, int error);
};

#endif
