/* Values in the JSON that mounts give (dealfs-control(5)), by their names, and lines made of them. */
#ifndef CLI_LIVE_FIGURES_H
#define CLI_LIVE_FIGURES_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum { FIGURES_PLACES = 4 };
extern const char *const figures_places[FIGURES_PLACES]; /* "ram", "ssd", "peer", "source" */

/* 0 where there is none. */
uint64_t figures_number(const struct str *json, const char *path, ...) __attribute__((format(printf, 2, 3)));
/* The value is this string, or this literal. */
bool figures_is(const struct str *json, const char *path, const char *word);

/* The elements of an array one after the other; `path` NULL: of the outermost one. An element is a slice of `json`. */
struct figures_list {
    const char *rest;
    size_t left;
};
struct figures_list figures_list_of(const struct str *json, const char *path);
bool figures_next(struct figures_list *list, struct str *element);

/* Appends what printf makes of `format`, with each {PATH KIND WIDTH} in it replaced by a value of `json`; WIDTH, as
 * printf's, and KIND may be missing:
 *
 *   KIND     printed as
 *   number   digits; the default
 *   count    1,234,567
 *   size     bytes: 1.2 MiB
 *   us       microseconds, as a duration
 *   text     a string without control characters; "-" where there is none
 *
 * {PATH|ONE|MANY} becomes ONE if the number is 1, else MANY. */
void figures_add(struct str *out, const struct str *json, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void figures_print(const struct str *json, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
