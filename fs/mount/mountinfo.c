/* /proc/self/mountinfo: what is mounted where, without a look into any of the mounts.
 *
 *   36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
 *   id parent major:minor root MOUNTPOINT options [tags…] - TYPE SOURCE super-options
 */
#include "fs/mount/attach.h"

#include "fs/base/cleanup.h"

#include <stdint.h>
#include <string.h>

struct line {
    unsigned id, parent, major, minor;
    uid_t uid;
    char *path, *type, *source;
};

/* Space, tab, newline and backslash stand as \ooo. Works in place. */
static void unescape(char *text)
{
    char *to = text;

    for (const char *from = text; *from; to++) {
        bool octal = from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' && from[2] <= '7' &&
                     from[3] >= '0' && from[3] <= '7';
        *to = octal ? (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0')) : *from;
        from += octal ? 4 : 1;
    }
    *to = '\0';
}

static char *next_word(char **rest)
{
    return strsep(rest, " \n");
}

/* Of the super options: "rw,user_id=1000,group_id=1000". */
static uid_t user_id(const char *options)
{
    const char *found = options ? strstr(options, "user_id=") : NULL;
    unsigned id;

    return found && sscanf(found, "user_id=%u", &id) == 1 ? (uid_t)id : (uid_t)-1;
}

static bool line_parse(char *text, struct line *l)
{
    char *rest = text, *id = next_word(&rest), *parent = next_word(&rest), *device = next_word(&rest), *word;

    next_word(&rest);
    l->path = next_word(&rest);
    if (!l->path || sscanf(id, "%u", &l->id) != 1 || sscanf(parent, "%u", &l->parent) != 1 ||
        sscanf(device, "%u:%u", &l->major, &l->minor) != 2)
        return false;
    while ((word = next_word(&rest)) && strcmp(word, "-") != 0)
        ;
    l->type = next_word(&rest);
    l->source = next_word(&rest);
    if (!l->source)
        return false;
    l->uid = user_id(rest);
    unescape(l->path);
    unescape(l->source);
    return true;
}

static void info_set(struct attach_mount_info *info, const struct line *l)
{
    snprintf(info->type, sizeof info->type, "%s", l->type);
    info->source = l->source;
    info->major = l->major;
    info->minor = l->minor;
    info->uid = l->uid;
}

static int each_line(int (*each)(void *user, const struct line *l), void *user)
{
    CLEANUP_FCLOSE FILE *table = fopen("/proc/self/mountinfo", "re");
    CLEANUP_FREE char *text = NULL;
    size_t room = 0;
    struct line l;

    if (!table)
        return -errno;
    while (getline(&text, &room, table) > 0)
        if (line_parse(text, &l)) {
            int result = each(user, &l);
            if (result)
                return result;
        }
    return ferror(table) ? -EIO : 0;
}

struct find {
    const char *path;
    struct attach_mount_info found;
    unsigned id;
    bool any;
};

/* Of several mounts on one path the topmost is the one whose parent is another of them; whichever order the table is
 * in, it is never the parent of one that comes later. */
static int find_line(void *user, const struct line *l)
{
    struct find *f = user;

    if (strcmp(l->path, f->path) != 0)
        return 0;
    if (f->any && l->parent != f->id)
        return 0;
    char *source = strdup(l->source);
    if (!source)
        return -ENOMEM;
    if (f->any)
        free(f->found.source);
    info_set(&f->found, l);
    f->found.source = source;
    f->id = l->id;
    f->any = true;
    return 0;
}

int attach_find(const char *path, struct attach_mount_info *info)
{
    struct find f = {.path = path};
    int error = each_line(find_line, &f);

    if (!error && f.any) {
        *info = f.found;
        return 0;
    }
    if (f.any)
        free(f.found.source);
    return error ? error : -ENOENT;
}

/* The callback may change the table, so it is read to its end first: path and source, NUL-terminated, after each
 * record's numbers. */
struct record {
    unsigned major, minor;
    uid_t uid;
    char type[64];
};

struct collect {
    const char *type;
    struct str records;
};

static int collect_line(void *user, const struct line *l)
{
    struct collect *c = user;
    struct record record = {.major = l->major, .minor = l->minor, .uid = l->uid};

    if (c->type && strcmp(l->type, c->type) != 0)
        return 0;
    snprintf(record.type, sizeof record.type, "%s", l->type);
    str_add(&c->records, &record, sizeof record);
    str_add(&c->records, l->path, strlen(l->path) + 1);
    str_add(&c->records, l->source, strlen(l->source) + 1);
    return c->records.failed ? -ENOMEM : 0;
}

int attach_each(const char *type, int (*each)(void *user, const char *path, const struct attach_mount_info *info),
                void *user)
{
    struct collect c = {.type = type, .records = STR_INIT};
    int result = each_line(collect_line, &c);

    for (size_t at = 0; result == 0 && at < c.records.length;) {
        struct attach_mount_info info;
        struct record record;
        memcpy(&record, c.records.data + at, sizeof record);
        char *path = c.records.data + at + sizeof record;
        memcpy(info.type, record.type, sizeof info.type);
        info.major = record.major;
        info.minor = record.minor;
        info.uid = record.uid;
        info.source = path + strlen(path) + 1;
        at = (size_t)(info.source + strlen(info.source) + 1 - c.records.data);
        result = each(user, path, &info);
    }
    str_fini(&c.records);
    return result;
}
