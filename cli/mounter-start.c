/* dealfs mounter: checks the arguments, and executes dealfs-mounter, which mounts for processes without privileges. */
#include "cli/base/options.h"
#include "cli/base/place.h"
#include "cli/mount/split.h"
#include "fs/base/cleanup.h"
#include "fs/base/size.h"
#include "fs/wire/handover.h"

#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <limits.h>
#include <string.h>

/* The mount options that `dealfs mounter` accepts. */
static bool has_option(const char *name, size_t length)
{
    static const char *const names[] = {"allow_other", "noexec", "ram", "readahead"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i]) == length && strncmp(name, names[i], length) == 0)
            return true;
    return length == 0;
}

static int parse_list(struct mount_options *o, const char *list, struct str *why)
{
    for (const char *one = list; *one;) {
        size_t length = strcspn(one, ",");
        if (!has_option(one, strcspn(one, ",="))) {
            str_adds(why, "option ");
            str_add_printable(why, one, strcspn(one, ",="));
            return str_fail(why, -EINVAL, ": unknown option");
        }
        one += length + (one[length] == ',');
    }
    return options_parse(o, list, why);
}

/* `given` is USER or USER:GROUP. */
static int find_user(const char *given, struct owner *owner, struct str *why)
{
    CLEANUP_FREE char *user = strdup(given);
    char *group = user ? strchr(user, ':') : NULL;
    uint64_t number;
    if (!user)
        return -ENOMEM;
    if (group)
        *group++ = '\0';
    int error = owner_find(user, owner, why);
    bool numeric = group && group[0] == '+';
    const struct group *entry = !error && group && !numeric ? getgrnam(group) : NULL;
    if (error || !group)
        return error;
    if (!entry && number_parse(group + numeric, 0, UINT32_MAX - 1, &number))
        return place_fail(why, "group", group, "there is no such group", -EINVAL);
    owner->gid = entry ? entry->gr_gid : (gid_t)number;
    return 0;
}

static int become_mounter(const struct mount_options *o, const struct owner *owner, const char *socket,
                          const char *mountpoint)
{
    CLEANUP_FREE char *given = place_absolute(mountpoint, 0), *plain = given ? place_plain(given) : NULL;
    CLEANUP_FREE char *control = plain ? place_join(plain, ".dealfs") : NULL, *path = place_absolute(socket, 0);
    CLEANUP_STR struct str word = STR_INIT;
    char program[PATH_MAX];
    struct mounter_words w;
    str_addf(&word, "socket=%s", path ? path : "");
    if (!control || !path || word.failed)
        return command_fail("%s", strerror(ENOMEM));
    if (handover_find_program("dealfs-mounter", program, sizeof program))
        return command_fail("find dealfs-mounter: neither beside dealfs nor in ../libexec/dealfs");
    mounter_words_make(&w, o, owner, plain, control);
    w.words[w.n++] = "unnoted";
    w.words[w.n++] = word.data;
    execv(program, (char **)w.words);
    return command_fail("start %s: %s", program, strerror(errno));
}

struct mounter_line {
    struct mount_options options;
    struct owner owner;
    struct str given;
};

static int parse_and_become(struct mounter_line *line, int argc, char **argv)
{
    CLEANUP_STR struct str why = STR_INIT;
    int status = command_options(&command_mounter, line, argc, argv);
    if (status)
        return status;
    if (line->given.length > 0 && parse_list(&line->options, line->given.data, &why))
        return command_bad_value(&why);
    if (argc - optind != 3)
        return command_usage(&command_mounter, "a SOCKET, a USER and a MOUNTPOINT are needed");
    if (geteuid() != 0)
        return command_fail("mounter: only root may mount for other users");
    int error = find_user(argv[optind + 1], &line->owner, &why);
    if (!error && line->owner.uid == 0)
        return command_fail("user %s: has root's rights already; give an ordinary user", argv[optind + 1]);
    return error ? command_fail("%s", command_why(&why, error))
                 : become_mounter(&line->options, &line->owner, argv[optind], argv[optind + 2]);
}

static int mounter_command(int argc, char **argv)
{
    struct mounter_line line = {0};
    options_init(&line.options);
    int status = parse_and_become(&line, argc, argv);
    owner_fini(&line.owner);
    options_fini(&line.options);
    str_fini(&line.given);
    return status;
}

static const struct command_option mounter_options[] = {
    {"", 'o', OPTION_LIST, .place = offsetof(struct mounter_line, given)},
    {0},
};

const struct command command_mounter = {
    .name = "mounter",
    .arguments = "[-o OPTION,…] SOCKET USER[:GROUP] MOUNTPOINT",
    .summary = "mount for processes of USER in containers without privileges",
    .options = mounter_options,
    .help = "  -o allow_other      also let other users read (default: no)\n"
            "  -o noexec           do not allow execution of files (default: no)\n"
            "  -o ram=SIZE         limit of the RAM tier's tmpfs; 0: none, /dev/shm is used (default: all memory)\n"
            "  -o readahead=SIZE   readahead of the kernel, 4K to 1M (1M)\n"
            "\n"
            "Runs as root until SIGTERM. A process of USER mounts with `dealfs mount -o mounter=SOCKET SOURCE "
            "MOUNTPOINT`.\n",
    .run = mounter_command,
};
