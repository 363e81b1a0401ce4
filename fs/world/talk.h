/* The conversation with the courier, over STATE/courier; what is said in which order stands in fs/wire/message.h.
 *
 *   nobody ──▶ TALK_NEW ──HELLO──▶ TALK_GREETED ──WORLD──▶ TALK_READY ──LIVE──▶ TALK_LIVE
 *             (RESIZE, CATALOG, HELLO again) │                                      ▲
 *                                            └────────────────RESUME────────────────┘ BEGIN, COMPUTE, SETTLED
 *
 *   listener.c  the thread: whom it talks to, and that a frame comes
 *   joining.c   what is said until the world lives
 *   turning.c   what is said when the layout of a living world turns
 *   holdings.c  what this node holds, and what has room */
#ifndef FS_WORLD_TALK_H
#define FS_WORLD_TALK_H

#include "fs/wire/message.h"
#include "fs/world/membership.h"

struct talk {
    struct self *self;
    struct membership *membership;
    int wake; /* an eventfd: `stop`, or what lives is broken */
    atomic_bool stop;
    /* the thread's own: */
    int courier; /* socket; -1: nobody */
    uint32_t process;
    enum { TALK_NEW, TALK_GREETED, TALK_READY, TALK_LIVE } state;
    struct living *living;   /* from READY on */
    struct layout *computed; /* LIVE: what may follow the world's layout; or NULL */
};

/* What the courier said. */
struct talk_frame {
    uint32_t kind;
    void *payload;
    size_t n;
    int fds[MESSAGE_FDS];
};

/* Whether there is nobody any more for whom the thread works. Walks over all extents or files ask this now and then. */
bool talk_is_over(const struct talk *t);
/* A courier is told why: -ECANCELED. */
int talk_refuse(int courier, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The end of a world, or of a conversation before one. */
void talk_hang_up(struct talk *t, const char *why);
/* With the bytes of a layout, for the server after this one; NULL, or no memory for that: without. */
int talk_say_layout(struct talk *t, enum message_kind kind, const void *payload, size_t n, const struct layout *layout);
/* What came with a frame, else what is on the shelf. NULL: it is not there. */
struct layout *talk_find_layout(const struct talk *t, int fd, const struct digest *digest);
/* The world of now is in force already; that it cannot be saved is a line in the log, and in health. */
void talk_save(struct talk *t);

#endif
