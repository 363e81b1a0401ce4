/* Names as Python sees them: UTF-8; other bytes represent themselves (surrogateescape: U+DC80…U+DCFF). */
#ifndef FS_BASE_UTF8_H
#define FS_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UTF8_ESCAPE = 0xDC00 }; /* added to a byte that is not UTF-8 */

/* Length of the character that n > 0 bytes begin with; 0: not a character. */
size_t utf8_length(const void *bytes, size_t n);

/* The character at *p, which is moved past it; *p < end. */
uint32_t utf8_next(const char **p, const char *end);

bool utf8_valid(const char *text, size_t n);

/* Compare like Python strings: by characters. For valid UTF-8 this is the order of bytes. */
int utf8_compare(const char *a, size_t a_length, const char *b, size_t b_length);

#endif
