/* The fields of a header, and the words of a pax header. */
#include "fs/records/tar-header.h"

#include "fs/base/size.h"

#include <string.h>

bool tar_number(const char *field, size_t n, uint64_t *number)
{
    const unsigned char *p = (const unsigned char *)field, *end = p + n;
    *number = 0;
    if (*p & 0x80) {
        bool fits = *p++ == 0x80;
        for (; p < end; p++) {
            fits = fits && *number >> 55 == 0;
            *number = *number << 8 | *p;
        }
        return fits;
    }
    while (p < end && *p == ' ')
        p++;
    for (; p < end && *p >= '0' && *p <= '7'; p++)
        *number = *number << 3 | (uint64_t)(*p - '0');
    return p == end || *p == '\0' || *p == ' ';
}

bool tar_is_zero(const unsigned char *block, size_t n)
{
    return n == 0 || (block[0] == 0 && memcmp(block, block + 1, n - 1) == 0);
}

/* Some writers have summed signed bytes. */
bool tar_checksum_fits(const unsigned char *block)
{
    const struct tar_header *h = (const void *)block;
    size_t from = offsetof(struct tar_header, checksum), to = from + sizeof h->checksum;
    uint64_t stored;
    int64_t plain = 0, with_sign = 0;
    for (size_t i = 0; i < TAR_BLOCK; i++) {
        unsigned char byte = i >= from && i < to ? ' ' : block[i];
        plain += byte;
        with_sign += (signed char)byte;
    }
    return tar_number(h->checksum, sizeof h->checksum, &stored) &&
           (stored == (uint64_t)plain || stored == (uint64_t)with_sign);
}

bool tar_decimal(const char *text, size_t n, uint64_t *number)
{
    const char *end = text + n;
    return number_take(&text, end, UINT64_MAX, number) && text == end;
}

size_t tar_key_length(const char *name, size_t n)
{
    const char *slash = memrchr(name, '/', n), *base = slash ? slash + 1 : name;
    const char *dot = memchr(base, '.', (size_t)(name + n - base));
    return dot && dot > base ? (size_t)(dot - name) : n;
}

bool tar_is_file(char type, const char *name, size_t n)
{
    if (type == '\0' && n > 0 && name[n - 1] == '/')
        return false; /* a directory, as v7 has them */
    return type == '0' || type == '\0' || type == '7' || type == 'S';
}

int tar_keyword_next(const char **text, size_t *n, struct tar_keyword *k)
{
    if (*n == 0 || **text == '\0')
        return 0;
    const char *blank = memchr(*text, ' ', *n);
    uint64_t length;
    if (!blank || !tar_decimal(*text, (size_t)(blank - *text), &length) || length > *n ||
        length < (size_t)(blank - *text) + 3 || (*text)[length - 1] != '\n')
        return -1;
    k->begin = *text;
    k->word = blank + 1;
    k->end = *text + length;
    const char *equals = memchr(k->word, '=', (size_t)(k->end - 1 - k->word));
    if (!equals)
        return -1;
    k->word_length = (size_t)(equals - k->word);
    k->value = equals + 1;
    k->value_length = (size_t)(k->end - 1 - k->value);
    *text += length;
    *n -= length;
    return 1;
}

bool tar_keyword_is(const struct tar_keyword *k, const char *word)
{
    return k->word_length == strlen(word) && memcmp(k->word, word, k->word_length) == 0;
}
