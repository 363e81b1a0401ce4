#include "tests/lib/requests.h"

#include "tests/lib/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t request_number(const char *line, const char *key, uint64_t otherwise)
{
    char wanted[64];
    snprintf(wanted, sizeof wanted, " %s=", key);
    const char *at = strstr(line, wanted);
    return at ? strtoull(at + strlen(wanted), NULL, 10) : otherwise;
}

void *request_take(size_t n)
{
    char *bytes = calloc(1, n + 1);
    if (!bytes || fread(bytes, 1, n, stdin) != n)
        bail_out("the request ends early");
    return bytes;
}
