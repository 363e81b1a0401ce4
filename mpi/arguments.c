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
    "[--lock FD] [--mounter FD] [--uid UID --gid GID] [--acls] [--mount -- COMMAND… | --scan -- COMMAND…]";

enum argument_type { TEXT, NUMBER, FLAG };
#define AT(member) .place = offsetof(struct arguments, member)
static const struct argument {
    const char *name;
    enum argument_type type;
    size_t place;
    uint64_t least, most;
} known[] = {
    {"state", TEXT, AT(state)},
    {"mountpoint", TEXT, AT(mountpoint)},
    {"nodes", NUMBER, AT(nodes), .most = NODES_MOST},
    {"groups", NUMBER, AT(groups), .most = NODES_MOST},
    {"timeout", NUMBER, AT(timeout), .most = INT64_MAX},
    {"resize", NUMBER, AT(resize), .least = 1, .most = UINT16_MAX},
    {"quality", NUMBER, AT(quality), .least = 1, .most = 100},
    {"lock", NUMBER, AT(lock), .most = INT_MAX},
    {"mounter", NUMBER, AT(mounter), .most = INT_MAX},
    {"uid", NUMBER, AT(uid), .most = UINT32_MAX - 1},
    {"gid", NUMBER, AT(gid), .most = UINT32_MAX - 1},
    {"mount", FLAG, AT(mount)},
    {"scan", FLAG, AT(scan)},
    {"acls", FLAG, AT(acls)},
};
enum { KNOWN = sizeof known / sizeof *known };

static bool take_argument(struct arguments *a, const struct argument *of, const char *value)
{
    void *place = (char *)a + of->place;
    if (of->type == NUMBER)
        return number_parse(value, of->least, of->most, place) == 0;
    if (of->type == TEXT)
        *(const char **)place = value;
    else
        *(bool *)place = true;
    return true;
}

int arguments_parse(int argc, char **argv, struct arguments *a)
{
    struct option names[KNOWN + 1] = {0};
    *a = (struct arguments){.lock = -1, .mounter = -1};
    int which;
    bool right = true;
    for (int i = 0; i < KNOWN; i++)
        names[i] = (struct option){known[i].name, known[i].type != FLAG, NULL, i};
    while (right && (which = getopt_long(argc, argv, "+", names, NULL)) != -1)
        right = which < KNOWN && take_argument(a, &known[which], optarg);
    a->command = argv + optind;
    int words = argc - optind;
    if (right && a->state && !a->resize == !a->quality && a->mountpoint && !(a->mount && a->scan) &&
        (words > 0) == (a->mount || a->scan) && (!a->mount || words > 1))
        return 0;
    log_error("%s", usage);
    return -EINVAL;
}
