/* The stream of `control`. It implements the table in stream.h, row by row. */
#include "fs/control/stream.h"

#include "fs/base/cleanup.h"

#include <errno.h>
#include <string.h>

struct reply *reply_create(struct str *text, struct charge *charge)
{
    struct reply *reply = text->failed ? NULL : malloc(sizeof *reply);
    if (!reply) {
        str_fini(text);
        if (charge)
            charge_fini(charge);
        return NULL;
    }
    atomic_init(&reply->references, 1);
    reply->charge = charge ? charge_take(charge) : (struct charge){0};
    charge_cut(&reply->charge, text->length);
    reply->text = *text;
    *text = (struct str)STR_INIT;
    return reply;
}

struct reply *reply_get(struct reply *reply)
{
    atomic_fetch_add(&reply->references, 1);
    return reply;
}

void reply_put(struct reply *reply)
{
    if (!reply || atomic_fetch_sub(&reply->references, 1) > 1)
        return;
    str_fini(&reply->text);
    charge_fini(&reply->charge);
    cleanup_free_(&reply);
}

void stream_init(struct stream *s, const struct stream_rules *rules, struct budget *budget, const char *directory,
                 void *user)
{
    *s = (struct stream){.rules = rules, .charge.budget = budget, .directory = directory, .user = user};
}

static size_t first_line(const struct request_text *request)
{
    const char *end = request->length ? memchr(request->data, '\n', request->length) : NULL;
    size_t n = end ? (size_t)(end - request->data) : request->length;
    return n > 0 && request->data[n - 1] == '\r' ? n - 1 : n;
}

static void note_refused(struct stream *s, const struct request_text *request, int error, const char *why)
{
    s->rules->refused(s->user, request->length ? request->data : "", first_line(request), error, why);
}

void stream_fini(struct stream *s)
{
    if (s->state == STREAM_REQUEST)
        note_refused(s, &s->request, -ECANCELED, "closed before its reply was read: the request was not run");
    if (s->state == STREAM_DOOMED)
        note_refused(s, &s->request, s->error, s->reason.length ? s->reason.data : "");
    charge_fini(&s->charge);
    request_text_fini(&s->request);
    str_fini(&s->reason);
    reply_put(steal_pointer(s->reply));
    s->state = STREAM_IDLE;
}

static void begin_request(struct stream *s)
{
    reply_put(steal_pointer(s->reply));
    charge_fini(&s->charge);
    request_text_fini(&s->request);
    str_fini(&s->reason);
    s->line = s->most = 0;
    s->based = false;
    s->state = STREAM_REQUEST;
}

enum { DOOMED_MOST = 4096 };

/* The request will not run. The begin of its first line is kept for `errors`; the rest is freed. */
static void doom_request(struct stream *s, int error, bool loud, struct str *why)
{
    struct request_text line = REQUEST_TEXT_INIT;
    size_t n = first_line(&s->request);
    if (n)
        request_text_add(&line, s->directory, s->request.data, n < DOOMED_MOST ? n : DOOMED_MOST);
    request_text_fini(&s->request);
    charge_fini(&s->charge);
    s->request = line;
    s->reason = *why;
    *why = (struct str)STR_INIT;
    s->error = error;
    s->loud = loud;
    s->state = STREAM_DOOMED;
}

static ssize_t refuse_write(struct stream *s, int error, const char *format, size_t limit)
{
    struct str why = STR_INIT;
    str_addf(&why, format, limit);
    doom_request(s, error, true, &why);
    return error;
}

/* The first line is complete: reject the request now if it will be rejected anyway, before its payload takes memory. */
static void check_line(struct stream *s, size_t line)
{
    struct str why = STR_INIT;
    int64_t most = s->rules->check(s->user, s->request.data, first_line(&s->request), &why);
    if (most < 0) {
        doom_request(s, (int)most, false, &why);
        return;
    }
    str_fini(&why);
    s->line = line;
    s->most = line + (size_t)most;
}

static ssize_t append_bytes(struct stream *s, const char *bytes, size_t n)
{
    const char *end = s->line ? NULL : memchr(bytes, '\n', n);
    size_t line = s->line ? s->line : s->request.length + (end ? (size_t)(end - bytes) + 1 : n);
    struct str why = STR_INIT;
    if (!s->line && line > s->rules->line_most)
        return refuse_write(s, -E2BIG, "the first line is longer than %zu bytes", s->rules->line_most);
    if (s->line && n > s->most - s->request.length)
        return refuse_write(s, -EFBIG, "more than %zu bytes after the first line", s->most - s->line);
    int error = charge_add(&s->charge, n, &why);
    if (error) {
        doom_request(s, error, true, &why);
        return error;
    }
    error = request_text_add(&s->request, s->directory, bytes, n);
    if (error)
        return refuse_write(s, error, "no room for a request longer than %zu bytes", s->request.length);
    if (!end)
        return (ssize_t)n;
    check_line(s, line);
    if (s->state == STREAM_REQUEST && s->request.length > s->most)
        return refuse_write(s, -EFBIG, "more than %zu bytes after the first line", s->most - s->line);
    return (ssize_t)n;
}

ssize_t stream_write(struct stream *s, const void *bytes, size_t n)
{
    if (s->state == STREAM_RUNNING)
        return -EBUSY;
    if (s->state == STREAM_DOOMED)
        return s->loud ? s->error : (ssize_t)n;
    if (n == 0)
        return 0;
    if (s->state != STREAM_REQUEST)
        begin_request(s);
    return append_bytes(s, bytes, n);
}

/* From now on reads return this text. Its first byte is at the offset of the next read. */
static void answer_with(struct stream *s, struct str *text, struct charge *charge)
{
    s->reply = reply_create(text, charge);
    s->based = false;
    s->state = STREAM_REPLY;
}

static enum stream_turn fail_read(struct stream *s, struct stream_piece *piece)
{
    struct str why = s->reason;
    int error = s->error;
    s->reason = (struct str)STR_INIT;
    note_refused(s, &s->request, error, why.length ? why.data : "");
    request_text_fini(&s->request);
    str_adds(&why, "\n");
    answer_with(s, &why, NULL);
    piece->error = error;
    return STREAM_FAIL;
}

static enum stream_turn serve_reply(struct stream *s, uint64_t offset, size_t n, struct stream_piece *piece)
{
    if (!s->reply) {
        piece->error = -ENOMEM;
        return STREAM_FAIL;
    }
    if (!s->based || offset < s->base) {
        s->base = offset;
        s->based = true;
    }
    uint64_t at = offset - s->base, length = s->reply->text.length;
    if (at < length) {
        piece->reply = reply_get(s->reply);
        piece->bytes = s->reply->text.data + at;
        piece->n = n < length - at ? n : (size_t)(length - at);
    }
    return STREAM_PIECE;
}

enum stream_turn stream_read(struct stream *s, uint64_t offset, size_t n, struct stream_piece *piece)
{
    *piece = (struct stream_piece){0};
    switch (s->state) {
    case STREAM_IDLE: {
        struct str text = STR_INIT;
        s->rules->usage(s->user, &text);
        answer_with(s, &text, NULL);
        return serve_reply(s, offset, n, piece);
    }
    case STREAM_REQUEST:
        s->state = STREAM_RUNNING;
        return STREAM_RUN;
    case STREAM_DOOMED:
        return fail_read(s, piece);
    case STREAM_RUNNING:
        return STREAM_WAIT;
    case STREAM_REPLY:
        break;
    }
    return serve_reply(s, offset, n, piece);
}

void stream_take(struct stream *s, struct request_text *request)
{
    *request = request_text_take(&s->request);
}

int stream_done(struct stream *s, struct request_text *request, int error, struct str *text, struct charge *charge)
{
    if (!error && text->failed) {
        str_fini(text);
        str_adds(text, "no memory for the reply");
        error = -ENOMEM;
    }
    if (error) {
        str_add(text, "", 0);
        note_refused(s, request, error, text->data ? text->data : "");
        str_adds(text, "\n");
    }
    answer_with(s, text, error ? NULL : charge);
    request_text_fini(request);
    charge_fini(&s->charge);
    return error;
}

void stream_retry(struct stream *s, struct request_text *request)
{
    s->request = request_text_take(request);
    s->state = STREAM_REQUEST;
}
