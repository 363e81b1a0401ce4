/* A table of options: each has a name, a type, and a destination. Options for mount(8) and fstab are ignored; options
 * of later versions of dealfs are rejected with the reason. */
#include "cli/mount/mount-options.h"

#include "fs/attach/config.h"
#include "fs/base/cleanup.h"
#include "fs/base/keys.h"
#include "fs/base/size.h"
#include "fs/wire/node.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

enum { RANKS_MOST = 1 << 20, BATCH_MOST = 1 << 30, RESIZE_MOST = 16384, QUALITY_DEFAULT = 90, CHOICES_MOST = 4 };
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
    CHOICE,  /* an int: the position of the value among `choices` */
    SPECIAL, /* `set` parses the value */
    LATER,   /* not in this version */
};

struct mount_option {
    const char *name;
    enum option_kind kind;
    const char *shown; /* its value in the help; NULL: it has none */
    const char *help;  /* NULL: not documented */
    size_t place;
    int (*set)(struct mount_options *o, const char *value, struct str *why);
    const char *text; /* LATER: the reason; NUMBER: its unit; BYTES, CHOICE: which values are allowed */
    uint64_t least, most;
    const char *choices[CHOICES_MOST]; /* NULL: cannot be given */
};

static int set_zstd(struct mount_options *o, const char *value, struct str *why)
{
    uint64_t level = 0;
    if (strcmp(value, "off") != 0 && number_parse(value, 1, ZSTD_MOST, &level))
        return str_fail(why, -EINVAL, "must be off or a level from 1 to %d", ZSTD_MOST);
    o->zstd_level = (int)level;
    return 0;
}

static int set_peer_timeout(struct mount_options *o, const char *value, struct str *why)
{
    uint64_t time;
    if (duration_parse(value, &time) || time == 0)
        return str_fail(why, -EINVAL, "must be a time above zero, such as 5 or 0.5s");
    o->peer_timeout = time;
    return 0;
}

static int set_seed(struct mount_options *o, const char *value, struct str *why)
{
    o->seeded = number_parse(value, 0, UINT64_MAX, &o->seed) == 0;
    return o->seeded ? 0 : str_fail(why, -EINVAL, "must be a whole number, 0 or larger");
}

/* node=NUMBER/NODES-ON-THIS-HOST */
static int set_node(struct mount_options *o, const char *value, struct str *why)
{
    char rest;
    if (sscanf(value, "%u/%u%c", &o->node, &o->local, &rest) == 2 && o->node < NODES_MOST && o->local > 0 &&
        o->local <= NODES_MOST)
        return 0;
    return str_fail(why, -EINVAL, "must be a node's number and the number of nodes on this host");
}

static int set_portion(struct mount_options *o, const char *value, struct str *why)
{
    if (sscanf(value, "%u/%u", &o->part.number, &o->part.count) == 2 && o->part.number < o->part.count)
        return 0;
    return str_fail(why, -EINVAL, "must be the number of a part and the number of parts");
}

#define AT(member) .place = offsetof(struct mount_options, member)
#define RANGE(unit, from, to) .text = unit, .least = from, .most = to
#define DESCRIPTOR RANGE(" of a descriptor", 3, INT_MAX)
#define MEGABYTES .text = "of at least 1M, such as 256M or 1G", .least = 1 << 20, .most = UINT64_MAX

static const struct mount_option table[] = {
    {"ram", SIZE, "SIZE", "RAM to cache samples in (512M, 10G, 25%; 0: none; default: 1/4 of available memory)",
     AT(ram)},
    {"ssd", PATH, "DIR", "also cache samples in a folder of DIR (default: none)", AT(ssd)},
    {"ssd_size", SIZE, "SIZE", "size of that cache (default: 90 % of the free space)", AT(ssd_size)},
    {"state", PATH, "DIR", "directory for catalog and log (default: below SLURM_TMPDIR, TMPDIR or /var/tmp)",
     AT(state)},
    {"cache_id", PATH, "NAME", "name of the state directory and shards, for reuse (default: from SOURCE)",
     AT(cache_id)},
    {"digest", PATH, "DIGEST", "fail unless the dataset has this digest (default: any)", AT(digest)},
    {"control", PATH, "DIR", "where the control files are (default: MOUNTPOINT/.dealfs)", AT(control)},
    {"rescan", CHOICE, "WHEN", "look for changes in the source: auto (default), names, always, never", AT(rescan),
     .text = "auto, names, always or never",
     .choices =
         {[RESCAN_AUTO] = "auto", [RESCAN_NEVER] = "never", [RESCAN_ALWAYS] = "always", [RESCAN_NAMES] = "names"}},
    {"identity", CHOICE, "mtime", "ignore ctime: for replicas and buckets (default: size, mtime and ctime)",
     AT(identity_mtime), .text = "mtime", .choices = {NULL, "mtime"}},
    {"owner", NAME, "USER", "mount on behalf of USER (root only; default: the user who mounts)", AT(owner)},
    {"mounter", PATH, "SOCKET", "mount through the `dealfs mounter` that listens there (default: mount directly)",
     AT(mounter)},
    {"allow_other", FLAG, NULL, "also let other users read (default: no)", AT(allow_other)},
    {"noexec", FLAG, NULL, "do not allow execution of files (default: no)", AT(no_exec)},
    {"zstd", SPECIAL, "LEVEL", "compress cached data: level 1 (default) to 19, or off", .set = set_zstd},
    {"verify", CHOICE, "WHEN", "verify RAM data at every read: always (default), or once", AT(verify_once),
     .text = "always or once", .choices = {"always", "once"}},
    {"source_threads", NUMBER, "N", "max concurrent reads of the source (16)", AT(source_threads),
     RANGE("", 1, SOURCE_THREADS_MOST)},
    {"source_rate", BYTES, "SIZE",
     "limit of bytes per second that this node reads from the source (default: unlimited)", AT(source_rate), MEGABYTES},
    {"nodes", NUMBER, "N", "under mpirun: fail unless the world has N nodes (default: any)", AT(nodes),
     RANGE(" of nodes", 1, NODES_MOST)},
    {"groups", NUMBER, "G", "groups of nodes that each cache the whole dataset (1)", AT(groups),
     RANGE(" of groups", 1, GROUPS_MOST)},
    {"wait_join", FLAG, NULL, "no scan: the first `dealfs join` brings the catalog; reads wait for it", AT(wait_join)},
    {"peer_timeout", SPECIAL, "SEC", "timeout of requests to other nodes, in seconds (5)", .set = set_peer_timeout},
    {"feed", WINDOW, "SIZE", "prefetch this far ahead of loaders; 0: no prefetch (256M, or 1/16 of free memory)",
     AT(feed), MEGABYTES},
    {"sampler", CHOICE, "torch",
     "prefetch what torch's DistributedSampler will read; needs ranks= and batch=", AT(sampler),
     .text = "torch: only the lists of its DistributedSampler can be predicted", .choices = {NULL, "torch"}},
    {"ranks", NUMBER, "R", "with sampler=torch: ranks of the job", AT(ranks), RANGE(" of ranks", 1, RANKS_MOST)},
    {"batch", NUMBER, "B", "with sampler=torch: samples per batch of one rank", AT(batch),
     RANGE(" of samples", 1, BATCH_MOST)},
    {"seed", SPECIAL, "S", "with sampler=torch: the sampler's seed (0)", .set = set_seed},
    {"tail", CHOICE, "pad", "with sampler=torch: pad (default) or drop samples at the end", AT(tail),
     .text = "pad or drop", .choices = {[SAMPLER_PAD] = "pad", [SAMPLER_DROP] = "drop"}},
    {"under", PATH, "DIR", "with sampler=torch: directory of its dataset in the mount (the root)", AT(under)},
    {"decoded", BYTES, "SIZE", "memory for decoded images (32M)", AT(decoded), MEGABYTES},
    {"request_memory", BYTES, "SIZE", "memory for plans, uploads and replies (256M)", AT(request_memory), MEGABYTES},
    {"readahead", BYTES, "SIZE", "readahead of the kernel, 4K to 1M (1M)", AT(readahead),
     RANGE("from 4K to 1M", READAHEAD_LEAST, READAHEAD_MOST)},
    {"exchange", FLAG, NULL, "reserve room in the tiers for `dealfs exchange` and `shuffle` (default: no)",
     AT(exchange)},
    {"exchange_rate", BYTES, "SIZE", "limit of bytes per second that exchanges send to this node (unlimited)",
     AT(exchange_rate), MEGABYTES},
    {"resize", NUMBER, "PIXELS", "scale JPEG images down to this shorter side before the mount is live (off)",
     AT(resize), RANGE(" of pixels", 16, RESIZE_MOST)},
    {"quality", NUMBER, "Q", "with resize: JPEG quality, 1 to 100 (90)", AT(quality), RANGE("", 1, 100)},
    {"metrics_file", PATH, "PATH", "also write the metrics there (default: none)", AT(metrics_file)},
    /* only couriers use these: */
    {"node", SPECIAL, .set = set_node},
    {"catalog", PATH, AT(catalog)},
    {"lock", NUMBER, AT(lock), DESCRIPTOR},
    {"mounter_fd", NUMBER, AT(mounter_fd), DESCRIPTOR},
    {"portion", SPECIAL, .set = set_portion},
    {"looked", NUMBER, AT(looked), DESCRIPTOR},
    {"courier", NUMBER, AT(courier), DESCRIPTOR},
    {"remount", LATER, .text = "a mount cannot be changed; unmount it and mount again"},
};

/* Options for mount(8), fstab and the kernel: nothing to do, or always true. Each may have a value, except `owner`,
 * which in fstab has none. */
static const char ignored[] =
    " _netdev async atime auto comment default_permissions defaults dev diratime dirsync exec group iversion lazytime"
    " loud mand noatime noauto nodev nodiratime nofail noiversion nolazytime nomand norelatime nostrictatime nosuid"
    " nouser nousers owner relatime ro rw silent strictatime suid sync user users ";

static bool is_ignored(const char *name)
{
    CLEANUP_STR struct str word = STR_INIT;
    str_addf(&word, " %s ", name);
    return strncasecmp(name, "x-", 2) == 0 || (!strchr(name, ' ') && !word.failed && strstr(ignored, word.data));
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

static int set_choice(struct mount_options *o, const struct mount_option *option, const char *value, struct str *why)
{
    for (int i = 0; i < CHOICES_MOST; i++)
        if (option->choices[i] && strcmp(value, option->choices[i]) == 0) {
            *(int *)(void *)((char *)o + option->place) = i;
            return 0;
        }
    return str_fail(why, -EINVAL, "must be %s", option->text);
}

static int set_value(struct mount_options *o, const struct mount_option *option, const char *value, struct str *why)
{
    char *member = (char *)o + option->place;
    if (option->kind == LATER)
        return str_fail(why, -EINVAL, "%s", option->text);
    if (option->kind == FLAG && value)
        return str_fail(why, -EINVAL, "takes no value");
    if (option->kind == FLAG) {
        *(bool *)member = true;
        return 0;
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
    case CHOICE:
        return set_choice(o, option, value, why);
    case SPECIAL:
        return option->set(o, value, why);
    case FLAG:
    case LATER:
    case NAME:
    case PATH:
        break;
    }
    return str_keep((char **)member, strdup(value));
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

/* The option that this misspelt name may stand for, or NULL; `flag`: it takes no value. */
static const char *option_meant(const char *name, size_t length, bool *flag)
{
    struct nearest best = {0};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i].help)
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
    const char *meant = option_meant(text, strlen(text), &flag);
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

int options_take(struct mount_options *o, const struct str *given, struct str *why)
{
    int error = given->failed ? -ENOMEM : options_parse(o, given->data ? given->data : "", why);
    return error ? error : options_check(o, why);
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

void options_add_help(struct str *text)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].help)
            str_addf(text, "  -o %s%s%s\t%s\n", table[i].name, table[i].shown ? "=" : "",
                     table[i].shown ? table[i].shown : "", table[i].help);
}

int options_refuse(const struct command *command, int argc, char **argv)
{
    CLEANUP_STR struct str value = STR_INIT;
    bool flag = false;
    const char *word = argv[optind - 1], *name = word + strspn(word, "-");
    size_t length = strcspn(name, "=");
    const char *meant = option_meant(name, length, &flag);
    if (!meant)
        return command_usage(command, "%s: unknown option. Options have the form `-o NAME=VALUE`", word);
    if (!flag)
        str_addf(&value, "=%s", name[length] ? name + length + 1 : argc - optind > 2 ? argv[optind] : "VALUE");
    return command_usage(command, "%s: unknown option. Did you mean `-o %s%s`?", word, meant,
                         value.length ? value.data : "");
}
