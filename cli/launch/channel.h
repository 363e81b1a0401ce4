/* What `dealfs launch` and its agent on each node say to each other: messages through a pair of pipes. Neither end ever
 * blocks in a write, so that both notice when the other one is gone. */
#ifndef CLI_LAUNCH_CHANNEL_H
#define CLI_LAUNCH_CHANNEL_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum channel_message {
    /* to the agent: */
    SAY_JOB = 'j',     /* the job (launch-job.h): mount */
    SAY_STAGE = 's',   /* stage; answered by the same with its exit status */
    SAY_COMMAND = 'c', /* run the command: ADDRESS PORT of the first node; answered by the same with its exit status */
    SAY_SIGNAL = 'k',  /* a signal for the command, by its number */
    SAY_END = 'e',     /* take everything away; `now`: kill the command */
    /* to `launch`: */
    SAY_MOUNTED = 'm', /* ADDRESS PORT where the ranks of a training can meet on this node */
    SAY_WORLD = 'w',   /* the number of nodes that have joined */
    SAY_FAILED = 'f',  /* an exit status and a line for people */
    SAY_OUTPUT = 'o',  /* of the command */
    SAY_ERRORS = 'x',  /* its standard error */
    SAY_GONE = 'g',    /* nothing is left on this node */
    /* both: */
    SAY_ALIVE = 'p',
};

/* Bytes on their way to a descriptor. */
struct channel_out {
    int fd;
    struct str data;
    size_t sent;
};

bool outlet_waits(const struct channel_out *o);
bool outlet_is_full(const struct channel_out *o); /* nothing more should be added for the moment */
int outlet_push(struct channel_out *o);           /* to be called when poll(2) says POLLOUT. 0 or -errno */

struct channel {
    int in;
    struct channel_out out;
    struct str data;
    size_t taken;
    bool ended;       /* the other end is gone */
    bool greeted;     /* its first line has been read */
    uint64_t silence; /* nanoseconds since the other end spoke; at most a second per tick */
    uint64_t ticked, spoke;
    unsigned patience; /* seconds of silence after which the other end is lost */
};

enum { CHANNEL_TICK_MS = 500 };

void channel_init(struct channel *c, int in, int out);
void channel_fini(struct channel *c);  /* closes both */
void channel_greet(struct channel *c); /* what an agent does first */
void channel_say(struct channel *c, enum channel_message type, const void *data, size_t n);
void channel_sayf(struct channel *c, enum channel_message type, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* To be called about every CHANNEL_TICK_MS: says SAY_ALIVE from time to time. `listens`: the channel is being read.
 * False: it is, and the other end has said nothing for `patience`. */
bool channel_tick(struct channel *c, bool listens);
int channel_read(struct channel *c); /* when poll(2) says that there is something. 0 or -errno; sets `ended` */
/* The next message; its payload is followed by a NUL and stays until the next call. 0: there is none. Before the
 * greeting `noise` gets what was said instead of it. */
int channel_take(struct channel *c, struct str *payload, struct str *noise);

#endif
