/* The parser of requests. Everything in them is written by users: each refusal says what is wrong and what would be
 * right. */
#include "fs/mount/control/request.h"

#include "fs/base/cleanup.h"

#include <errno.h>
#include <string.h>

static bool blank(char c)
{
    return c == ' ' || c == '\t';
}

/* How many letters differ between two short words: Levenshtein's distance, over one row. */
static unsigned word_distance(const char *a, size_t a_length, const char *b)
{
    enum { MOST = 32 };
    size_t b_length = strlen(b);
    unsigned row[MOST + 1];

    if (a_length > MOST || b_length > MOST)
        return MOST;
    for (size_t j = 0; j <= b_length; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= a_length; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_length; j++) {
            unsigned change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            unsigned shorter = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = change < shorter ? change : shorter;
        }
    }
    return row[b_length];
}

/* The known word that is nearest to the one given, to be remembered while going through the known ones. */
struct nearest {
    const char *word;
    unsigned distance;
};

static void nearest_try(struct nearest *best, const char *given, size_t length, const char *known)
{
    unsigned distance = word_distance(given, length, known);

    if (!best->word || distance < best->distance)
        *best = (struct nearest){known, distance};
}

static void add_quoted(struct str *why, const char *text, size_t n)
{
    enum { SHOWN = 64 };

    str_adds(why, "`");
    str_add_printable(why, text, n < SHOWN ? n : SHOWN);
    str_adds(why, n > SHOWN ? "…`" : "`");
}

static int refuse_verb(const struct verb *const *verbs, const char *name, size_t n, struct str *why)
{
    struct nearest best = {0};

    if (n == 0) {
        str_adds(why, "the first line is empty");
    } else {
        str_adds(why, "unknown verb ");
        add_quoted(why, name, n);
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

static int refuse_key(const struct verb *verb, const char *name, size_t n, struct str *why)
{
    struct nearest best = {0};

    str_adds(why, "unknown key ");
    add_quoted(why, name, n);
    str_addf(why, " for `%s`", verb->name);
    for (size_t i = 0; verb->keys[i].name; i++)
        nearest_try(&best, name, n, verb->keys[i].name);
    if (!best.word) {
        str_adds(why, ", which takes none");
        return -EINVAL;
    }
    str_addf(why, ", the nearest known one is `%s`; it takes: ", best.word);
    for (size_t i = 0; verb->keys[i].name; i++)
        str_addf(why, "%s%s", i ? ", " : "", verb->keys[i].name);
    return -EINVAL;
}

/* Is the value one of "a|b|c"? */
static bool choice_known(const char *choices, const char *value, size_t n)
{
    while (*choices) {
        size_t length = strcspn(choices, "|");
        if (length == n && memcmp(choices, value, n) == 0)
            return true;
        choices += length;
        choices += *choices == '|';
    }
    return false;
}

static int take_value(const struct verb *verb, size_t key, char *text, size_t n, struct request *request,
                      struct str *why)
{
    const char *name = verb->keys[key].name;

    if (request->value[key].text) {
        str_addf(why, "key `%s` is given twice", name);
        return -EINVAL;
    }
    long length = percent_decode(text, n);
    if (length < 0 || memchr(text, '\0', (size_t)length)) {
        str_addf(why, "the value of `%s` has a bad escape: `%%` must be followed by two hexadecimal digits, not 00",
                 name);
        return -EINVAL;
    }
    text[length] = '\0';
    if (verb->keys[key].choices && !choice_known(verb->keys[key].choices, text, (size_t)length)) {
        str_addf(why, "`%s=", name);
        str_add_printable(why, text, (size_t)length);
        str_addf(why, "` is not one of %s", verb->keys[key].choices);
        return -EINVAL;
    }
    request->value[key] = (struct request_value){text, (size_t)length};
    return 0;
}

/* One `key=value`; text[n] may be written to. */
static int take_pair(const struct verb *verb, char *text, size_t n, struct request *request, struct str *why)
{
    char *equals = memchr(text, '=', n);

    if (!equals || equals == text) {
        add_quoted(why, text, n);
        str_adds(why, " is not of the form key=value");
        return -EINVAL;
    }
    size_t length = (size_t)(equals - text);
    for (size_t i = 0; verb->keys[i].name; i++)
        if (strlen(verb->keys[i].name) == length && memcmp(verb->keys[i].name, text, length) == 0)
            return take_value(verb, i, equals + 1, n - length - 1, request, why);
    return refuse_key(verb, text, length, why);
}

static int check_required(const struct request *request, struct str *why)
{
    const struct request_key *keys = request->verb->keys;

    for (size_t i = 0; keys[i].name; i++) {
        if (!keys[i].required || request->value[i].text)
            continue;
        str_addf(why, "`%s` needs `%s=…`; usage: %.*s", request->verb->name, keys[i].name,
                 (int)strcspn(request->verb->usage, "\n"), request->verb->usage);
        return -EINVAL;
    }
    return 0;
}

static bool separates(char c, char separator)
{
    return separator == ' ' ? blank(c) : c == separator;
}

int request_parse_pairs(const struct verb *verb, char *text, size_t n, char separator, struct request *request,
                        struct str *why)
{
    request->verb = verb;
    for (size_t at = 0; at < n;) {
        size_t end = at;
        while (end < n && !separates(text[end], separator))
            end++;
        if (end > at) {
            int error = take_pair(verb, text + at, end - at, request, why);
            if (error)
                return error;
        }
        at = end + 1;
    }
    return check_required(request, why);
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

    if (n > REQUEST_LINE_MOST) {
        str_addf(why, "the first line is longer than %d bytes", REQUEST_LINE_MOST);
        return -E2BIG;
    }
    if (n > 0 && line[n - 1] == '\r')
        n--;
    while (from < n && blank(line[from]))
        from++;
    for (to = from; to < n && !blank(line[to]);)
        to++;
    const struct verb *verb = find_verb(verbs, line + from, to - from);
    if (!verb)
        return refuse_verb(verbs, line + from, to - from, why);

    request->line = malloc(n - to + 1);
    if (!request->line) {
        str_adds(why, "out of memory");
        return -ENOMEM;
    }
    memcpy(request->line, line + to, n - to);
    request->line[n - to] = '\0';
    return request_parse_pairs(verb, request->line, n - to, ' ', request, why);
}

/* Shells like to add an empty line; that is no payload. */
static bool only_line_ends(const char *bytes, size_t n)
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
    if (!only_line_ends(request->payload, request->payload_length)) {
        str_addf(why, "`%s` takes nothing after its first line", request->verb->name);
        return -EINVAL;
    }
    request->payload_length = 0;
    return 0;
}

void request_fini(struct request *request)
{
    int saved = errno;
    free(request->line);
    *request = (struct request)REQUEST_INIT;
    errno = saved;
}

const char *request_text(const struct request *request, const char *key, const char *otherwise)
{
    for (size_t i = 0; request->verb->keys[i].name; i++)
        if (strcmp(request->verb->keys[i].name, key) == 0)
            return request->value[i].text ? request->value[i].text : otherwise;
    return otherwise;
}

char request_separator(const struct request *request)
{
    return strcmp(request_text(request, "sep", "lf"), "nul") == 0 ? '\0' : '\n';
}

bool request_record(const char **rest, size_t *n, char separator, const char **record, size_t *length)
{
    if (*n == 0)
        return false;
    const char *end = memchr(*rest, separator, *n);
    size_t taken = end ? (size_t)(end - *rest) : *n;

    *record = *rest;
    *length = taken;
    if (separator == '\n' && taken > 0 && (*rest)[taken - 1] == '\r')
        (*length)--;
    taken += end != NULL;
    *rest += taken;
    *n -= taken;
    return true;
}
