/* `where`: the sample number, the owner and the tier of a path. */
#include "fs/catalog/path-search.h"
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
    FIELDS_MOST = 64,     /* maximum bytes of a line in addition to its path */
};

struct where {
    const struct control *control;
    const struct world_view *view;
    struct path_search search;
    bool lines; /* paths are lines in the format of the file `samples`; unescaped paths are also accepted */
    struct str *reply;
};

/* What a line asks for: a file, or with TAB and an offset after the path, one byte of it, such as a record's first. */
struct where_place {
    uint32_t file;
    uint64_t offset;
};

static int find_offset(struct where *w, const char *path, size_t n, struct where_place *place)
{
    const char *tab = memrchr(path, '\t', n), *end = path + n;
    const char *at = tab ? tab + 1 : end;
    if (!number_take(&at, end, INT64_MAX, &place->offset) || at != end)
        return -ENOENT;
    int error = path_search_line(&w->search, path, (size_t)(tab - path), &place->file);
    if (!error && place->offset >= catalog_file(w->search.catalog, place->file).size)
        error = -ERANGE;
    return error;
}

static int find_place(struct where *w, const char *path, size_t n, struct where_place *place)
{
    int error = (w->lines ? path_search_line : path_search_find)(&w->search, path, n, &place->file);
    place->offset = 0;
    return error && w->lines ? find_offset(w, path, n, place) : error;
}

static bool is_held(const struct control *control, const struct where_place *place, enum tier_name *tier)
{
    struct store *store = control->config.store;
    return store && store_where(store, place->file, place->offset, tier) == 0;
}

/* The owner by the layout, also while its world is gone. If there never was a world, it is this node for what it
 * has cached. */
static void add_owner(const struct where *w, const struct where_place *place, bool held)
{
    uint32_t owner = held ? 0 : NO_OWNER;
    if (w->view->owners)
        owner = layout_owner(w->view->owners, layout_group(w->view->owners, w->view->me),
                             extents_at(w->control->extents, place->file, place->offset));
    if (owner == NO_OWNER)
        str_adds(w->reply, "-");
    else
        str_addf(w->reply, "%u", owner);
}

static void add_line(struct where *w, const char *path, size_t n)
{
    enum tier_name tier;
    struct where_place place;
    if (find_place(w, path, n, &place) == 0) {
        bool held = is_held(w->control, &place, &tier);
        str_addf(w->reply, "%u\t", place.file);
        add_owner(w, &place, held);
        str_addf(w->reply, "\t%s\t", held ? tier_names[tier] : "-");
    } else {
        str_adds(w->reply, "-\t-\t-\t");
    }
    if (w->lines)
        str_add(w->reply, path, n);
    else
        samples_text_escape(path, n, w->reply);
    str_adds(w->reply, "\n");
}

static int add_lines(struct where *w, const struct request *request, const struct asker *asker)
{
    const char *rest = request->payload, *path;
    size_t left = request->payload_length, n;
    for (uint64_t i = 1; text_line(&rest, &left, w->lines ? '\n' : '\0', &path, &n); i++) {
        int error = charge_reach(asker->charge, asker->reply->length + 2 * n + FIELDS_MOST, asker->why);
        if (error)
            return error;
        add_line(w, path, n);
        if (i % LOOK_UP_EVERY == 0 && asker_gave_up(asker))
            return str_fail(asker->why, -EINTR, "interrupted");
    }
    return 0;
}

static int where_run(struct control *control, const struct request *request, const struct asker *asker)
{
    CLEANUP_WORLD_VIEW struct world_view view = world_view_get(control);
    struct where w = {.control = control,
                      .view = &view,
                      .search = {.catalog = control->config.catalog, .prefixes = control->prefixes},
                      .lines = request_separator(&request->value[0]) == '\n',
                      .reply = asker->reply};
    int error = add_lines(&w, request, asker);
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
