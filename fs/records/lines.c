/* Lines: JSONL and other text. A record is a line with its newline, which the last one may lack. */
#include "fs/base/utf8.h"
#include "fs/records/container.h"

#include <string.h>

/* Is it UTF-8 without control characters? The end of the head may cut a character. */
static bool lines_recognise(const unsigned char *head, size_t n, uint64_t size)
{
    for (size_t i = 0; i < n; i++)
        if (head[i] < ' ' && !strchr("\t\n\r\f\v\b\x1b", head[i] ? head[i] : 1))
            return false;
    for (size_t cut = 0; cut < 4 && cut < n; cut++)
        if (utf8_valid((const char *)head, n - cut))
            return cut == 0 || n < size;
    return false;
}

static int lines_scan(struct record_scan *s)
{
    uint64_t begin = 0;
    for (uint64_t at = 0; at < s->size;) {
        size_t n;
        const unsigned char *rest = scan_rest(s, at, &n);
        const unsigned char *newline = rest ? memchr(rest, '\n', n) : NULL;
        if (!rest)
            return s->error;
        at += newline ? (size_t)(newline - rest) + 1 : n;
        if (!newline && at < s->size && at - begin <= UINT32_MAX)
            continue;
        s->unended = !newline;
        int error = scan_found(s, begin, at - begin, NULL, 0);
        if (error)
            return error;
        begin = at;
    }
    return 0;
}

const struct container_format container_lines = {"lines", "lines", lines_recognise, lines_scan};
