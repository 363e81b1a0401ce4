/* The parts of struct flight, for flight.c, fetch.c, serve.c and redeal.c. */
#ifndef MPI_FLIGHT_INSIDE_H
#define MPI_FLIGHT_INSIDE_H

#include "mpi/flight.h"

enum {
    RING_FIRST_MS = 1, /* until a peer that does not answer is rung again; then twice that each time */
    LATEST = 3,        /* commands kept for the next server: the last of each kind */
};

struct fetch {
    struct flight *flight;
    struct fetch *next; /* QUEUED or ASKED, of one peer */
    struct hold *hold;
    struct ring_message asked; /* as it came */
    int tag;
};

struct fetch_list {
    struct fetch *first, **last;
};

struct serve {
    struct flight *flight;
    bool used, waiting, answering, again; /* again: sent twice, the slot is not free before the second */
    struct serve *next_free;
    uint32_t place; /* the lower half of its token; the upper one: */
    uint32_t generation;
    uint32_t peer;
    struct wire_message asked;
    uint64_t wait_at; /* when WAIT is to be said again */
    bool wait_busy;   /* the last one has not left yet */
    uint32_t slot;
    struct hold *hold; /* ANSWERING with a payload */
    struct wire_failure failure;
};

/* A deal, as this node takes part in it; node 0 also conducts it. */
struct redeal {
    enum {
        REDEAL_NONE,
        REDEAL_ASKED, /* the server counts its room */
        REDEAL_TOLD,  /* the rooms of all are awaited */
        REDEAL_DEAL,  /* the server deals */
        REDEAL_DEALT, /* what becomes of it is awaited */
    } step;
    uint64_t number;          /* of the deal */
    uint64_t settled;         /* the round of staging after which there was one; 0: none yet */
    struct wire_rooms *inbox; /* other nodes: for the rooms of all; made at the first deal */
    bool receiving;           /* it is posted */
    /* node 0: */
    uint64_t deals;      /* so far */
    struct rooms *rooms; /* as they are told; NULL: none is conducted */
    uint64_t conducted;  /* the round of staging that it follows */
    bool dealing;        /* the rooms are known, directories are awaited */
    uint64_t deadline;
    uint32_t answers;        /* to the present question */
    struct digest directory; /* as the first has told it */
};

struct peer {
    bool gone, quit;
    bool told;      /* has answered the present question of a deal */
    bool ring;      /* it was sent something */
    bool news_busy; /* the last news have not left yet */
    unsigned asked, serves;
    struct fetch_list queue, flying;
    uint64_t ring_at; /* again, when `asked` are not answered */
    unsigned ring_ms;
};

struct inbox {
    struct flight *flight;
    char bytes[WIRE_LONG + 8]; /* what is too long is seen */
};

struct flight {
    struct flight_config c;
    struct peer *peer; /* nodes of them */
    uint32_t *bell;    /* whom to ring: `bells` of them */
    uint32_t bells;
    int next_tag;
    uint8_t busy_in[RING_IN], busy_out[RING_OUT]; /* slots of the present ring that MPI has */
    struct serve **serve;                         /* by the lower half of its token */
    size_t serves, serve_room;
    struct serve *free_serve;
    unsigned asked, open; /* fetches in flight; serves not ended */
    uint64_t wait_next;   /* the earliest wait_at, or earlier */
    struct hold *hold;    /* whose slots busy_* are; borrowed from the link */
    bool live;            /* the server has been given what is open */
    uint64_t news_at, news_seen, heart_seen, heart_at;
    struct wire_news news_said;
    uint32_t staging; /* as they were said last */
    uint64_t stage_round;
    struct ring_message command[LATEST]; /* kind 0: none */
    struct redeal redeal;
    bool gone_said, quit_said, quit_seen, broken;
    struct inbox inbox[MESSAGES_POSTED];
};

/* flight.c */
void flight_fail(struct flight *f, int error, const char *what); /* the world is over */
void flight_say_all(struct flight *f, const struct wire_message *message);
void flight_say(struct flight *f, uint32_t to, const struct wire_message *message, bool *busy);
void flight_want_bell(struct flight *f, uint32_t node);

/* redeal.c */
void redeal_want(struct flight *f, uint64_t round); /* our server, that of node 0 */
void redeal_message(struct flight *f, uint32_t from, const struct wire_message *m);
void redeal_look(struct flight *f); /* has the server answered? */
void redeal_server_came(struct flight *f);
void redeal_server_left(struct flight *f);
void redeal_tick(struct flight *f, uint64_t now);
void redeal_fini(struct flight *f);

/* fetch.c */
void fetch_list_init(struct fetch_list *l);
void fetch_list_fini(struct fetch_list *l);
void fetch_take(struct flight *f, const struct ring_message *m); /* from the server */
void fetch_start(struct flight *f, uint32_t node);               /* those that queue, as far as they may */
void fetch_wait(struct flight *f, uint32_t node, uint32_t tag);  /* WAIT has come */
void fetch_drop_queued(struct flight *f);

/* serve.c */
void serve_question(struct flight *f, uint32_t from, const struct wire_message *m); /* from a peer */
void serve_reply(struct flight *f, const struct ring_message *m);                   /* from the server */
void serve_give_all(struct flight *f); /* all that are open: to a new server */
void serve_wait_all(struct flight *f); /* say WAIT */
void serve_fail_all(struct flight *f); /* the node is down */
void serve_tick(struct flight *f, uint64_t now);
void serve_free_all(struct flight *f);

#endif
