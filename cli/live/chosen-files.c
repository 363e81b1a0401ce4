/* Reads the list `samples` of a mount, and compares each path. */
#include "cli/live/chosen-files.h"

#include "cli/base/place.h"
#include "fs/base/array.h"
#include "fs/base/cleanup.h"
#include "fs/catalog/glob.h"
#include "fs/catalog/samples.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIST_PIECE = 1 << 20 };

struct choosing {
    const struct files_wish *choice;
    int mount;
    struct chosen_files *files;
    struct str *why;
};

static bool is_chosen(const struct files_wish *choice, const char *path, size_t n)
{
    size_t under = choice->under ? strlen(choice->under) : 0;
    const char *match = choice->match;
    if (under > 0 && (n <= under || memcmp(path, choice->under, under) != 0 || path[under] != '/'))
        return false;
    if (!match)
        return true;
    if (glob_has_slash(match))
        return glob_match(*match == '/' ? match + 1 : match, path, n);
    const char *slash = memrchr(path, '/', n);
    const char *name = slash ? slash + 1 : path;
    return glob_match(match, name, n - (size_t)(name - path));
}

static int choose_line(struct choosing *x, const char *line, size_t n, uint32_t number, struct str *plain)
{
    struct stat st;
    str_clear(plain);
    char *path = str_reserve(plain, n + 1);
    if (!path)
        return str_no_memory(x->why);
    n = samples_text_unescape(line, n, path);
    path[n] = '\0';
    if (!is_chosen(x->choice, path, n))
        return 0;
    int error = fstatat(x->mount, path, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
    if (error) {
        str_add_printable(x->why, path, n);
        return str_fail(x->why, error, ": %s", strerror(-error));
    }
    char *own = array_reserve(x->files->chosen, x->files->room, x->files->count + 1) ? NULL : strdup(path);
    if (!own)
        return str_no_memory(x->why);
    x->files->chosen[x->files->count++] = (struct chosen_file){own, number, (uint64_t)st.st_size};
    x->files->total += (uint64_t)st.st_size;
    return 0;
}

/* Line i of `samples` is file i of the mount. */
static int choose_from(struct choosing *x, int list)
{
    CLEANUP_STR struct str text = STR_INIT, plain = STR_INIT;
    uint32_t number = 0;
    for (;;) {
        char *room = str_reserve(&text, LIST_PIECE);
        ssize_t n = room ? read(list, room, LIST_PIECE) : 0;
        if (!room)
            return str_no_memory(x->why);
        if (n <= 0)
            return n < 0 ? -errno : 0;
        text.length += (size_t)n;
        size_t at = 0;
        for (const char *end; (end = memchr(text.data + at, '\n', text.length - at)); number++) {
            size_t length = (size_t)(end - (text.data + at));
            int error = choose_line(x, text.data + at, length, number, &plain);
            if (error)
                return error;
            at += length + 1;
        }
        memmove(text.data, text.data + at, text.length - at);
        text.length -= at;
    }
}

int chosen_files_find(const struct live *live, const struct files_wish *choice, int mount, struct chosen_files *files,
                      struct str *why)
{
    struct choosing choosing = {.choice = choice, .mount = mount, .files = files, .why = why}, *x = &choosing;
    CLEANUP_FREE char *path = place_join(live->control, "samples");
    CLEANUP_CLOSE int list = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    int error = list < 0 ? -errno : choose_from(x, list);
    if (error && !x->why->length)
        str_addf(x->why, "read the list of files: %s", strerror(-error));
    if (error || x->files->count > 0)
        return error;
    return str_fail(x->why, -ENOENT, "--under and --match select no file");
}

void chosen_files_fini(struct chosen_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->chosen[i].path);
    free(files->chosen);
    *files = (struct chosen_files){0};
}
