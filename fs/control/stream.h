/* `control` as a stream: what is written is a request, what is read is its reply, on one handle and by any client.
 *
 * Pure: knows neither FUSE nor threads. The caller holds the handle's lock around every call, and runs a request
 * between stream_read and stream_done without it.
 *
 *   state      a write                        a read
 *   IDLE       begins a request ─▶ REQUEST    gives the usage ─▶ REPLY
 *   REQUEST    appends; if that is refused    ends the request ─▶ RUNNING; the caller runs it; stream_done
 *              already ─▶ DOOMED              ─▶ REPLY, or this read fails ─▶ REPLY with the reason
 *   DOOMED     is thrown away, or fails       fails ─▶ REPLY with the reason
 *   RUNNING    -EBUSY                         waits
 *   REPLY      begins a request ─▶ REQUEST    gives the reply
 *
 * Writes append whatever their offset. The read that ends a request fixes the reply's first byte at its own offset;
 * after a refusal it is the read after the failed one. A read before that byte is a fresh look from the reply's
 * beginning. */
#ifndef FS_CONTROL_STREAM_H
#define FS_CONTROL_STREAM_H

#include "fs/control/budget.h"
#include "fs/control/request-text.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A text that outlives the handle's lock: read from while the next write already begins another request. */
struct reply {
    atomic_int references;
    struct str text;
    struct charge charge;
};
/* Takes over the text and its charge (NULL: none). NULL: out of memory; then both are gone. */
struct reply *reply_create(struct str *text, struct charge *charge);
struct reply *reply_get(struct reply *reply);
void reply_put(struct reply *reply);

struct stream_rules {
    /* A first line is complete: how many bytes may follow it, or -errno and why it is refused already. */
    int64_t (*check)(void *user, const char *line, size_t n, struct str *why);
    /* What a read without a request is answered. */
    void (*usage)(void *user, struct str *text);
    /* A request was refused, or closed before its reply was read. */
    void (*refused)(void *user, const char *line, size_t n, int error, const char *why);
    size_t line_most; /* bytes of a first line */
};

enum stream_state { STREAM_IDLE, STREAM_REQUEST, STREAM_DOOMED, STREAM_RUNNING, STREAM_REPLY };

struct stream {
    const struct stream_rules *rules;
    void *user;            /* for the rules */
    const char *directory; /* for the files of large requests; may be NULL */
    enum stream_state state;
    struct request_text request; /* REQUEST: all of it. DOOMED: its first line, or what there was of it */
    size_t line;                 /* length of the first line with its end; 0: not complete */
    size_t most;                 /* bytes that the request may have, once `line` is known */
    struct charge charge;        /* for `request` */
    int error;                   /* DOOMED: the errno */
    bool loud;                   /* DOOMED: writes fail too, instead of being thrown away */
    struct str reason;           /* DOOMED: in words */
    struct reply *reply;         /* REPLY */
    bool based;                  /* the next two are set */
    uint64_t base;               /* the offset of the reply's first byte */
};

void stream_init(struct stream *s, const struct stream_rules *rules, struct budget *budget, const char *directory,
                 void *user);
void stream_fini(struct stream *s); /* a request that nobody read the reply of is noted as refused */

/* n, or -EFBIG, -E2BIG, -ENOMEM, -ENOSPC, …: the request is too long and refused; -EBUSY: one is running. */
ssize_t stream_write(struct stream *s, const void *bytes, size_t n);

enum stream_turn {
    STREAM_PIECE, /* here are the bytes; none: the reply's end */
    STREAM_FAIL,  /* the request is refused: fail with `error` */
    STREAM_RUN,   /* take the request, run it, stream_done, and read again (or fail) */
    STREAM_WAIT,  /* another thread runs it: read again when it is done */
};
struct stream_piece {
    struct reply *reply; /* a reference for the caller; NULL when there is nothing */
    const char *bytes;
    size_t n;
    int error; /* -errno */
};
enum stream_turn stream_read(struct stream *s, uint64_t offset, size_t n, struct stream_piece *piece);

/* RUNNING. Takes the request that was run, and its reply with what was charged for it (or NULL), or `error` and the
 * reason; all are empty afterwards. The read that ran it is answered by another stream_read, or fails with `error`. */
void stream_take(struct stream *s, struct request_text *request);
int stream_done(struct stream *s, struct request_text *request, int error, struct str *text, struct charge *charge);
/* RUNNING: the caller was interrupted; the request is as if nobody had read yet. */
void stream_retry(struct stream *s, struct request_text *request);

#endif
