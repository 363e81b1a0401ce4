/* `where`: which sample a path is, who owns it, and where its bytes lie. */
#include "fs/mount/control/world.h"

#include <errno.h>
#include <string.h>

enum {
    LOOK_UP_EVERY = 4096, /* paths between two questions whether anybody still waits */
    PLAIN_MOST = 2 * CATALOG_PATH_MAX,
};

/* What is behind the prefix, slash included, or NULL when the path does not lie there. */
static const char *behind(const char *prefix, const char *path, size_t n)
{
    size_t length = strlen(prefix);

    while (length > 0 && prefix[length - 1] == '/')
        length--;
    return n > length && memcmp(path, prefix, length) == 0 && path[length] == '/' ? path + length : NULL;
}

static int find_relative(const struct catalog *c, const char *path, size_t n, uint32_t *file)
{
    uint64_t ino;
    int error = catalog_find(c, path, n, &ino);

    return error ? error : catalog_ino_file(c, ino, file);
}

/* A path is relative, or absolute in the source or the mount. */
static int find_file(const struct control *control, const char *path, size_t n, uint32_t *file)
{
    int error = -ENOENT;

    if (n == 0 || path[0] != '/')
        return find_relative(control->config.catalog, path, n, file);
    for (const char *const *prefix = control->prefixes; error && *prefix; prefix++) {
        const char *rest = behind(*prefix, path, n);
        if (rest)
            error = find_relative(control->config.catalog, rest, n - (size_t)(rest - path), file);
    }
    return error;
}

/* Lines are written as in the file `samples`; one may also have been written by somebody who does not escape. */
static int find_line(const struct control *control, const char *path, size_t n, uint32_t *file)
{
    char plain[PLAIN_MOST];

    if (n > 0 && n <= sizeof plain && memchr(path, '\\', n) &&
        find_file(control, plain, samples_text_unescape(path, n, plain), file) == 0)
        return 0;
    return find_file(control, path, n, file);
}

/* The node that keeps the file's first extent: as the directory says, also while its world is gone. Where there never
 * was one it is this node, of what it holds. */
static void add_owner(const struct control *control, const struct world_view *view, uint32_t file, bool held,
                      struct str *reply)
{
    uint32_t owner = held ? 0 : NO_OWNER;

    if (view->owners)
        owner = directory_owner(view->owners, directory_group(view->owners, view->me),
                                extents_first(control->extents, file));
    if (owner == NO_OWNER)
        str_adds(reply, "-");
    else
        str_addf(reply, "%u", owner);
}

static void add_line(const struct control *control, const struct world_view *view, const char *path, size_t n,
                     bool line, struct str *reply)
{
    enum tier_name tier;
    uint32_t file;

    if ((line ? find_line : find_file)(control, path, n, &file) == 0) {
        bool held = control->config.store && store_where(control->config.store, file, &tier) == 0;
        str_addf(reply, "%u\t", file);
        add_owner(control, view, file, held, reply);
        str_addf(reply, "\t%s\t", held ? tier_names[tier] : "-");
    } else {
        str_adds(reply, "-\t-\t-\t");
    }
    if (line)
        str_add(reply, path, n);
    else
        samples_text_escape(path, n, reply);
    str_adds(reply, "\n");
}

static int add_lines(const struct control *control, const struct world_view *view, const struct request *request,
                     const struct asker *asker, struct str *reply)
{
    const char *rest = request->payload, *path;
    size_t left = request->payload_length, n;
    char separator = request_separator(request);

    for (uint64_t i = 1; request_record(&rest, &left, separator, &path, &n); i++) {
        add_line(control, view, path, n, separator == '\n', reply);
        if (i % LOOK_UP_EVERY == 0 && asker->gave_up && asker->gave_up(asker->user))
            return -EINTR;
    }
    return 0;
}

static int run(struct control *control, const struct request *request, const struct asker *asker, struct str *reply,
               struct str *why)
{
    struct world_view view;

    control_view(control, &view);
    int error = add_lines(control, &view, request, asker, reply);
    control_view_release(&view);
    if (error) {
        str_adds(why, "interrupted");
        return error;
    }
    if (!reply->length) {
        str_adds(why, "`where` needs paths after its first line");
        return -EINVAL;
    }
    return 0;
}

static const struct request_key keys[] = {{.name = "sep", .choices = "lf|nul"}, {0}};

const struct verb verb_where = {
    .name = "where",
    .usage = "where [sep=lf|nul]                 payload: paths; reply: sample, owner, tier, path",
    .keys = keys,
    .payload_most = REQUEST_MOST,
    .run = run,
};
