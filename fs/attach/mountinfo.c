/* /proc/self/mountinfo: what is mounted where, without a look into any of the mounts.
 *
 *   36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
 *   id parent major:minor root MOUNTPOINT options [tags…] - TYPE SOURCE super-options
 */
#include "fs/attach/attach.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

enum { TABLE_MOST = 64 << 20 };

struct mount_line {
    unsigned id, parent;
    char *root, *path;
    struct attach_mount_info info; /* its `source` points into the table's text */
};

void attach_unescape(char *text)
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
static unsigned option_id(const char *options, const char *key)
{
    const char *found = options ? strstr(options, key) : NULL;
    unsigned id;
    return found && sscanf(found + strlen(key), "%u", &id) == 1 ? id : (unsigned)-1;
}

static bool line_parse(char *text, struct mount_line *l)
{
    char *rest = text, *id = next_word(&rest), *parent = next_word(&rest), *device = next_word(&rest), *word;
    struct attach_mount_info *info = &l->info;
    l->root = next_word(&rest);
    l->path = next_word(&rest);
    if (!l->path || sscanf(id, "%u", &l->id) != 1 || sscanf(parent, "%u", &l->parent) != 1 ||
        sscanf(device, "%u:%u", &info->major, &info->minor) != 2)
        return false;
    while ((word = next_word(&rest)) && strcmp(word, "-") != 0)
        ;
    const char *type = next_word(&rest);
    info->source = next_word(&rest);
    if (!info->source)
        return false;
    snprintf(info->type, sizeof info->type, "%s", type);
    info->uid = option_id(rest, "user_id=");
    info->gid = option_id(rest, "group_id=");
    attach_unescape(l->path);
    attach_unescape(info->source);
    return true;
}

/* The table is read completely first: `each` may change it. */
static int each_line(int (*each)(void *user, const struct mount_line *l), void *user)
{
    CLEANUP_STR struct str table = STR_INIT;
    struct mount_line l;
    int error = file_read(AT_FDCWD, "/proc/self/mountinfo", TABLE_MOST, &table);
    if (error == -ENOENT) /* there is no /proc; callers understand that a mount is missing */
        error = -EIO;
    for (char *rest = table.data, *text; !error && (text = strsep(&rest, "\n"));)
        if (line_parse(text, &l))
            error = each(user, &l);
    return error;
}

struct find_mount {
    const char *path;
    struct attach_mount_info found;
    unsigned id;
};

/* Of several mounts on a path, the topmost is the one whose parent is another of them. In any order of the table, it is
 * never the parent of a later one. */
static int find_line(void *user, const struct mount_line *l)
{
    struct find_mount *f = user;
    if (strcmp(l->path, f->path) != 0 || (f->found.source && l->parent != f->id))
        return 0;
    free(f->found.source);
    f->found = l->info;
    f->found.source = strdup(l->info.source);
    f->id = l->id;
    return f->found.source ? 0 : -ENOMEM;
}

int attach_find(const char *path, struct attach_mount_info *info)
{
    struct find_mount f = {.path = path};
    int error = each_line(find_line, &f);
    if (!error && f.found.source) {
        *info = f.found;
        return 0;
    }
    free(f.found.source);
    return error ? error : -ENOENT;
}

static int mount_id(int fd, unsigned *id)
{
    CLEANUP_STR struct str text = STR_INIT;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    int error = file_read(AT_FDCWD, path, 1 << 16, &text);
    const char *found = error ? NULL : strstr(text.data, "mnt_id:");
    return error ? error : found && sscanf(found, "mnt_id: %u", id) == 1 ? 0 : -ENOENT;
}

struct identify_mount {
    unsigned id;
    struct str *out;
};

static int identify_line(void *user, const struct mount_line *l)
{
    const struct identify_mount *i = user;
    if (l->id != i->id)
        return 0;
    str_addf(i->out, "%s of %d, %s, %s", l->info.type, (int)l->info.uid, l->info.source, l->root);
    return 1;
}

int attach_identify(int fd, struct str *out)
{
    struct identify_mount i = {.out = out};
    struct stat st;
    int error = fstat(fd, &st) < 0 ? -errno : mount_id(fd, &i.id);
    if (error)
        return error;
    int found = each_line(identify_line, &i);
    if (found < 1)
        return found ? found : -ENOENT;
    str_addf(out, ", %ju", (uintmax_t)st.st_ino);
    return out->failed ? -ENOMEM : 0;
}

struct each_mount {
    const char *type;
    int (*each)(void *user, const char *path, const struct attach_mount_info *info);
    void *user;
};

static int give_line(void *user, const struct mount_line *l)
{
    const struct each_mount *e = user;
    return e->type && strcmp(l->info.type, e->type) != 0 ? 0 : e->each(e->user, l->path, &l->info);
}

int attach_each(const char *type, int (*each)(void *user, const char *path, const struct attach_mount_info *info),
                void *user)
{
    return each_line(give_line, &(struct each_mount){type, each, user});
}
