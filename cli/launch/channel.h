/* The messages between `dealfs launch` and its agents, through a pair of pipes. Neither end ever blocks in a write, so
 * that both notice when the other one has ended. */
#ifndef CLI_LAUNCH_CHANNEL_H
#define CLI_LAUNCH_CHANNEL_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum channel_message {
    /* to the agent: */
    SAY_JOB = 'j',   /* the job (launch-job.h): mount */
    SAY_STAGE = 's', /* stage; the agent replies with the same type and the exit status */
    /* run the command: ADDRESS PORT of the first node; the agent replies with the same type and the exit status */
    SAY_COMMAND = 'c',
    SAY_SIGNAL = 'k', /* the number of a signal for the command */
    SAY_END = 'e',    /* end and remove everything; `now`: kill the command */
    /* to `launch`: */
    SAY_MOUNTED = 'm', /* ADDRESS PORT where the ranks of a training can meet on this node */
    SAY_WORLD = 'w',   /* the number of nodes that have joined */
    SAY_FAILED = 'f',  /* an exit status and a line for people */
    SAY_OUTPUT = 'o',  /* of the command */
    SAY_ERRORS = 'x',  /* its standard error */
    SAY_GONE = 'g',    /* nothing is left on this node */
    /* in both directions: */
    SAY_ALIVE = 'p',
};

/* Bytes to be written to a descriptor. */
struct channel_out {
    int fd;
    struct str data;
    size_t sent;
};

bool outlet_waits(const struct channel_out *o);
bool outlet_is_full(const struct channel_out *o); /* add nothing more for now */
int outlet_push(struct channel_out *o);           /* call it when poll(2) reports POLLOUT. 0 or -errno */

struct channel {
    int in;
    struct channel_out out;
    struct str data;
    size_t taken;
    bool ended;       /* the other end has ended */
    bool greeted;     /* its greeting was read */
    uint64_t silence; /* nanoseconds since the last message; at most a second per tick */
    uint64_t ticked, spoke;
    uint64_t patience; /* nanoseconds of silence after which the other end counts as lost */
};

enum { CHANNEL_TICK_MS = 500 };

void channel_init(struct channel *c, int in, int out);
void channel_fini(struct channel *c);  /* closes both */
void channel_greet(struct channel *c); /* the first thing that an agent does */
void channel_say(struct channel *c, enum channel_message type, const void *data, size_t n);
void channel_sayf(struct channel *c, enum channel_message type, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Call it about every CHANNEL_TICK_MS: sends SAY_ALIVE when due. `listens`: the channel is being read. False: it is,
 * and nothing has arrived for `patience`. */
bool channel_tick(struct channel *c, bool listens);
int channel_read(struct channel *c); /* call it when poll(2) reports data. 0 or -errno; sets `ended` */
/* The next message; its payload is followed by a NUL and valid until the next call. 0: there is none. `noise` gets what
 * arrives before the greeting. */
int channel_take(struct channel *c, struct str *payload, struct str *noise);

#endif
