/* Arguments of the courier; whoever calls it is a program of ours, so they are few and plain. */
#include "mpi/options.h"

#include "fs/base/log.h"
#include "fs/world/directory.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: dealfs-courier --state DIR --mountpoint DIR [--nodes N] [--groups G] [--timeout NS] "
    "[--mount -- COMMAND… | --scan -- COMMAND…]";

enum { STATE = 1, MOUNTPOINT, NODES, GROUPS, TIMEOUT, MOUNT, SCAN };
static const struct option known[] = {
    {"state", required_argument, NULL, STATE},
    {"mountpoint", required_argument, NULL, MOUNTPOINT},
    {"nodes", required_argument, NULL, NODES},
    {"groups", required_argument, NULL, GROUPS},
    {"timeout", required_argument, NULL, TIMEOUT},
    {"mount", no_argument, NULL, MOUNT},
    {"scan", no_argument, NULL, SCAN},
    {NULL, 0, NULL, 0},
};

static bool number(const char *text, uint64_t most, uint64_t *to)
{
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (errno || end == text || *end != '\0' || *text == '-' || n > most)
        return false;
    *to = n;
    return true;
}

static bool take(struct options *o, int which, const char *value)
{
    uint64_t n = 0;
    switch (which) {
    case STATE:
        o->state = value;
        return true;
    case MOUNTPOINT:
        o->mountpoint = value;
        return true;
    case TIMEOUT:
        return number(value, INT64_MAX, &o->timeout);
    case MOUNT:
        o->mount = true;
        return true;
    case SCAN:
        o->scan = true;
        return true;
    case NODES:
    case GROUPS:
        if (!number(value, NODES_MOST, &n))
            return false;
        *(which == NODES ? &o->nodes : &o->groups) = (uint32_t)n;
        return true;
    }
    return false;
}

int options_parse(int argc, char **argv, struct options *o)
{
    *o = (struct options){0};
    int which;
    bool right = true;
    while (right && (which = getopt_long(argc, argv, "+", known, NULL)) != -1)
        right = take(o, which, optarg);
    o->command = argv + optind;
    int words = argc - optind;
    if (right && o->state && o->mountpoint && !(o->mount && o->scan) && (words > 0) == (o->mount || o->scan) &&
        (!o->mount || words > 1))
        return 0;
    log_error("%s", usage);
    return -EINVAL;
}
