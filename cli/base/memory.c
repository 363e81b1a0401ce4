/* Reads /proc/meminfo and the memory control groups, version 1 and 2, from the group of this process up to the top. A
 * group's page cache that can be dropped counts as free, as in MemAvailable. */
#include "cli/base/memory.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

enum { SHARE = 4 };
static const uint64_t no_limit = UINT64_C(1) << 60; /* version 1 uses a number near 2^63 for "unlimited" */

static int read_whole(const char *root, const char *path, struct str *text)
{
    CLEANUP_STR struct str full = STR_INIT;
    str_addf(&full, "%s%s", root, path);
    return full.failed ? -ENOMEM : file_read(AT_FDCWD, full.data, 1 << 22, text);
}

/* The number after a word at the start of a line. */
static bool find_number(const char *text, const char *word, uint64_t *number)
{
    size_t n = strlen(word);
    for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strncmp(line, word, n) == 0)
            return sscanf(line + n, " %" SCNu64, number) == 1;
    return false;
}

static int look_machine(const char *root, struct memory *m)
{
    CLEANUP_STR struct str text = STR_INIT;
    int error = read_whole(root, "/proc/meminfo", &text);
    if (error)
        return error;
    if (text.length == 0 || !find_number(text.data, "MemTotal:", &m->total) ||
        !find_number(text.data, "MemAvailable:", &m->available))
        return -EBADMSG;
    m->total <<= 10;
    m->available <<= 10;
    return 0;
}

struct group_files {
    const char *limit[2], *usage, *droppable;
};
static const struct group_files version1 = {
    {"memory.limit_in_bytes", NULL}, "memory.usage_in_bytes", "total_inactive_file "};
static const struct group_files version2 = {{"memory.max", "memory.high"}, "memory.current", "inactive_file "};

/* The number after `word`; "": the first one of the file. */
static bool read_number(const char *root, const char *folder, const char *name, const char *word, uint64_t *number)
{
    CLEANUP_STR struct str path = STR_INIT, text = STR_INIT;
    str_addf(&path, "%s/%s", folder, name);
    return !path.failed && read_whole(root, path.data, &text) == 0 && text.length > 0 &&
           find_number(text.data, word, number); /* "max" is not a number */
}

static bool look_group(const char *root, const char *folder, const struct group_files *files, struct memory *m)
{
    bool least = false;
    uint64_t limit, used, cache;
    for (int i = 0; i < 2 && files->limit[i]; i++) {
        if (!read_number(root, folder, files->limit[i], "", &limit) || limit >= no_limit ||
            !read_number(root, folder, files->usage, "", &used))
            continue;
        if (!read_number(root, folder, "memory.stat", files->droppable, &cache))
            cache = 0;
        used -= cache < used ? cache : used;
        uint64_t left = used < limit ? limit - used : 0;
        m->total = limit < m->total ? limit : m->total;
        if (left < m->available) {
            m->available = left;
            m->by_group = least = true;
        }
    }
    return least;
}

struct hierarchy {
    char from[4096], mounted[4096], type[64], super[4096];
};

/* From the group up to the mountpoint of its hierarchy. */
static void look_up(const char *root, const struct hierarchy *h, const char *below, bool v2, struct memory *m)
{
    CLEANUP_STR struct str folder = STR_INIT;
    size_t top = strlen(h->mounted);
    str_addf(&folder, "%s%s", h->mounted, strcmp(below, "/") == 0 ? "" : below);
    while (!folder.failed) {
        if (look_group(root, folder.data, v2 ? &version2 : &version1, m)) {
            m->v2 = v2;
            snprintf(m->group, sizeof m->group, "%s%s", strcmp(h->from, "/") == 0 ? "" : h->from, folder.data + top);
        }
        if (folder.length <= top)
            return;
        while (folder.length > top && folder.data[folder.length - 1] != '/')
            folder.length--;
        folder.length -= folder.length > top;
        folder.data[folder.length] = '\0';
    }
}

static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; (p = strstr(p, word)); p += n)
        if ((p == list || p[-1] == ',') && (p[n] == ',' || p[n] == '\0'))
            return true;
    return false;
}

/* Our group's path in the hierarchy with the memory controller: a line "4:memory:/a/b", or "0::/a/b" for version 2. */
static bool group_path(char *text, bool v2, char **path)
{
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
        char *number = strsep(&line, ":"), *controllers = strsep(&line, ":");
        if (!line || !controllers)
            continue;
        if (v2 ? strcmp(number, "0") == 0 && !*controllers : has_word(controllers, "memory")) {
            *path = line;
            return true;
        }
    }
    return false;
}

static bool parse_mount(const char *line, struct hierarchy *h)
{
    const char *dash = strstr(line, " - ");
    return dash && sscanf(line, "%*s %*s %*s %4095s %4095s", h->from, h->mounted) == 2 &&
           sscanf(dash + 3, "%63s %*s %4095s", h->type, h->super) == 2;
}

static void look_hierarchy(const char *root, const struct hierarchy *h, bool v2, struct memory *m)
{
    CLEANUP_STR struct str groups = STR_INIT;
    char *path;
    if (read_whole(root, "/proc/self/cgroup", &groups) || groups.length == 0 || !group_path(groups.data, v2, &path))
        return;
    /* in a container the mount may begin at our group, while the path begins at the machine's top */
    size_t n = strcmp(h->from, "/") == 0 ? 0 : strlen(h->from);
    bool below = strncmp(path, h->from, n) == 0 && (path[n] == '/' || path[n] == '\0');
    look_up(root, h, below && path[n] ? path + n : "/", v2, m);
}

static void look_groups(const char *root, struct memory *m)
{
    CLEANUP_STR struct str mounts = STR_INIT;
    if (read_whole(root, "/proc/self/mountinfo", &mounts) || mounts.length == 0)
        return;
    for (char *rest = mounts.data, *line; (line = strsep(&rest, "\n"));) {
        struct hierarchy h;
        if (!parse_mount(line, &h))
            continue;
        if (strcmp(h.type, "cgroup2") == 0)
            look_hierarchy(root, &h, true, m);
        else if (strcmp(h.type, "cgroup") == 0 && has_word(h.super, "memory"))
            look_hierarchy(root, &h, false, m);
    }
}

int memory_look(const char *root, struct memory *memory)
{
    *memory = (struct memory){0};
    int error = look_machine(root, memory);
    if (!error)
        look_groups(root, memory);
    return error;
}

bool memory_has(const char *root, const struct memory *m, int pid)
{
    CLEANUP_STR struct str groups = STR_INIT;
    size_t n = strlen(m->group);
    char file[32], *path;
    if (!m->by_group)
        return true;
    snprintf(file, sizeof file, "/proc/%d/cgroup", pid);
    return read_whole(root, file, &groups) == 0 && groups.length > 0 && group_path(groups.data, m->v2, &path) &&
           strncmp(path, m->group, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

uint64_t memory_share(const struct memory *memory, unsigned mounts, uint64_t need)
{
    uint64_t share = memory->available / SHARE / (mounts ? mounts : 1);
    return share < need ? share : need;
}
