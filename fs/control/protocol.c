/* The parser of requests. */
#include "fs/control/protocol.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static int refuse_verb(const struct verb *const *verbs, const char *name, size_t n, struct str *why)
{
    struct nearest best = {0};
    if (n == 0) {
        str_adds(why, "the first line is empty");
    } else {
        str_adds(why, "unknown verb ");
        str_add_backquoted(why, name, n);
        for (size_t i = 0; verbs[i]; i++)
            nearest_try(&best, name, n, verbs[i]->name);
        if (best.word && best.distance <= 2 && best.distance < n)
            str_addf(why, ", did you mean `%s`?", best.word);
    }
    str_adds(why, "; known verbs: ");
    for (size_t i = 0; verbs[i]; i++)
        str_addf(why, "%s%s", i ? ", " : "", verbs[i]->name);
    return -EINVAL;
}

static const struct verb *find_verb(const struct verb *const *verbs, const char *name, size_t n)
{
    for (size_t i = 0; verbs[i]; i++)
        if (strlen(verbs[i]->name) == n && memcmp(verbs[i]->name, name, n) == 0)
            return verbs[i];
    return NULL;
}

int request_parse_line(const struct verb *const *verbs, const char *line, size_t n, struct request *request,
                       struct str *why)
{
    size_t from = 0, to;
    if (n > REQUEST_LINE_MOST)
        return str_fail(why, -E2BIG, "the first line is longer than %d bytes", REQUEST_LINE_MOST);
    if (n > 0 && line[n - 1] == '\r')
        n--;
    while (from < n && is_blank(line[from]))
        from++;
    for (to = from; to < n && !is_blank(line[to]);)
        to++;
    const struct verb *verb = find_verb(verbs, line + from, to - from);
    if (!verb)
        return refuse_verb(verbs, line + from, to - from, why);

    request->line = malloc(n - to + 1);
    if (!request->line)
        return str_no_memory(why);
    memcpy(request->line, line + to, n - to);
    request->line[n - to] = '\0';
    request->verb = verb;
    return keys_parse(&(struct key_words){verb->keys, verb->name, ' '}, request->line, n - to, request->value, why);
}

bool request_only_line_ends(const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != '\n' && bytes[i] != '\r')
            return false;
    return true;
}

int request_parse(const struct verb *const *verbs, const char *bytes, size_t n, struct request *request,
                  struct str *why)
{
    const char *end = n > 0 ? memchr(bytes, '\n', n) : NULL;
    size_t line = end ? (size_t)(end - bytes) : n;
    int error = request_parse_line(verbs, bytes, line, request, why);
    if (error)
        return error;
    request->payload = end ? end + 1 : bytes + n;
    request->payload_length = end ? n - line - 1 : 0;
    if (request->verb->payload_most > 0)
        return 0;
    if (!request_only_line_ends(request->payload, request->payload_length))
        return str_fail(why, -EINVAL, "`%s` takes nothing after its first line", request->verb->name);
    request->payload_length = 0;
    return 0;
}

void request_fini(struct request *request)
{
    free(request->line);
    *request = (struct request)REQUEST_INIT;
}
