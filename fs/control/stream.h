/* `control` as a stream: a client writes a request and reads its reply on the same handle.
 *
 * Pure: without FUSE and threads. The caller holds the handle's lock around every call, and releases it while it runs a
 * request, between stream_read and stream_done.
 *
 *   state      a write                          a read
 *   IDLE       begins a request → REQUEST       returns the usage → REPLY
 *   REQUEST    appends; if the request is       ends the request → RUNNING. The caller runs it and calls stream_done
 *              rejected early → DOOMED          → REPLY; or this read fails → REPLY with the reason
 *   DOOMED     is ignored, or fails             fails → REPLY with the reason
 *   RUNNING    -EBUSY                           waits
 *   REPLY      begins a request → REQUEST       returns the reply
 *
 * Writes append, whatever their offset. The reply's first byte is at the offset of the read that ended the request;
 * after a failure, at that of the next read. A read before that offset gets the reply from its beginning. */
#ifndef FS_CONTROL_STREAM_H
#define FS_CONTROL_STREAM_H

#include "fs/control/budget.h"
#include "fs/control/request-text.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A text that may outlive its handle's state: it is still read when the next write already begins another request. */
struct reply {
    atomic_int references;
    struct str text;
    struct charge charge;
};
/* Owns the text and its charge (NULL: none). NULL: no memory, and both are freed. */
struct reply *reply_create(struct str *text, struct charge *charge);
struct reply *reply_get(struct reply *reply);
void reply_put(struct reply *reply);

struct stream_rules {
    /* The first line is complete: returns how many bytes may follow it, or -errno and why the request is rejected. */
    int64_t (*check)(void *user, const char *line, size_t n, struct str *why);
    /* The text for a read without a request. */
    void (*usage)(void *user, struct str *text);
    /* A request was rejected, or closed before its reply was read. */
    void (*refused)(void *user, const char *line, size_t n, int error, const char *why);
    size_t line_most; /* maximum bytes of the first line */
};

enum stream_state { STREAM_IDLE, STREAM_REQUEST, STREAM_DOOMED, STREAM_RUNNING, STREAM_REPLY };

struct stream {
    const struct stream_rules *rules;
    void *user;            /* for the rules */
    const char *directory; /* for the files of large requests; may be NULL */
    enum stream_state state;
    struct request_text request; /* REQUEST: all of it. DOOMED: its first line, as far as it was received */
    size_t line;                 /* length of the first line with its end; 0: incomplete */
    size_t most;                 /* maximum bytes of the request, once `line` is set */
    struct charge charge;        /* for `request` */
    int error;                   /* DOOMED: the errno */
    bool loud;                   /* DOOMED: writes fail too, instead of being ignored */
    struct str reason;           /* DOOMED: in words */
    struct reply *reply;         /* in state REPLY */
    bool based;                  /* `base` is set */
    uint64_t base;               /* offset of the reply's first byte */
};

void stream_init(struct stream *s, const struct stream_rules *rules, struct budget *budget, const char *directory,
                 void *user);
void stream_fini(struct stream *s); /* records a request whose reply was not read */

/* n; or -EFBIG, -E2BIG, -ENOMEM, -ENOSPC, …: the request is too long and rejected; -EBUSY: a request runs. */
ssize_t stream_write(struct stream *s, const void *bytes, size_t n);

enum stream_turn {
    STREAM_PIECE, /* the bytes are in `reply`; none: the end of the reply */
    STREAM_FAIL,  /* the request is rejected: fail with `error` */
    STREAM_RUN,   /* take the request, run it, call stream_done, and read again (or fail) */
    STREAM_WAIT,  /* another thread runs it: read again when it is done */
};
struct stream_piece {
    struct reply *reply; /* a reference for the caller; NULL: nothing */
    const char *bytes;
    size_t n;
    int error; /* -errno */
};
enum stream_turn stream_read(struct stream *s, uint64_t offset, size_t n, struct stream_piece *piece);

/* In state RUNNING. stream_done takes the request that was run, and its reply with its charge (or NULL), or `error` and
 * the reason; all are empty afterwards. For its answer, the read that ran the request calls stream_read again, or fails
 * with `error`. */
void stream_take(struct stream *s, struct request_text *request);
int stream_done(struct stream *s, struct request_text *request, int error, struct str *text, struct charge *charge);
/* In state RUNNING: the caller was interrupted. The request is as if nobody had read yet. */
void stream_retry(struct stream *s, struct request_text *request);

#endif
