/* Blanks and line ends for JSON: one pass over its tokens, with a look ahead at each group that opens. */
#include "fs/mount/control/pretty.h"

#include <stdbool.h>

enum { INDENT = 2, GROUP_MOST = 150 };

/* The end of the string that begins at `at`, past its closing quote. */
static size_t skip_string(const char *text, size_t n, size_t at)
{
    for (at++; at < n && text[at] != '"'; at++)
        if (text[at] == '\\')
            at++;
    return at < n ? at + 1 : n;
}

/* Where the group that opens at `at` closes, when it has no group inside and is short; else 0. */
static size_t small_group(const char *text, size_t n, size_t at)
{
    for (size_t i = at + 1; i < n && i - at <= GROUP_MOST;) {
        if (text[i] == '"') {
            i = skip_string(text, n, i);
            continue;
        }
        if (text[i] == '{' || text[i] == '[')
            return 0;
        if (text[i] == '}' || text[i] == ']')
            return i;
        i++;
    }
    return 0;
}

static void new_line(struct str *out, unsigned depth)
{
    str_addf(out, "\n%*s", (int)(depth * INDENT), "");
}

void pretty_json(const char *text, size_t n, struct str *out)
{
    unsigned depth = 0;
    size_t small = 0; /* the close of the small group that we are in */

    for (size_t at = 0, next; at < n; at = next) {
        char c = text[at];
        next = c == '"' ? skip_string(text, n, at) : at + 1;
        bool opens = c == '{' || c == '[', closes = c == '}' || c == ']';
        if (closes && at != small)
            new_line(out, --depth);
        str_add(out, text + at, next - at);
        if (opens && (small = small_group(text, n, at)) == 0)
            new_line(out, ++depth);
        else if (c == ',' && at > small)
            new_line(out, depth);
        else if (c == ',' || c == ':')
            str_adds(out, " ");
    }
    str_adds(out, "\n");
}
