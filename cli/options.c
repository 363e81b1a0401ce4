/* A table of options: each has a name, what it takes, and where that goes. What belongs to mount(8) and fstab alone is
 * passed over; what belongs to a later dealfs is refused with the reason. */
#include "cli/options.h"

#include "fs/base/cleanup.h"
#include "fs/base/size.h"
#include "fs/world/directory.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

enum { ZSTD_DEFAULT = 1, ZSTD_MOST = 19, SOURCE_THREADS_DEFAULT = 16, SOURCE_THREADS_MOST = 256 };
static const uint64_t peer_timeout_default = 5000000000;

enum kind {
    PATH,
    SIZE,
    NAME,
    FLAG,
    SPECIAL, /* `set` looks at the value */
    LATER,   /* not in this version */
};

struct option {
    const char *name;
    enum kind kind;
    size_t place;
    int (*set)(struct options *o, const char *value, struct str *why);
    const char *reason; /* LATER */
    bool hidden;        /* what a courier adds: in no manual */
};

static int set_rescan(struct options *o, const char *value, struct str *why)
{
    static const char *const names[] = {[RESCAN_AUTO] = "auto", [RESCAN_NEVER] = "never", [RESCAN_ALWAYS] = "always"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(value, names[i]) == 0) {
            o->rescan = (enum rescan)i;
            return 0;
        }
    str_adds(why, "must be auto, always or never");
    return -EINVAL;
}

static int set_zstd(struct options *o, const char *value, struct str *why)
{
    uint64_t level = 0;

    if (strcmp(value, "off") != 0 && number_parse(value, 1, ZSTD_MOST, &level)) {
        str_addf(why, "must be off or a level from 1 to %d", ZSTD_MOST);
        return -EINVAL;
    }
    o->zstd_level = (int)level;
    return 0;
}

static int set_source_threads(struct options *o, const char *value, struct str *why)
{
    uint64_t threads;

    if (number_parse(value, 1, SOURCE_THREADS_MOST, &threads)) {
        str_addf(why, "must be a number from 1 to %d", SOURCE_THREADS_MOST);
        return -EINVAL;
    }
    o->source_threads = (int)threads;
    return 0;
}

static int set_peer_timeout(struct options *o, const char *value, struct str *why)
{
    uint64_t time;

    if (duration_parse(value, &time) || time == 0) {
        str_adds(why, "must be a time above zero, such as 5 or 0.5s");
        return -EINVAL;
    }
    o->peer_timeout = time;
    return 0;
}

static int set_count(unsigned *to, const char *value, const char *of, struct str *why)
{
    uint64_t count;

    if (number_parse(value, 1, NODES_MOST, &count)) {
        str_addf(why, "must be a number of %s from 1 to %d", of, NODES_MOST);
        return -EINVAL;
    }
    *to = (unsigned)count;
    return 0;
}

static int set_nodes(struct options *o, const char *value, struct str *why)
{
    return set_count(&o->nodes, value, "nodes", why);
}

static int set_groups(struct options *o, const char *value, struct str *why)
{
    return set_count(&o->groups, value, "groups", why);
}

/* node=NUMBER/NODES-ON-THIS-HOST */
static int set_node(struct options *o, const char *value, struct str *why)
{
    CLEANUP_FREE char *number = strdup(value);
    char *slash = number ? strchr(number, '/') : NULL;
    uint64_t node, local;

    if (!number)
        return -ENOMEM;
    if (slash)
        *slash++ = '\0';
    if (!slash || number_parse(number, 0, NODES_MOST - 1, &node) || number_parse(slash, 1, NODES_MOST, &local)) {
        str_adds(why, "must be a node's number and how many of them are on this host");
        return -EINVAL;
    }
    o->node = (unsigned)node;
    o->local = (unsigned)local;
    return 0;
}

#define AT(member) .place = offsetof(struct options, member)

static const struct option table[] = {
    {"ram", SIZE, AT(ram)},
    {"ssd", PATH, AT(ssd)},
    {"ssd_size", SIZE, AT(ssd_size)},
    {"state", PATH, AT(state)},
    {"control", PATH, AT(control)},
    {"metrics_file", PATH, AT(metrics_file)},
    {"owner", NAME, AT(owner)},
    {"rescan", SPECIAL, .set = set_rescan},
    {"zstd", SPECIAL, .set = set_zstd},
    {"source_threads", SPECIAL, .set = set_source_threads},
    {"peer_timeout", SPECIAL, .set = set_peer_timeout},
    {"nodes", SPECIAL, .set = set_nodes},
    {"groups", SPECIAL, .set = set_groups},
    {"node", SPECIAL, .set = set_node, .hidden = true},
    {"catalog", PATH, AT(catalog), .hidden = true},
    {"allow_other", FLAG, AT(allow_other)},
    {"noexec", FLAG, AT(no_exec)},
    {"wait_join", FLAG, AT(wait_join)},
    {"resize", LATER, .reason = "resizing images is not available in this version"},
    {"remount", LATER, .reason = "a mount cannot be changed; unmount it and mount again"},
};

/* Of mount(8), fstab and the kernel: nothing for us to do, or always so. Each may have a value, but for `owner`, which
 * fstab knows without one. */
static const char *const ignored[] = {
    "_netdev",     "async",      "atime",  "auto",   "comment", "default_permissions", "defaults", "dev",
    "diratime",    "dirsync",    "exec",   "group",  "iversion",   "lazytime", "loud",
    "mand",        "noatime",    "noauto", "nodev",  "nodiratime", "nofail",           "noiversion", "nolazytime",
    "nomand",      "norelatime", "nostrictatime", "nosuid", "nouser", "nousers",       "owner",    "relatime",
    "ro",          "rw",         "silent", "strictatime", "suid", "sync",              "user",     "users",
};

static bool is_ignored(const char *name)
{
    if (strncmp(name, "x-", 2) == 0 || strncmp(name, "X-", 2) == 0)
        return true;
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
        if (strcmp(name, ignored[i]) == 0)
            return true;
    return false;
}

static int keep(char **to, const char *value)
{
    char *copy = strdup(value);

    if (!copy)
        return -ENOMEM;
    free(*to);
    *to = copy;
    return 0;
}

static int set_size(struct options *o, const struct option *option, const char *value, struct str *why)
{
    uint64_t size;
    int error = size_parse(value, UINT64_C(1) << 40, &size);

    if (!error)
        return keep((char **)((char *)o + option->place), value);
    str_adds(why, error == -ERANGE ? "is too large" : "must be a size, such as 512M, 10G or 25%");
    return -EINVAL;
}

static int set_value(struct options *o, const struct option *option, const char *value, struct str *why)
{
    char *member = (char *)o + option->place;

    if (option->kind == LATER) {
        str_adds(why, option->reason);
        return -EINVAL;
    }
    if (option->kind == FLAG) {
        if (value)
            str_adds(why, "takes no value");
        else
            *(bool *)member = true;
        return value ? -EINVAL : 0;
    }
    if (!value || !*value) {
        str_adds(why, "needs a value");
        return -EINVAL;
    }
    switch (option->kind) {
    case SIZE:
        return set_size(o, option, value, why);
    case SPECIAL:
        return option->set(o, value, why);
    default:
        return keep((char **)member, value);
    }
}

static void refuse(struct str *why, const char *name, const char *value, const char *reason)
{
    str_adds(why, "option ");
    str_add_printable(why, name, strlen(name));
    if (value) {
        str_adds(why, "=");
        str_add_printable(why, value, strlen(value));
    }
    str_addf(why, ": %s", reason);
}

static int set_one(struct options *o, char *text, struct str *why)
{
    CLEANUP_STR struct str reason = STR_INIT;
    char *value = strchr(text, '=');

    if (value)
        *value++ = '\0';
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (strcmp(text, table[i].name) != 0 || (table[i].kind == NAME && !value))
            continue;
        int error = set_value(o, &table[i], value, &reason);
        if (error == -EINVAL)
            refuse(why, text, value, reason.data);
        return error;
    }
    if (is_ignored(text))
        return 0;
    refuse(why, text, value, "is not known");
    return -EINVAL;
}

/* Cuts the next option off, and takes the backslashes out of it. */
static char *next_option(char **rest)
{
    char *first = *rest, *to = first, *from = first;

    for (; *from && *from != ','; from++) {
        if (*from == '\\' && (from[1] == ',' || from[1] == '\\'))
            from++;
        *to++ = *from;
    }
    *rest = *from ? from + 1 : NULL;
    *to = '\0';
    return first;
}

int options_parse(struct options *o, const char *list, struct str *why)
{
    CLEANUP_FREE char *copy = strdup(list);
    char *rest = copy;

    if (!copy)
        return -ENOMEM;
    while (rest) {
        char *one = next_option(&rest);
        int error = *one ? set_one(o, one, why) : 0;
        if (error)
            return error;
    }
    return 0;
}

static int check_world(const struct options *o, struct str *why)
{
    if (o->wait_join && o->nodes)
        str_adds(why, "options wait_join and nodes: do not go together; `dealfs join --nodes N` checks the world's size");
    else if (o->wait_join && o->catalog)
        str_adds(why, "options wait_join and catalog: do not go together");
    else if (o->nodes && o->groups > o->nodes)
        str_addf(why, "option groups=%u: more groups than nodes, which are %u", o->groups, o->nodes);
    else
        return 0;
    return -EINVAL;
}

int options_check(const struct options *o, struct str *why)
{
    if (!o->ssd_size || o->ssd)
        return check_world(o, why);
    refuse(why, "ssd_size", o->ssd_size, "needs ssd=DIR");
    return -EINVAL;
}

void options_init(struct options *o)
{
    *o = (struct options){
        .rescan = RESCAN_AUTO,
        .zstd_level = ZSTD_DEFAULT,
        .source_threads = SOURCE_THREADS_DEFAULT,
        .peer_timeout = peer_timeout_default,
    };
}

void options_fini(struct options *o)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].kind == PATH || table[i].kind == SIZE || table[i].kind == NAME)
            free(*(char **)((char *)o + table[i].place));
    options_init(o);
}
