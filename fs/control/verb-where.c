/* `where`: the sample number, the owner and the tier of a path. */
#include "fs/control/control-private.h"
#include "fs/control/verbs.h"
#include "fs/control/world-view.h"
#include "fs/world/extents.h"
#include "fs/world/layout.h"

#include "fs/base/size.h"

#include <errno.h>
#include <string.h>

enum {
    LOOK_UP_EVERY = 4096, /* paths between two checks whether anybody still waits */
    PLAIN_MOST = 2 * CATALOG_PATH_MAX,
    FIELDS_MOST = 64, /* maximum bytes of a line in addition to its path */
};

/* The rest of the path after the prefix and its slash; NULL: the path is not below it. */
static const char *path_behind(const char *prefix, const char *path, size_t n)
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
        const char *rest = path_behind(*prefix, path, n);
        if (rest)
            error = find_relative(control->config.catalog, rest, n - (size_t)(rest - path), file);
    }
    return error;
}

/* Lines are in the format of the file `samples`; unescaped paths are also accepted. */
static int find_line(const struct control *control, const char *path, size_t n, uint32_t *file)
{
    char plain[PLAIN_MOST];
    if (n > 0 && n <= sizeof plain && memchr(path, '\\', n) &&
        find_file(control, plain, samples_text_unescape(path, n, plain), file) == 0)
        return 0;
    return find_file(control, path, n, file);
}

/* What a line asks for: a file, or with TAB and an offset after the path, one byte of it, such as a record's first. */
struct where_place {
    uint32_t file;
    uint64_t offset;
};

static int find_offset(const struct control *control, const char *path, size_t n, struct where_place *place)
{
    const char *tab = memrchr(path, '\t', n);
    char digits[24];
    size_t length = tab ? n - (size_t)(tab + 1 - path) : 0;
    if (length == 0 || length >= sizeof digits)
        return -ENOENT;
    memcpy(digits, tab + 1, length);
    digits[length] = '\0';
    int error = number_parse(digits, 0, INT64_MAX, &place->offset);
    if (!error)
        error = find_line(control, path, (size_t)(tab - path), &place->file);
    if (!error && place->offset >= catalog_file(control->config.catalog, place->file).size)
        error = -ERANGE;
    return error;
}

static int find_place(const struct control *control, const char *path, size_t n, bool line, struct where_place *place)
{
    int error = (line ? find_line : find_file)(control, path, n, &place->file);
    place->offset = 0;
    return error && line ? find_offset(control, path, n, place) : error;
}

static bool is_held(const struct control *control, const struct where_place *place, enum tier_name *tier)
{
    struct store *store = control->config.store;
    return store && store_where(store, place->file, place->offset, tier) == 0;
}

/* The owner by the layout, also while its world is gone. If there never was a world, it is this node for what it
 * has cached. */
static void add_owner(const struct control *control, const struct world_view *view, const struct where_place *place,
                      bool held, struct str *reply)
{
    uint32_t owner = held ? 0 : NO_OWNER;
    if (view->owners)
        owner = layout_owner(view->owners, layout_group(view->owners, view->me),
                             extents_at(control->extents, place->file, place->offset));
    if (owner == NO_OWNER)
        str_adds(reply, "-");
    else
        str_addf(reply, "%u", owner);
}

static void add_line(const struct control *control, const struct world_view *view, const char *path, size_t n,
                     bool line, struct str *reply)
{
    enum tier_name tier;
    struct where_place place;
    if (find_place(control, path, n, line, &place) == 0) {
        bool held = is_held(control, &place, &tier);
        str_addf(reply, "%u\t", place.file);
        add_owner(control, view, &place, held, reply);
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
                     const struct asker *asker)
{
    const char *rest = request->payload, *path;
    size_t left = request->payload_length, n;
    char separator = request_separator(&request->value[0]);
    for (uint64_t i = 1; request_record(&rest, &left, separator, &path, &n); i++) {
        int error = charge_reach(asker->charge, asker->reply->length + 2 * n + FIELDS_MOST, asker->why);
        if (error)
            return error;
        add_line(control, view, path, n, separator == '\n', asker->reply);
        if (i % LOOK_UP_EVERY == 0 && asker_gave_up(asker))
            return str_fail(asker->why, -EINTR, "interrupted");
    }
    return 0;
}

static int where_run(struct control *control, const struct request *request, const struct asker *asker)
{
    CLEANUP_WORLD_VIEW struct world_view view = world_view_get(control);
    int error = add_lines(control, &view, request, asker);
    if (error)
        return error;
    if (!asker->reply->length)
        return str_fail(asker->why, -EINVAL, "`where` needs paths after its first line");
    return 0;
}

static const struct key keys[] = {REQUEST_SEP, {0}};

const struct verb verb_where = {
    .name = "where",
    .about = "payload: paths; reply: sample, owner, tier, path",
    .keys = keys,
    .payload_most = PAYLOAD_MOST,
    .run = where_run,
};
