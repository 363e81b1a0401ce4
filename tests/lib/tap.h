/* Tests in C that speak TAP (the Test Anything Protocol): one program a module.
 *
 * Every check returns whether it held, and may be called from any thread. A program ends with
 * `return done_testing();`: without a plan before, it prints one, and a program that dies earlier has none, which
 * the harness counts as an error. */
#ifndef TESTS_LIB_TAP_H
#define TESTS_LIB_TAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void plan(int tests); /* optional, first */
void plan_skip_all(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
int done_testing(void); /* the exit status: 0 when all held and as many ran as planned */

/* ok(condition, "what holds: %d", 3) and so on: the description is a printf format. */
#define ok(condition, ...) tap_ok((condition) ? true : false, __FILE__, __LINE__, __VA_ARGS__)
#define pass(...) tap_ok(true, __FILE__, __LINE__, __VA_ARGS__)
#define fail(...) tap_ok(false, __FILE__, __LINE__, __VA_ARGS__)
#define is_int(got, expected, ...) tap_is_int((got), (expected), __FILE__, __LINE__, __VA_ARGS__)
#define is_uint(got, expected, ...) tap_is_uint((got), (expected), __FILE__, __LINE__, __VA_ARGS__)
#define is_str(got, expected, ...) tap_is_str((got), (expected), __FILE__, __LINE__, __VA_ARGS__)
#define is_mem(got, expected, n, ...) tap_is_mem((got), (expected), (n), __FILE__, __LINE__, __VA_ARGS__)

void skip(int tests, const char *why, ...) __attribute__((format(printf, 2, 3)));
void diag(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The test cannot be set up: say why and end the program as an error. */
void bail_out(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Milliseconds until the deadline of the test, for the waits of poll and the like: at least 1. */
int test_patience(void);

/* A fresh directory of this program, made at the first call and removed with all in it when the program exits;
 * an absolute path. Children that were forked off do not remove it. */
const char *test_directory(void);
/* A path in it, for snprintf-less tests: valid until the 16th next call. */
const char *test_path(const char *format, ...) __attribute__((format(printf, 1, 2)));

bool tap_ok(bool condition, const char *file, int line, const char *format, ...) __attribute__((format(printf, 4, 5)));
bool tap_is_int(intmax_t got, intmax_t expected, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
bool tap_is_uint(uintmax_t got, uintmax_t expected, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
bool tap_is_str(const char *got, const char *expected, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
bool tap_is_mem(const void *got, const void *expected, size_t n, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

#endif
