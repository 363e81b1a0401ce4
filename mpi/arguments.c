#include "mpi/arguments.h"

#include "fs/base/log.h"
#include "fs/base/size.h"
#include "fs/wire/node.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stddef.h>

static const char usage[] =
    "usage: dealfs-courier --state DIR --mountpoint DIR [--nodes N] [--groups G] [--timeout "
    "NS] [--resize PIXELS --quality Q] "
    "[--lock FD] [--mounter FD] [--uid UID --gid GID] [--mount -- COMMAND… | --scan -- COMMAND…]";

enum { STATE = 1, MOUNTPOINT, NODES, GROUPS, TIMEOUT, RESIZE, QUALITY, LOCK, MOUNTER, BY_UID, BY_GID, MOUNT, SCAN };
static const struct option known[] = {
    {"state", required_argument, NULL, STATE},
    {"mountpoint", required_argument, NULL, MOUNTPOINT},
    {"nodes", required_argument, NULL, NODES},
    {"groups", required_argument, NULL, GROUPS},
    {"timeout", required_argument, NULL, TIMEOUT},
    {"resize", required_argument, NULL, RESIZE},
    {"quality", required_argument, NULL, QUALITY},
    {"lock", required_argument, NULL, LOCK},
    {"mounter", required_argument, NULL, MOUNTER},
    {"uid", required_argument, NULL, BY_UID},
    {"gid", required_argument, NULL, BY_GID},
    {"mount", no_argument, NULL, MOUNT},
    {"scan", no_argument, NULL, SCAN},
    {NULL, 0, NULL, 0},
};

static bool take_argument(struct arguments *a, int which, const char *value)
{
    uint64_t n = 0;
    switch (which) {
    case STATE:
        a->state = value;
        return true;
    case MOUNTPOINT:
        a->mountpoint = value;
        return true;
    case NODES:
        return number_parse(value, 0, NODES_MOST, &a->nodes) == 0;
    case GROUPS:
        return number_parse(value, 0, NODES_MOST, &a->groups) == 0;
    case TIMEOUT:
        return number_parse(value, 0, INT64_MAX, &a->timeout) == 0;
    case RESIZE:
        return number_parse(value, 1, UINT16_MAX, &a->resize) == 0;
    case QUALITY:
        return number_parse(value, 1, 100, &a->quality) == 0;
    case LOCK:
    case MOUNTER:
        if (number_parse(value, 0, INT_MAX, &n))
            return false;
        *(which == LOCK ? &a->lock : &a->mounter) = (int)n;
        return true;
    case BY_UID:
    case BY_GID:
        return number_parse(value, 0, UINT32_MAX - 1, which == BY_UID ? &a->uid : &a->gid) == 0;
    case MOUNT:
    case SCAN:
        *(which == MOUNT ? &a->mount : &a->scan) = true;
        return true;
    }
    return false;
}

int arguments_parse(int argc, char **argv, struct arguments *a)
{
    *a = (struct arguments){.lock = -1, .mounter = -1};
    int which;
    bool right = true;
    while (right && (which = getopt_long(argc, argv, "+", known, NULL)) != -1)
        right = take_argument(a, which, optarg);
    a->command = argv + optind;
    int words = argc - optind;
    if (right && a->state && !a->resize == !a->quality && a->mountpoint && !(a->mount && a->scan) &&
        (words > 0) == (a->mount || a->scan) && (!a->mount || words > 1))
        return 0;
    log_error("%s", usage);
    return -EINVAL;
}
