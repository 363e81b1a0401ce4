/* Parses the headers of a tar. */
#ifndef FS_RECORDS_TAR_HEADER_H
#define FS_RECORDS_TAR_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TAR_BLOCK = 512,
    /* What an index refuses, because a stream with other names could not serve it: */
    TAR_MEMBERS_MOST = 1 << 16, /* members of a record */
    TAR_AREA_MOST = 1 << 20,    /* bytes of all headers of a member */
    TAR_NAME_MOST = 8192,
};

struct tar_header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100], magic[6], version[2],
        user[32], group[32], major[8], minor[8], prefix[155], rest[12];
};
_Static_assert(sizeof(struct tar_header) == TAR_BLOCK, "a header is a block");

static inline uint64_t tar_padded(uint64_t n)
{
    return (n + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
}
static inline bool tar_is_extension(char type)
{
    return type == 'x' || type == 'X' || type == 'g' || type == 'L' || type == 'K';
}
/* Is a member of this type and name a file? */
bool tar_is_file(char type, const char *name, size_t n);

/* Octal digits, or after a byte 0x80 a big-endian number. */
bool tar_number(const char *field, size_t n, uint64_t *number);
bool tar_is_zero(const unsigned char *block, size_t n);
bool tar_checksum_fits(const unsigned char *block);
size_t tar_key_length(const char *name,
                      size_t n); /* length of WebDataset's key: up to the first dot after the last slash */

/* A record of a pax header: "LENGTH WORD=VALUE\n"; LENGTH counts the whole record. */
struct tar_keyword {
    const char *begin, *word, *value, *end;
    size_t word_length, value_length;
};
/* Take the next record of a text: 1; 0: the end; -1: malformed. */
int tar_keyword_next(const char **text, size_t *n, struct tar_keyword *keyword);
bool tar_keyword_is(const struct tar_keyword *keyword, const char *word);
bool tar_decimal(const char *text, size_t n, uint64_t *number);

#endif
