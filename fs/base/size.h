/* Sizes and durations as people write them. */
#ifndef FS_BASE_SIZE_H
#define FS_BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "10G", "512M", "4096", "1.5T", "2GiB" (powers of 1024), or "25%" of `whole` (up to 100%). 0, -EINVAL, or -ERANGE. */
int size_parse(const char *text, uint64_t whole, uint64_t *size);

/* An unsigned decimal number in min…max; nothing else in the text. 0, -EINVAL, or -ERANGE. */
int number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *number);

/* Take the decimal digits at `*at`, a number up to `most`, and move past them. */
bool number_take(const char **at, const char *end, uint64_t most, uint64_t *number);

/* "2", "0.25" in millionths, without floating point: at most six decimals, in min…max. 0, -EINVAL, or -ERANGE. */
enum { MILLION = 1000000 };
int millionths_parse(const char *text, uint64_t min, uint64_t max, uint64_t *millionths);

/* "7d", "12h", "30m", "10s", "200ms", "10", "0.5" (seconds) in nanoseconds. 0, -EINVAL, or -ERANGE. */
int duration_parse(const char *text, uint64_t *nanoseconds);

/* "1.4 GiB" and "3m12s"; the buffer is returned. */
char *size_format(uint64_t size, char *buffer, size_t n);
char *duration_format(uint64_t nanoseconds, char *buffer, size_t n);
enum { SIZE_TEXT = 32 };
/* The same in a buffer that lives until the end of the enclosing block. */
#define size_text(size) size_format(size, (char[SIZE_TEXT]){0}, SIZE_TEXT)
#define duration_text(nanoseconds) duration_format(nanoseconds, (char[SIZE_TEXT]){0}, SIZE_TEXT)

#endif
