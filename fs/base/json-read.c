/* The JSON reader: it finds one value and builds no tree. */
#include "fs/base/json.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

/* A position in the text. Functions that take it return false if the text is not JSON. */
struct cursor {
    const char *p, *end;
};
enum { DEPTH_MAX = 64 };

static void skip_space(struct cursor *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\n' || *c->p == '\r' || *c->p == '\t'))
        c->p++;
}

static bool take(struct cursor *c, char expected)
{
    skip_space(c);
    if (c->p == c->end || *c->p != expected)
        return false;
    c->p++;
    return true;
}

static bool take_hex4(struct cursor *c, uint32_t *code)
{
    if (c->end - c->p < 4)
        return false;
    *code = 0;
    for (int i = 0; i < 4; i++) {
        unsigned char digit = (unsigned char)*c->p++;
        if (!isxdigit(digit))
            return false;
        *code = *code << 4 | (uint32_t)(isdigit(digit) ? digit - '0' : (digit | 0x20) - 'a' + 10);
    }
    return true;
}

static void add_utf8(struct str *out, uint32_t code)
{
    static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
    /* the writer escapes no character above 0x7f, so below 0x100 this is a byte that was not UTF-8 */
    int more = code < 0x100 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    char text[4] = {(char)(lead[more] | code >> 6 * more)};
    for (int i = 1; i <= more; i++)
        text[i] = (char)(0x80 | (code >> 6 * (more - i) & 0x3f));
    str_add(out, text, (size_t)more + 1);
}

static bool take_unicode(struct cursor *c, struct str *out)
{
    uint32_t code, low;
    if (!take_hex4(c, &code))
        return false;
    if (code >= 0xd800 && code < 0xe000) {
        if (code >= 0xdc00 || c->end - c->p < 6 || c->p[0] != '\\' || c->p[1] != 'u')
            return false;
        c->p += 2;
        if (!take_hex4(c, &low) || low < 0xdc00 || low >= 0xe000)
            return false;
        code = 0x10000 + ((code - 0xd800) << 10 | (low - 0xdc00));
    }
    if (out)
        add_utf8(out, code);
    return true;
}

static bool take_escape(struct cursor *c, struct str *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (c->p == c->end)
        return false;
    char kind = *c->p++;
    if (kind == 'u')
        return take_unicode(c, out);
    const char *at = kind ? strchr(from, kind) : NULL;
    if (!at)
        return false;
    if (out)
        str_add(out, &to[at - from], 1);
    return true;
}

/* A string in quotes, unescaped and appended to `out`; `out` may be NULL. */
static bool take_string(struct cursor *c, struct str *out)
{
    if (!take(c, '"'))
        return false;
    for (;;) {
        const char *from = c->p;
        while (c->p < c->end && *c->p != '"' && *c->p != '\\' && (unsigned char)*c->p >= 0x20)
            c->p++;
        if (out)
            str_add(out, from, (size_t)(c->p - from));
        if (c->p == c->end)
            return false;
        char stop = *c->p++;
        if (stop == '"')
            return true;
        if (stop != '\\' || !take_escape(c, out))
            return false;
    }
}

static bool skip_digits(struct cursor *c)
{
    const char *from = c->p;
    while (c->p < c->end && isdigit((unsigned char)*c->p))
        c->p++;
    return c->p > from;
}

static bool skip_number(struct cursor *c)
{
    if (*c->p == '-')
        c->p++;
    if (!skip_digits(c))
        return false;
    if (c->p < c->end && *c->p == '.') {
        c->p++;
        if (!skip_digits(c))
            return false;
    }
    if (c->p < c->end && (*c->p == 'e' || *c->p == 'E')) {
        c->p++;
        if (c->p < c->end && (*c->p == '+' || *c->p == '-'))
            c->p++;
        return skip_digits(c);
    }
    return true;
}

static bool skip_literal(struct cursor *c)
{
    static const char *const literals[] = {"true", "false", "null"};
    for (size_t i = 0; i < 3; i++) {
        size_t n = strlen(literals[i]);
        if ((size_t)(c->end - c->p) >= n && memcmp(c->p, literals[i], n) == 0) {
            c->p += n;
            return true;
        }
    }
    return false;
}

static bool skip_value(struct cursor *c, int depth);

static bool skip_members(struct cursor *c, char close, int depth)
{
    c->p++;
    if (take(c, close))
        return true;
    do {
        if (close == '}' && (!take_string(c, NULL) || !take(c, ':')))
            return false;
        if (!skip_value(c, depth + 1))
            return false;
    } while (take(c, ','));
    return take(c, close);
}

static bool skip_value(struct cursor *c, int depth)
{
    skip_space(c);
    if (c->p == c->end || depth > DEPTH_MAX)
        return false;
    switch (*c->p) {
    case '{':
        return skip_members(c, '}', depth);
    case '[':
        return skip_members(c, ']', depth);
    case '"':
        return take_string(c, NULL);
    case '-':
    case '0' ... '9':
        return skip_number(c);
    default:
        return skip_literal(c);
    }
}

/* Move the cursor from an object to the value of one of its members. */
static int enter_object(struct cursor *c, const char *name, size_t n)
{
    c->p++;
    if (take(c, '}'))
        return -ENOENT;
    CLEANUP_STR struct str key = STR_INIT;
    do {
        str_clear(&key);
        if (!take_string(c, &key) || !take(c, ':'))
            return -EBADMSG;
        if (key.failed)
            return -ENOMEM;
        if (key.length == n && memcmp(key.data, name, n) == 0)
            return 0;
        if (!skip_value(c, 1))
            return -EBADMSG;
    } while (take(c, ','));
    return take(c, '}') ? -ENOENT : -EBADMSG;
}

/* Move the cursor from an array to one of its elements. */
static int enter_array(struct cursor *c, const char *name, size_t n)
{
    uint64_t index = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isdigit((unsigned char)name[i]) || n > 18)
            return -ENOENT;
        index = index * 10 + (uint64_t)(name[i] - '0');
    }
    c->p++;
    if (take(c, ']'))
        return -ENOENT;
    do {
        if (index-- == 0)
            return 0;
        if (!skip_value(c, 1))
            return -EBADMSG;
    } while (take(c, ','));
    return take(c, ']') ? -ENOENT : -EBADMSG;
}

long json_find(const char *text, size_t n, const char *path, const char **value)
{
    struct cursor c = {text, text + n};
    while (*path) {
        size_t length = strcspn(path, ".");
        skip_space(&c);
        int error = c.p == c.end  ? -EBADMSG
                    : *c.p == '{' ? enter_object(&c, path, length)
                    : *c.p == '[' ? enter_array(&c, path, length)
                                  : -ENOENT;
        if (error)
            return error;
        path += length;
        path += *path == '.';
    }
    skip_space(&c);
    const char *from = c.p;
    if (!skip_value(&c, 0))
        return -EBADMSG;
    *value = from;
    return c.p - from;
}

int json_find_uint(const char *text, size_t n, const char *path, uint64_t *value)
{
    const char *digits;
    long length = json_find(text, n, path, &digits);
    if (length < 0)
        return (int)length;
    uint64_t sum = 0;
    for (long i = 0; i < length; i++) {
        if (!isdigit((unsigned char)digits[i]))
            return -EINVAL;
        if (__builtin_mul_overflow(sum, 10, &sum) || __builtin_add_overflow(sum, (uint64_t)(digits[i] - '0'), &sum))
            return -ERANGE;
    }
    *value = sum;
    return 0;
}

int json_find_string(const char *text, size_t n, const char *path, struct str *value)
{
    const char *quoted;
    long length = json_find(text, n, path, &quoted);
    if (length < 0)
        return (int)length;
    if (*quoted != '"')
        return -EINVAL;
    struct cursor c = {quoted, quoted + length};
    take_string(&c, value);
    return value->failed ? -ENOMEM : 0;
}

long json_next(const char **rest, size_t *n, const char **value)
{
    struct cursor c = {*rest, *rest + *n};
    bool first = take(&c, '[');
    if (take(&c, ']'))
        return -ENOENT;
    if (!first && !take(&c, ','))
        return -EBADMSG;
    skip_space(&c);
    const char *from = c.p;
    if (!skip_value(&c, 0))
        return -EBADMSG;
    *value = from;
    *n -= (size_t)(c.p - *rest);
    *rest = c.p;
    return c.p - from;
}
