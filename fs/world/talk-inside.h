/* What the parts of the conversation with the courier share.
 *
 *   talk.c      the thread: who is talked to, and the end
 *   join.c      what is said until this node lives in a world
 *   redeal.c    what is said when a living world deals what had no owner
 *   holdings.c  what this node holds, and what has room
 */
#ifndef FS_WORLD_TALK_INSIDE_H
#define FS_WORLD_TALK_INSIDE_H

#include "fs/world/attach.h"
#include "fs/world/inside.h"

enum { STEP = 4096 }; /* extents or files between two looks at whether it is over */

struct talk {
    struct peers *peers;
    int listening, wake; /* wake: an eventfd: `stop`, or the link is broken */
    atomic_bool stop, broken;
    bool running;
    pthread_t thread;
    /* the thread's own: */
    int courier; /* socket; -1: nobody */
    uint32_t process;
    enum { TALK_NEW, TALK_GREETED, TALK_READY, TALK_LIVE } state;
    struct attach_hello hello;
    struct link *link;          /* from READY on */
    struct directory *computed; /* LIVE: what may follow the world's directory; or NULL */
    bool turned;                /* by RESUME: what was dealt meanwhile is not staged yet */
};

/* A frame that came. */
struct said {
    uint32_t kind;
    void *payload;
    size_t n;
    int fds[ATTACH_FDS];
};

/* Whether there is nobody any more for whom the thread works. */
bool talk_is_over(struct talk *t);
/* The courier is told why: -ECANCELED. */
int talk_refuse(struct talk *t, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Answer a frame: 0; an error ends the conversation. */
int join_answer(struct talk *t, struct said *said);
int redeal_answer(struct talk *t, const struct said *said);

/* All that is held, and a bit for each extent of which any byte is. -ECONNRESET: it is over. */
int holdings_look(struct talk *t, uint64_t *bits, struct holding *holding);
/* A tier that the server before this one still has open is not known yet. */
void holdings_wait(struct talk *t);
/* The cost that still has room when all is here that this node owns. */
int holdings_room(struct talk *t, const struct world *w, uint64_t *room);
/* What is held and another node's is given up: always, and its room is here when this returns; or where it is needed.
 */
void holdings_trim(struct talk *t, const struct world *w, bool always);

#endif
