/* Matches globs without recursion. When the match fails, it returns to the last `*`, which then takes one more
 * character, and if that is impossible, to the last `**`. Returning further is useless: what precedes a `*` that was
 * reached was matched as early as possible, and a `*` that met a slash has settled everything before it. So the time is
 * at most the product of the lengths, squared only with both kinds of stars. */
#include "fs/catalog/glob.h"

#include "fs/base/utf8.h"

#include <string.h>

/* The set after '[': 1: it contains the character; 0: it does not; −1: not a set. Moves `glob` past it. */
static int match_set(const char **glob, const char *end, uint32_t c)
{
    const char *p = *glob;
    bool negated = p < end && (*p == '!' || *p == '^');
    p += negated;
    bool in = false;
    for (bool first = true; p < end && (first || *p != ']'); first = false) {
        p += *p == '\\' && p + 1 < end;
        uint32_t low = utf8_next(&p, end), high = low;
        if (end - p >= 2 && p[0] == '-' && p[1] != ']') {
            p++;
            p += *p == '\\' && p + 1 < end;
            high = utf8_next(&p, end);
        }
        in |= low <= c && c <= high;
    }
    if (p >= end)
        return -1;
    *glob = p + 1;
    return in != negated;
}

/* Match one character of the text against anything but a star. Moves both pointers; or neither, and returns false. */
static bool match_one(const char **glob, const char *glob_end, const char **text, const char *text_end)
{
    const char *g = *glob, *t = *text;
    if (g == glob_end || t == text_end)
        return false;
    uint32_t c = utf8_next(&t, text_end), want = utf8_next(&g, glob_end);
    int in = want == '[' ? match_set(&g, glob_end, c) : -1;
    bool same = want == c;
    if (in >= 0)
        same = in && c != '/';
    else if (want == '?')
        same = c != '/';
    else if (want == '\\' && g < glob_end)
        same = utf8_next(&g, glob_end) == c;
    if (same) {
        *glob = g;
        *text = t;
    }
    return same;
}

/* Where to resume when the match fails. */
struct star {
    const char *glob; /* after the star; NULL: none */
    const char *text; /* the star's text ends here */
    bool whole;       /* for `**`: a whole component, so that its text ends at a slash */
};

static void star_open(const char *begin, const char **glob, const char *end, const char *text, struct star *one,
                      struct star *any)
{
    const char *g = *glob + 1;
    if (g == end || *g != '*') {
        *glob = g;
        *one = (struct star){.glob = g, .text = text};
        return;
    }
    bool fresh = *glob == begin || (*glob)[-1] == '/';
    while (g < end && *g == '*')
        g++;
    bool whole = fresh && g < end && *g == '/';
    *glob = g + whole;
    *any = (struct star){.glob = *glob, .text = text, .whole = whole};
    one->glob = NULL;
}

static bool star_more(struct star *one, struct star *any, const char **glob, const char **text, const char *end)
{
    if (one->glob && one->text < end && *one->text != '/') {
        utf8_next(&one->text, end);
        *glob = one->glob;
        *text = one->text;
        return true;
    }
    one->glob = NULL;
    if (!any->glob || any->text >= end)
        return false;
    if (any->whole) {
        const char *slash = memchr(any->text, '/', (size_t)(end - any->text));
        any->text = slash ? slash + 1 : end;
        if (!slash)
            return false;
    } else {
        utf8_next(&any->text, end);
    }
    *glob = any->glob;
    *text = any->text;
    return true;
}

bool glob_match(const char *glob, const char *text, size_t n)
{
    const char *begin = glob, *glob_end = glob + strlen(glob), *end = text + n;
    struct star one = {0}, any = {0};
    for (;;) {
        if (glob < glob_end && *glob == '*') {
            star_open(begin, &glob, glob_end, text, &one, &any);
            continue;
        }
        if (glob == glob_end && text == end)
            return true;
        if (!match_one(&glob, glob_end, &text, end) && !star_more(&one, &any, &glob, &text, end))
            return false;
    }
}

bool glob_has_slash(const char *glob)
{
    return strchr(glob, '/') != NULL;
}
