/* Which position of one rank's list is to be fed next, by what its loader was seen to read. Pure.
 *
 *        settled          read, or about to be       fed, not read       to come
 *   0 ───────────── base ───────────────── reached ─────────────── fed ─────────── count
 *
 * A loader with several workers reads roughly in the list's order, so that there are holes behind `reached`: what is
 * fed and unread there counts as ahead until it lies too far behind, or is too much. A read far from the window, or of
 * what was read before, moves nothing by itself. When most of the last reads were such and lie close together, the
 * loader has jumped, and the window follows it. Where they lie all over the list the loader reads another order: then
 * nothing is fed until there is sense in it again. */
#ifndef FS_FEED_WINDOW_H
#define FS_FEED_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

enum { WINDOW_FARS = 8, WINDOW_RECENT = 64 };

/* What a window asks about files. */
struct window_files {
    uint64_t (*bytes)(void *user, uint32_t file); /* that are fed of it: always the same of a file */
    bool (*visible)(void *user, uint32_t file);   /* is its reading seen? */
    void *user;
};

struct window {
    const struct window_files *files;
    const uint32_t *file; /* of each position */
    uint32_t count;
    uint32_t base, reached, fed;
    uint32_t trust;  /* so many positions it may be ahead: it grows with reads that were foreseen */
    uint64_t room;   /* bytes that it may be ahead; whose this is sets it */
    uint64_t ahead;  /* bytes from `base` on that are fed and unread */
    uint64_t passed; /* of them, those before `reached` */
    uint64_t *marks; /* a bit for each position: it was read; then one for each: it was fed */
    uint32_t read, late, again;
    uint32_t strays; /* of the last reads */
    uint32_t far[WINDOW_FARS], fars;
    uint32_t recent[WINDOW_RECENT], recents;
};

/* -ENOMEM. `file` has `count` entries and is the caller's, as long as the window lives. */
int window_init(struct window *w, const struct window_files *files, const uint32_t *file, uint32_t count);
void window_fini(struct window *w);
void window_restart(struct window *w);                  /* as after init: the list is read again */
void window_resume(struct window *w, uint32_t reached); /* after init: so far the loader has come */

/* What a read of a position would mean. */
enum window_rate {
    WINDOW_STRAY,    /* it is far away, or was read before */
    WINDOW_NEAR,     /* the loader may be there by now */
    WINDOW_AHEAD,    /* it was fed for this */
    WINDOW_RECENTLY, /* it is being read: a file takes several reads */
};
enum window_rate window_rate(const struct window *w, uint32_t position);
/* It was read; its rate is NEAR or AHEAD. */
void window_read(struct window *w, uint32_t position);
/* It was read and is a stray. True: the window has followed the loader there. */
bool window_stray(struct window *w, uint32_t position);
/* The next one to be fed, which counts as fed from then on. False: there is none, or no room. */
bool window_take(struct window *w, uint32_t *position);
bool window_is_read(const struct window *w, uint32_t position);
/* The loader says that it has read all before a position, and nothing else. */
void window_told(struct window *w, uint32_t position);
void window_leave(struct window *w); /* the loader is in another list: nothing of this is ahead any more */

#endif
