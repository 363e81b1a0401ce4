/* Fuzz target: the request parser and the stream, with the verbs' real keys. The first byte says in what pieces the
 * rest is written. What is accepted must have every value decoded and inside the request's own line. */
#include "fs/control/protocol.h"
#include "fs/control/stream.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct key keys[] = {
    {.name = "name", .value = "NAME", .required = true},
    REQUEST_SEP,
    {.name = "under", .value = "DIR"},
    {0},
};
static const struct key no_keys[] = {{0}};
static const struct verb verb_list = {.name = "samples", .keys = keys, .payload_most = 1000};
static const struct verb verb_bare = {.name = "stage", .keys = no_keys};
static const struct verb *const verbs[] = {&verb_list, &verb_bare, NULL};

static void check_values(const struct request *r)
{
    for (size_t i = 0; r->verb->keys[i].name; i++) {
        const struct key_value *value = &r->value[i];
        if (value->text && (strlen(value->text) != value->length || value->text < r->line))
            abort();
        if (r->verb->keys[i].required && !value->text)
            abort();
    }
}

static void parse(const char *bytes, size_t n)
{
    CLEANUP_REQUEST struct request request = REQUEST_INIT;
    CLEANUP_STR struct str why = STR_INIT;
    const char *rest, *record;
    size_t left, length;
    if (request_parse(verbs, bytes, n, &request, &why) != 0) {
        if (why.length == 0 || memchr(why.data, '\n', why.length))
            abort();
        return;
    }
    check_values(&request);
    rest = request.payload;
    left = request.payload_length;
    while (text_line(&rest, &left, request_separator(&request.value[1]), &record, &length))
        if (record < bytes || record + length > bytes + n)
            abort();
}

static void parse_name(const char *bytes, size_t n)
{
    struct key_value value[KEYS_MOST] = {0};
    CLEANUP_STR struct str why = STR_INIT;
    char *text = malloc(n + 1);
    memcpy(text, bytes, n);
    text[n] = '\0';
    if (keys_parse(&(struct key_words){keys, "samples", ','}, text, n, value, &why) == 0 && !value[0].text)
        abort();
    free(text);
}

static int64_t check(void *user, const char *line, size_t n, struct str *why)
{
    CLEANUP_REQUEST struct request request = REQUEST_INIT;
    int error = request_parse_line(verbs, line, n, &request, why);
    (void)user;
    return error ? error : (int64_t)request.verb->payload_most;
}

static void usage(void *user, struct str *text)
{
    (void)user;
    str_adds(text, "usage\n");
}

static void refused(void *user, const char *line, size_t n, int error, const char *why)
{
    (void)user;
    if (error >= 0 || !why || (n > 0 && memchr(line, '\n', n)))
        abort();
}

/* What the stream puts together is what was written, or the request is refused. */
static void stream(const char *bytes, size_t n, size_t piece_size)
{
    static const struct stream_rules rules = {check, usage, refused, REQUEST_LINE_MOST};
    struct budget pool;
    struct stream s;
    struct stream_piece piece;
    struct request_text request;
    struct str text = STR_INIT;
    budget_init(&pool, 1 << 20, NULL, NULL);
    stream_init(&s, &rules, &pool, NULL, NULL);
    for (size_t at = 0; at < n; at += piece_size)
        stream_write(&s, bytes + at, n - at < piece_size ? n - at : piece_size);
    enum stream_turn turn = stream_read(&s, n, 100, &piece);
    if (turn == STREAM_RUN) {
        stream_take(&s, &request);
        if (request.length != n || memcmp(request.data, bytes, n) != 0)
            abort();
        stream_done(&s, &request, 0, &text, NULL);
    } else if (piece.reply) {
        reply_put(piece.reply);
    }
    stream_fini(&s);
    if (pool.used != 0)
        abort();
    budget_fini(&pool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    const char *bytes = (const char *)data + 1;
    parse(bytes, n - 1);
    parse_name(bytes, n - 1);
    stream(bytes, n - 1, (size_t)data[0] + 1);
    return 0;
}
