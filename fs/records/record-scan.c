/* The window over a container. */
#include "fs/records/record-scan.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum {
    SMALL = 4096,    /* a header that stands alone */
    FAR = 128 << 10, /* a step that is no larger is read through rather than skipped */
    LOOK_EVERY = 4096,
};

const unsigned char *scan_look(struct record_scan *s, uint64_t offset, size_t n)
{
    uint64_t end = s->begin + s->filled;
    if (offset >= s->begin && offset <= end && n <= end - offset)
        return s->window + (offset - s->begin);
    size_t wanted = !s->filled || (offset > end && offset - end > FAR) ? SMALL : SCAN_WINDOW;
    if (wanted < n)
        wanted = n;
    if (wanted > s->size - offset)
        wanted = (size_t)(s->size - offset);
    s->filled = 0;
    s->error = s->read(s->user, s->window, wanted, offset);
    if (s->error)
        return NULL;
    s->begin = offset;
    s->filled = wanted;
    return s->window;
}

const unsigned char *scan_rest(struct record_scan *s, uint64_t offset, size_t *n)
{
    const unsigned char *bytes = scan_look(s, offset, 1);
    if (bytes)
        *n = (size_t)(s->begin + s->filled - offset);
    return bytes;
}

int scan_expect(struct record_scan *s, uint64_t n)
{
    if (n <= s->most - s->count)
        return 0;
    return str_fail(s->why, -E2BIG, "more than %" PRIu64 " records: a list has at most that many", s->most);
}

int scan_found(struct record_scan *s, uint64_t offset, uint64_t length, const char *key, size_t key_length)
{
    const struct found_record record = {offset, (uint32_t)length, key, key_length, s->unended};
    int error = scan_expect(s, 1);
    if (error)
        return error;
    if (s->count++ % LOOK_EVERY == 0 && s->gave_up && s->gave_up(s->user))
        return str_fail(s->why, -EINTR, "offset %" PRIu64 ": %s", offset, strerror(EINTR));
    if (length <= UINT32_MAX)
        return s->found(s->user, &record);
    str_addf(s->why, "offset %" PRIu64 ": the record ", offset);
    str_add_printable(s->why, key ? key : "", key ? key_length : 0);
    return str_fail(s->why, -EFBIG, "%shas %" PRIu64 " bytes; records must be smaller than 4 GiB", key ? " " : "",
                    length);
}

int scan_broken(struct record_scan *s, uint64_t offset, const char *format, ...)
{
    va_list args;

    str_addf(s->why, "offset %" PRIu64 ": ", offset);
    va_start(args, format);
    str_addv(s->why, format, args);
    va_end(args);
    return -EBADMSG;
}
