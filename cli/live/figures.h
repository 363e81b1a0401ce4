/* Gets values out of the JSON of mounts (dealfs-control(5)) by name, and formats lines with them. */
#ifndef CLI_LIVE_FIGURES_H
#define CLI_LIVE_FIGURES_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum { FIGURES_PLACES = 4 };
extern const char *const figures_places[FIGURES_PLACES]; /* "ram", "ssd", "peer", "source" */

/* 0 if it is missing. */
uint64_t figures_number(const struct str *json, const char *path, ...) __attribute__((format(printf, 2, 3)));
/* Is the value this string or literal? */
bool figures_is(const struct str *json, const char *path, const char *word);

/* Iterates over an array; `path` NULL: the outermost one. An element is a slice of `json`. */
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
