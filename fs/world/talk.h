/* The conversation with the courier, over STATE/courier. fs/wire/message.h defines the frames and their order.
 *
 *   no courier ──▶ TALK_NEW ──HELLO──▶ TALK_GREETED ──WORLD──▶ TALK_READY ──LIVE──▶ TALK_LIVE
 *              (RESIZE, CATALOG, HELLO again) │                                      ▲
 *                                             └────────────────RESUME────────────────┘ BEGIN, COMPUTE, SETTLED,
 *                                                                                      SEGMENT
 *
 *   listener.c  the thread: accepts a courier, reads frames
 *   joining.c   frames until the world lives
 *   turning.c   frames that turn the layout of a living world
 *   sharing.c   the RAM tier, which the courier may read
 *   holdings.c  what this node has cached, and what has room */
#ifndef FS_WORLD_TALK_H
#define FS_WORLD_TALK_H

#include "fs/wire/message.h"
#include "fs/world/membership.h"

struct talk {
    struct self *self;
    struct membership *membership;
    int wake; /* an eventfd: signals `stop`, or that the living world broke */
    atomic_bool stop;
    /* used by the thread only: */
    int courier; /* its socket; -1: no courier */
    uint32_t process;
    enum { TALK_NEW, TALK_GREETED, TALK_READY, TALK_LIVE } state;
    struct living *living;   /* set from READY on */
    struct layout *computed; /* in LIVE: the layout that may follow the current one; or NULL */
};

/* A frame from the courier. */
struct talk_frame {
    uint32_t kind;
    void *payload;
    size_t n;
    int fds[MESSAGE_FDS];
};

/* Has the conversation ended? Long walks over extents or files check this regularly. */
bool talk_is_over(const struct talk *t);
/* Send the courier the reason, and return -ECANCELED. */
int talk_refuse(int courier, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* End a world, or a conversation before one. */
void talk_hang_up(struct talk *t, const char *why);
/* Send a frame with the bytes of a layout, for a later server; without them if `layout` is NULL or memory is short. */
int talk_say_layout(struct talk *t, enum message_kind kind, const void *payload, size_t n, const struct layout *layout);
/* Take the layout from the frame's descriptor, else from the shelf. NULL: not found. */
struct layout *talk_find_layout(const struct talk *t, int fd, const struct digest *digest);
/* Save the world, which is in force already. A failure costs a line in the log and in health. */
void talk_save(struct talk *t);

#endif
