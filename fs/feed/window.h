/* Which position of a rank's list to feed next, by what its loader was seen to read. Pure.
 *
 *        settled          read, or about to be       fed, not read       to come
 *   0 ───────────── base ───────────────── reached ─────────────── fed ─────────── count
 *
 *   1. A loader with several workers reads roughly in the list's order, so there are holes behind `reached`. A hole
 *      that was fed counts as ahead until it is too far behind, or holes have too many bytes.
 *   2. A read that is far from the window, or of a position that was read before, moves nothing by itself.
 *   3. If most of the last reads were such and are close together, the loader has jumped: the window follows it.
 *   4. If they are all over the list, the loader reads in another order: nothing is fed until reads fit again. */
#ifndef FS_FEED_WINDOW_H
#define FS_FEED_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

enum { WINDOW_FARS = 8, WINDOW_RECENT = 64 };

/* What a window needs to know about files. */
struct window_files {
    uint64_t (*bytes)(void *user, uint32_t file); /* bytes to feed; constant per file */
    bool (*visible)(void *user, uint32_t file);   /* can its reads be seen? */
    void *user;
};

struct window {
    const struct window_files *files;
    const uint32_t *file; /* per position */
    uint32_t count;
    uint32_t base, reached, fed;
    uint32_t trust;  /* maximum positions ahead: grows with expected reads */
    uint64_t room;   /* maximum bytes ahead; set by the owner of the window */
    uint64_t ahead;  /* bytes from `base` on that were fed and not read */
    uint64_t passed; /* the part of `ahead` before `reached` */
    uint64_t *marks; /* one bit per position: it was read; then one per position: it was fed */
    uint32_t read, late, again;
    uint32_t strays; /* of the last reads */
    uint32_t far[WINDOW_FARS], fars;
    uint32_t recent[WINDOW_RECENT], recents;
};

/* -ENOMEM. `file` has `count` elements and is borrowed. */
int window_init(struct window *w, const struct window_files *files, const uint32_t *file, uint32_t count);
void window_fini(struct window *w);
void window_restart(struct window *w);                  /* as after init: the list is read again */
void window_resume(struct window *w, uint32_t reached); /* after init: the loader is at this position */

/* How well a read of a position fits. */
enum window_rate {
    WINDOW_STRAY,    /* far away, or read before */
    WINDOW_NEAR,     /* the loader may be here by now */
    WINDOW_AHEAD,    /* it was fed, and this read was expected */
    WINDOW_RECENTLY, /* it is being read: a file takes several reads */
};
enum window_rate window_rate(const struct window *w, uint32_t position);
/* It was read; its rate is NEAR or AHEAD. */
void window_read(struct window *w, uint32_t position);
/* It was read, and is a stray. True: the window has followed the loader to this position. */
bool window_stray(struct window *w, uint32_t position);
/* The next position to feed; it counts as fed afterwards. False: there is none, or no room. */
bool window_take(struct window *w, uint32_t *position);
bool window_is_read(const struct window *w, uint32_t position);
/* The loader reports that it has read exactly the positions before this one. */
void window_told(struct window *w, uint32_t position);
void window_leave(struct window *w); /* the loader is in another list: nothing counts as ahead any more */

#endif
