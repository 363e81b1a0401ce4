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

/* Where to resume when the match fails. */
struct star {
    const char *glob; /* after the star; NULL: none */
    const char *text; /* the star's text ends here */
    bool whole;       /* for `**`: a whole component, so that its text ends at a slash */
};

struct matching {
    const char *glob, *text; /* what is not matched yet */
    const char *glob_begin, *glob_end, *text_end;
    struct star one, any; /* the last `*` and `**` */
};

/* Match one character of the text against anything but a star, and move past both. False: nothing has moved. */
static bool match_one(struct matching *m)
{
    const char *g = m->glob, *t = m->text;
    if (g == m->glob_end || t == m->text_end)
        return false;
    uint32_t c = utf8_next(&t, m->text_end), want = utf8_next(&g, m->glob_end);
    int in = want == '[' ? match_set(&g, m->glob_end, c) : -1;
    bool same = want == c;
    if (in >= 0)
        same = in && c != '/';
    else if (want == '?')
        same = c != '/';
    else if (want == '\\' && g < m->glob_end)
        same = utf8_next(&g, m->glob_end) == c;
    if (same) {
        m->glob = g;
        m->text = t;
    }
    return same;
}

static void star_open(struct matching *m)
{
    const char *g = m->glob + 1;
    if (g == m->glob_end || *g != '*') {
        m->glob = g;
        m->one = (struct star){.glob = g, .text = m->text};
        return;
    }
    bool fresh = m->glob == m->glob_begin || m->glob[-1] == '/';
    while (g < m->glob_end && *g == '*')
        g++;
    bool whole = fresh && g < m->glob_end && *g == '/';
    m->glob = g + whole;
    m->any = (struct star){.glob = m->glob, .text = m->text, .whole = whole};
    m->one.glob = NULL;
}

static void star_resume(struct matching *m, const struct star *star)
{
    m->glob = star->glob;
    m->text = star->text;
}

static bool star_more(struct matching *m)
{
    struct star *one = &m->one, *any = &m->any;
    if (one->glob && one->text < m->text_end && *one->text != '/') {
        utf8_next(&one->text, m->text_end);
        star_resume(m, one);
        return true;
    }
    one->glob = NULL;
    if (!any->glob || any->text >= m->text_end)
        return false;
    if (any->whole) {
        const char *slash = memchr(any->text, '/', (size_t)(m->text_end - any->text));
        any->text = slash ? slash + 1 : m->text_end;
        if (!slash)
            return false;
    } else {
        utf8_next(&any->text, m->text_end);
    }
    star_resume(m, any);
    return true;
}

bool glob_match(const char *glob, const char *text, size_t n)
{
    struct matching m = {
        .glob = glob, .text = text, .glob_begin = glob, .glob_end = glob + strlen(glob), .text_end = text + n};
    for (;;) {
        if (m.glob < m.glob_end && *m.glob == '*')
            star_open(&m);
        else if (m.glob == m.glob_end && m.text == m.text_end)
            return true;
        else if (!match_one(&m) && !star_more(&m))
            return false;
    }
}

bool glob_has_slash(const char *glob)
{
    return strchr(glob, '/') != NULL;
}
