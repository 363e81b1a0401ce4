#include "fs/store/answer.h"

#include "fs/base/log.h"

#include <errno.h>
#include <string.h>

static size_t answer_length(const struct answer *answer)
{
    size_t n = 0;
    for (int i = 0; i < answer->pieces; i++)
        n += answer->piece[i].iov_len;
    return n;
}

int answer_append(struct answer *to, struct answer *from, const struct span *span)
{
    enum { PIECES = sizeof to->piece / sizeof *to->piece, PINS = sizeof to->pin / sizeof *to->pin };
    bool fits = to->pieces + from->pieces <= PIECES && to->pins + from->pins <= PINS;
    if (!fits || answer_length(from) != span->length) {
        log_limited(LOG_LEVEL_ERROR, 1, "a layer answered %zu bytes instead of %u", answer_length(from), span->length);
        answer_release(from);
        return -EIO;
    }
    memcpy(to->piece + to->pieces, from->piece, (size_t)from->pieces * sizeof *from->piece);
    memcpy(to->pin + to->pins, from->pin, (size_t)from->pins * sizeof *from->pin);
    to->pieces += from->pieces;
    to->pins += from->pins;
    return 0;
}
