/* Requests that a test in another language writes to a program's stdin: a line of KEY=NUMBER, and raw bytes. */
#ifndef TESTS_LIB_REQUESTS_H
#define TESTS_LIB_REQUESTS_H

#include <stddef.h>
#include <stdint.h>

uint64_t request_number(const char *line, const char *key, uint64_t otherwise);
void *request_take(size_t n); /* the next n bytes, for free(); the program ends when there are fewer */

#endif
