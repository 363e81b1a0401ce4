/* One line per name: three digests, the size, and the percent-encoded name. */
#include "fs/control/plan-names.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { NAMES_MOST = 2 << 20 };

/* Keeps the second half. */
static int names_shorten(const char *path)
{
    CLEANUP_STR struct str all = STR_INIT;
    int error = file_read(AT_FDCWD, path, 2 * NAMES_MOST, &all);
    const char *half = error ? NULL : memchr(all.data + all.length / 2, '\n', all.length - all.length / 2);
    if (!half)
        return error;
    return file_write_atomic(AT_FDCWD, path, half + 1, all.length - (size_t)(half + 1 - all.data), 0600);
}

int plan_names_add(const char *path, const struct named_plan *plan)
{
    CLEANUP_STR struct str line = STR_INIT;
    char meaning[DIGEST_TEXT], layout[DIGEST_TEXT], key[DIGEST_TEXT];
    struct stat st;
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    str_addf(&line, "%s %s %s %" PRIu64 " ", digest_format(&plan->meaning, meaning),
             digest_format(&plan->layout, layout), digest_format(&plan->key, key), plan->size);
    str_add_percent(&line, plan->name, strlen(plan->name));
    str_adds(&line, "\n");
    int error = line.failed ? -ENOMEM : file_write_all(fd, line.data, line.length);
    if (!error && fstat(fd, &st) == 0 && st.st_size > NAMES_MOST)
        error = names_shorten(path);
    return error;
}

/* False: the line was cut off, for example by a full disk. */
static bool parse_line(char *line, struct named_plan *plan, char **name)
{
    char meaning[DIGEST_TEXT], layout[DIGEST_TEXT], key[DIGEST_TEXT];
    int at = 0;
    if (sscanf(line, "%32s %32s %32s %" SCNu64 " %n", meaning, layout, key, &plan->size, &at) != 4 || at == 0)
        return false;
    *name = line + at;
    return digest_parse(meaning, &plan->meaning) == 0 && digest_parse(layout, &plan->layout) == 0 &&
           digest_parse(key, &plan->key) == 0 && percent_decode(*name, strlen(*name)) > 0;
}

int plan_names_find(const char *path, bool (*wanted)(void *user, const struct digest *meaning), void *user,
                    struct named_plan *plan)
{
    CLEANUP_STR struct str all = STR_INIT;
    struct named_plan found = {.name = NULL};
    char *name = NULL;
    int error = file_read(AT_FDCWD, path, 2 * NAMES_MOST, &all);
    if (error)
        return error;
    for (char *line = all.data, *end; line && (end = strchr(line, '\n')); line = end + 1) {
        struct named_plan one;
        char *its = NULL;
        *end = '\0';
        if (!parse_line(line, &one, &its) || !wanted(user, &one.meaning))
            continue;
        found = one;
        name = its;
    }
    if (!name)
        return -ENOENT;
    *plan = found;
    plan->name = strdup(name);
    return plan->name ? 0 : -ENOMEM;
}
