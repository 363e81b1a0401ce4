/* A table of options: each has a name, a type, and a destination. Options for mount(8) and fstab are ignored; options
 * of later versions of dealfs are rejected with the reason. */
#include "cli/mount/mount-options.h"

#include "fs/attach/config.h"
#include "fs/base/cleanup.h"
#include "fs/base/hash.h"
#include "fs/base/keys.h"
#include "fs/base/size.h"
#include "fs/wire/node.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

enum { RANKS_MOST = 1 << 20, BATCH_MOST = 1 << 30, RESIZE_MOST = 16384, QUALITY_DEFAULT = 90 };
enum { ZSTD_DEFAULT = 1, ZSTD_MOST = 19, SOURCE_THREADS_DEFAULT = 16, SOURCE_THREADS_MOST = 256 };
static const uint64_t peer_timeout_default = 5000000000;

enum option_kind {
    PATH,
    SIZE,
    NAME,
    NUMBER, /* an int, `least` to `most` */
    BYTES,  /* a uint64_t, the same */
    WINDOW, /* the same; or 0 or off: none */
    FLAG,
    SPECIAL, /* `set` parses the value */
    LATER,   /* not in this version */
};

struct mount_option {
    const char *name;
    enum option_kind kind;
    size_t place;
    int (*set)(struct mount_options *o, const char *value, struct str *why);
    const char *text; /* LATER: the reason; NUMBER: its unit; BYTES: which sizes are allowed */
    uint64_t least, most;
    bool hidden; /* only couriers use it: not documented */
};

static int refuse_value(const char *values, struct str *why)
{
    return str_fail(why, -EINVAL, "must be %s", values);
}

static int set_rescan(struct mount_options *o, const char *value, struct str *why)
{
    static const char *const names[] = {
        [RESCAN_AUTO] = "auto", [RESCAN_NEVER] = "never", [RESCAN_ALWAYS] = "always", [RESCAN_NAMES] = "names"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(value, names[i]) == 0) {
            o->rescan = (enum rescan)i;
            return 0;
        }
    return refuse_value("auto, names, always or never", why);
}

static int set_identity(struct mount_options *o, const char *value, struct str *why)
{
    o->identity_mtime = strcmp(value, "mtime") == 0;
    return o->identity_mtime ? 0 : refuse_value("mtime", why);
}

static int set_zstd(struct mount_options *o, const char *value, struct str *why)
{
    uint64_t level = 0;
    if (strcmp(value, "off") != 0 && number_parse(value, 1, ZSTD_MOST, &level))
        return str_fail(why, -EINVAL, "must be off or a level from 1 to %d", ZSTD_MOST);
    o->zstd_level = (int)level;
    return 0;
}

static int set_verify(struct mount_options *o, const char *value, struct str *why)
{
    o->verify_once = strcmp(value, "once") == 0;
    return o->verify_once || strcmp(value, "always") == 0 ? 0 : refuse_value("always or once", why);
}

static int set_peer_timeout(struct mount_options *o, const char *value, struct str *why)
{
    uint64_t time;
    if (duration_parse(value, &time) || time == 0)
        return str_fail(why, -EINVAL, "must be a time above zero, such as 5 or 0.5s");
    o->peer_timeout = time;
    return 0;
}

static int set_sampler(struct mount_options *o, const char *value, struct str *why)
{
    o->sampler = strcmp(value, "torch") == 0;
    return o->sampler ? 0 : refuse_value("torch: only the lists of its DistributedSampler can be predicted", why);
}

static int set_seed(struct mount_options *o, const char *value, struct str *why)
{
    o->seeded = number_parse(value, 0, UINT64_MAX, &o->seed) == 0;
    return o->seeded ? 0 : refuse_value("a whole number, 0 or larger", why);
}

static int set_tail(struct mount_options *o, const char *value, struct str *why)
{
    o->drop = strcmp(value, "drop") == 0;
    o->tail_given = true;
    return o->drop || strcmp(value, "pad") == 0 ? 0 : refuse_value("pad or drop", why);
}

/* node=NUMBER/NODES-ON-THIS-HOST */
static int set_node(struct mount_options *o, const char *value, struct str *why)
{
    CLEANUP_FREE char *number = strdup(value);
    char *slash = number ? strchr(number, '/') : NULL;
    uint64_t node, local;
    if (!number)
        return -ENOMEM;
    if (slash)
        *slash++ = '\0';
    if (!slash || number_parse(number, 0, NODES_MOST - 1, &node) || number_parse(slash, 1, NODES_MOST, &local))
        return str_fail(why, -EINVAL, "must be a node's number and the number of nodes on this host");
    o->node = (unsigned)node;
    o->local = (unsigned)local;
    return 0;
}

static int set_portion(struct mount_options *o, const char *value, struct str *why)
{
    if (sscanf(value, "%u/%u", &o->part.number, &o->part.count) == 2 && o->part.number < o->part.count)
        return 0;
    return str_fail(why, -EINVAL, "must be the number of a part and the number of parts");
}

#define AT(member) .place = offsetof(struct mount_options, member)
#define MEGABYTES .text = "of at least 1M, such as 256M or 1G", .least = 1 << 20, .most = UINT64_MAX

static const struct mount_option table[] = {
    {"ram", SIZE, AT(ram)},
    {"ssd", PATH, AT(ssd)},
    {"ssd_size", SIZE, AT(ssd_size)},
    {"state", PATH, AT(state)},
    {"control", PATH, AT(control)},
    {"metrics_file", PATH, AT(metrics_file)},
    {"owner", NAME, AT(owner)},
    {"mounter", PATH, AT(mounter)},
    {"cache_id", PATH, AT(cache_id)},
    {"digest", PATH, AT(digest)},
    {"rescan", SPECIAL, .set = set_rescan},
    {"identity", SPECIAL, .set = set_identity},
    {"zstd", SPECIAL, .set = set_zstd},
    {"verify", SPECIAL, .set = set_verify},
    {"source_threads", NUMBER, AT(source_threads), .text = "", .least = 1, .most = SOURCE_THREADS_MOST},
    {"source_rate", BYTES, AT(source_rate), MEGABYTES},
    {"peer_timeout", SPECIAL, .set = set_peer_timeout},
    {"decoded", BYTES, AT(decoded), MEGABYTES},
    {"request_memory", BYTES, AT(request_memory), MEGABYTES},
    {"readahead", BYTES, AT(readahead), .text = "from 4K to 1M", .least = READAHEAD_LEAST, .most = READAHEAD_MOST},
    {"feed", WINDOW, AT(feed), MEGABYTES},
    {"sampler", SPECIAL, .set = set_sampler},
    {"ranks", NUMBER, AT(ranks), .text = " of ranks", .least = 1, .most = RANKS_MOST},
    {"batch", NUMBER, AT(batch), .text = " of samples", .least = 1, .most = BATCH_MOST},
    {"seed", SPECIAL, .set = set_seed},
    {"tail", SPECIAL, .set = set_tail},
    {"under", PATH, AT(under)},
    {"exchange", FLAG, AT(exchange)},
    {"exchange_rate", BYTES, AT(exchange_rate), MEGABYTES},
    {"nodes", NUMBER, AT(nodes), .text = " of nodes", .least = 1, .most = NODES_MOST},
    {"groups", NUMBER, AT(groups), .text = " of groups", .least = 1, .most = NODES_MOST},
    {"node", SPECIAL, .set = set_node, .hidden = true},
    {"catalog", PATH, AT(catalog), .hidden = true},
    {"lock", NUMBER, AT(lock), .text = " of a descriptor", .least = 3, .most = INT_MAX, .hidden = true},
    {"mounter_fd", NUMBER, AT(mounter_fd), .text = " of a descriptor", .least = 3, .most = INT_MAX, .hidden = true},
    {"portion", SPECIAL, .set = set_portion, .hidden = true},
    {"looked", NUMBER, AT(looked), .text = " of a descriptor", .least = 3, .most = INT_MAX, .hidden = true},
    {"courier", NUMBER, AT(courier), .text = " of a descriptor", .least = 3, .most = INT_MAX, .hidden = true},
    {"allow_other", FLAG, AT(allow_other)},
    {"noexec", FLAG, AT(no_exec)},
    {"wait_join", FLAG, AT(wait_join)},
    {"resize", NUMBER, AT(resize), .text = " of pixels", .least = 16, .most = RESIZE_MOST},
    {"quality", NUMBER, AT(quality), .text = "", .least = 1, .most = 100},
    {"remount", LATER, .text = "a mount cannot be changed; unmount it and mount again"},
};

/* Options for mount(8), fstab and the kernel: nothing to do, or always true. Each may have a value, except `owner`,
 * which in fstab has none. */
static const char *const ignored[] = {
    "_netdev",     "async",
    "atime",       "auto",
    "comment",     "default_permissions",
    "defaults",    "dev",
    "diratime",    "dirsync",
    "exec",        "group",
    "iversion",    "lazytime",
    "loud",        "mand",
    "noatime",     "noauto",
    "nodev",       "nodiratime",
    "nofail",      "noiversion",
    "nolazytime",  "nomand",
    "norelatime",  "nostrictatime",
    "nosuid",      "nouser",
    "nousers",     "owner",
    "relatime",    "ro",
    "rw",          "silent",
    "strictatime", "suid",
    "sync",        "user",
    "users",
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

static int set_size(struct mount_options *o, const struct mount_option *option, const char *value, struct str *why)
{
    uint64_t size;
    int error = size_parse(value, UINT64_C(1) << 40, &size);
    if (!error)
        return str_keep((char **)((char *)o + option->place), strdup(value));
    return str_fail(why, -EINVAL, "%s", error == -ERANGE ? "is too large" : "must be a size, such as 512M, 10G or 25%");
}

static int set_number(struct mount_options *o, const struct mount_option *option, const char *value, struct str *why)
{
    uint64_t number;
    if (number_parse(value, option->least, option->most, &number))
        return str_fail(why, -EINVAL, "must be a number%s from %ju to %ju", option->text, (uintmax_t)option->least,
                        (uintmax_t)option->most);
    *(int *)(void *)((char *)o + option->place) = (int)number;
    return 0;
}

static int set_bytes(struct mount_options *o, const struct mount_option *option, const char *value, struct str *why)
{
    uint64_t size = 0;
    bool none = option->kind == WINDOW && (strcmp(value, "0") == 0 || strcmp(value, "off") == 0);
    if (!none && (strchr(value, '%') || size_parse(value, 0, &size) || size < option->least || size > option->most))
        return str_fail(why, -EINVAL, "must be a size %s", option->text);
    *(uint64_t *)(void *)((char *)o + option->place) = size;
    return 0;
}

static int set_value(struct mount_options *o, const struct mount_option *option, const char *value, struct str *why)
{
    char *member = (char *)o + option->place;
    if (option->kind == LATER)
        return str_fail(why, -EINVAL, "%s", option->text);
    if (option->kind == FLAG) {
        if (value)
            str_adds(why, "takes no value");
        else
            *(bool *)member = true;
        return value ? -EINVAL : 0;
    }
    if (!value || !*value)
        return str_fail(why, -EINVAL, "needs a value");
    switch (option->kind) {
    case SIZE:
        return set_size(o, option, value, why);
    case NUMBER:
        return set_number(o, option, value, why);
    case BYTES:
    case WINDOW:
        return set_bytes(o, option, value, why);
    case SPECIAL:
        return option->set(o, value, why);
    default:
        return str_keep((char **)member, strdup(value));
    }
}

static void refuse_option(struct str *why, const char *name, const char *value, const char *reason)
{
    str_adds(why, "option ");
    str_add_printable(why, name, strlen(name));
    if (value) {
        str_adds(why, "=");
        str_add_printable(why, value, strlen(value));
    }
    str_addf(why, ": %s", reason);
}

const char *options_meant(const char *name, size_t length, bool *flag)
{
    struct nearest best = {0};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (!table[i].hidden && table[i].kind != LATER)
            nearest_try(&best, name, length, table[i].name);
        if (best.word == table[i].name)
            *flag = table[i].kind == FLAG;
    }
    return nearest_meant(&best, length);
}

static int set_one(struct mount_options *o, char *text, struct str *why)
{
    CLEANUP_STR struct str reason = STR_INIT;
    bool flag = false;
    char *value = strchr(text, '=');
    if (value)
        *value++ = '\0';
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (strcmp(text, table[i].name) != 0 || (table[i].kind == NAME && !value))
            continue;
        int error = set_value(o, &table[i], value, &reason);
        if (error == -EINVAL)
            refuse_option(why, text, value, reason.data);
        return error;
    }
    if (is_ignored(text))
        return 0;
    const char *meant = options_meant(text, strlen(text), &flag);
    str_adds(&reason, "unknown option");
    if (meant)
        str_addf(&reason, ". Did you mean `%s%s`?", meant, flag ? "" : "=");
    refuse_option(why, text, value, reason.failed ? "" : reason.data);
    return -EINVAL;
}

/* Split off the next option, and remove backslashes from it. */
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

int options_parse(struct mount_options *o, const char *list, struct str *why)
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

static int check_world(const struct mount_options *o, struct str *why)
{
    struct digest digest;
    if (o->wait_join && o->nodes)
        str_adds(why,
                 "options wait_join and nodes: cannot be combined: `dealfs join --nodes N` checks the world's size");
    else if (o->wait_join && o->digest)
        str_adds(why, "options wait_join and digest: cannot be combined: the first world brings the catalog");
    else if (o->digest && digest_parse(o->digest, &digest))
        str_addf(why, "option digest: must be 32 hexadecimal digits, as `dealfs status --json` prints them");
    else if (o->wait_join && o->catalog)
        str_adds(why, "options wait_join and catalog: cannot be combined");
    else if (o->nodes && o->groups > o->nodes)
        str_addf(why, "option groups=%u: more groups than nodes (%u)", o->groups, o->nodes);
    else if (o->quality && !o->resize)
        str_adds(why, "option quality: needs resize=PIXELS");
    else
        return 0;
    return -EINVAL;
}

/* A prediction needs some options; others are only valid with it. */
static int check_sampler(const struct mount_options *o, struct str *why)
{
    const char *alone = o->ranks        ? "ranks"
                        : o->batch      ? "batch"
                        : o->seeded     ? "seed"
                        : o->tail_given ? "tail"
                        : o->under      ? "under"
                                        : NULL;
    if (!o->sampler && !alone)
        return 0;
    if (!o->sampler)
        refuse_option(why, alone, NULL, "needs sampler=torch");
    else if (!o->ranks || !o->batch)
        refuse_option(why, "sampler", "torch",
                      o->ranks ? "needs batch=B, of one rank" : "needs ranks=R, all of the job");
    else if (o->feed == 0)
        refuse_option(why, "sampler", "torch", "needs feed= above 0");
    else
        return 0;
    return -EINVAL;
}

int options_check(const struct mount_options *o, struct str *why)
{
    if (check_sampler(o, why))
        return -EINVAL;
    if (!o->ssd_size || o->ssd)
        return check_world(o, why);
    refuse_option(why, "ssd_size", o->ssd_size, "needs ssd=DIR");
    return -EINVAL;
}

int options_quality(const struct mount_options *o)
{
    return o->quality ? o->quality : QUALITY_DEFAULT;
}

void options_init(struct mount_options *o)
{
    *o = (struct mount_options){
        .rescan = RESCAN_AUTO,
        .zstd_level = ZSTD_DEFAULT,
        .source_threads = SOURCE_THREADS_DEFAULT,
        .peer_timeout = peer_timeout_default,
        .decoded = DECODED_DEFAULT,
        .request_memory = REQUEST_MEMORY_DEFAULT,
        .readahead = READAHEAD_MOST,
        .feed = UINT64_MAX,
    };
}

void options_fini(struct mount_options *o)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].kind == PATH || table[i].kind == SIZE || table[i].kind == NAME)
            free(*(char **)((char *)o + table[i].place));
    options_init(o);
}
