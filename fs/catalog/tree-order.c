/* The orders of the catalog.
 *
 * Directories are numbered breadth-first, so that the children of one are contiguous. Files are ordered by top-level
 * directory, and within one by (path of their directory as a byte string, name). That is not depth-first: the string
 * order of directories is a, a-b, a/c, because '-' sorts before '/'. So a directory becomes a list of events, sorted as
 * strings: "NAME" for a child itself, and "NAME/" for everything below it. */
#include "fs/base/array.h"
#include "fs/catalog/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- by number --- */

static void count_children(struct tree_order *o, struct branch *n)
{
    n->first_directory = (uint32_t)(o->directories + CATALOG_ROOT);
    n->first_link = (uint32_t)o->links;
    n->alive = 0;
    for (uint32_t i = 0; i < n->directories; i++)
        n->alive += !n->children[i].gone;
    o->files += n->files;
    o->links += n->links;
    o->directories += n->alive;
    o->notes.specials += n->specials;
    o->notes.links_to_files += n->links_to_files;
    o->notes.hidden += n->hides;
    o->notes.unreadable += n->unreadable;
    for (uint32_t i = 0; i < n->files; i++) {
        o->notes.linked += n->seen[i].links > 1;
        o->bytes = format_sum(o->bytes, n->file[i].size);
    }
}

static int number_directories(struct branch *root, struct tree_order *o)
{
    size_t capacity = 0;
    o->directories = 1;
    int error = array_reserve(o->by_number, capacity, 1024);
    if (error)
        return error;
    o->by_number[0] = root;
    for (uint64_t i = 0; i < o->directories; i++) {
        struct branch *n = o->by_number[i];
        uint64_t next = o->directories;
        n->number = (uint32_t)(i + CATALOG_ROOT);
        count_children(o, n);
        error = array_reserve(o->by_number, capacity, o->directories);
        if (error)
            return error;
        for (uint32_t k = 0; k < n->directories; k++)
            if (!n->children[k].gone)
                o->by_number[next++] = &n->children[k];
    }
    return o->directories > FORMAT_COUNT_MOST || o->files > FORMAT_COUNT_MOST || o->links > FORMAT_COUNT_MOST ? -EFBIG
                                                                                                              : 0;
}

/* --- by path --- */

struct event {
    struct branch *branch;
    bool below; /* "NAME/", not "NAME" */
};

/* A level on the way down: the events of one directory; `next` is the next one. */
struct level {
    struct level *up;
    size_t count, next;
    struct event event[];
};

static int event_compare(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    size_t m = x->branch->name_length, n = y->branch->name_length, least = m < n ? m : n;
    int order = memcmp(x->branch->name, y->branch->name, least);
    if (order)
        return order;
    /* names end with a NUL, which sorts first, as the end of "NAME" must; '/' represents what is below it */
    int p = (unsigned char)x->branch->name[least], q = (unsigned char)y->branch->name[least];
    if (x->below && p == '\0')
        p = '/';
    if (y->below && q == '\0')
        q = '/';
    return p != q ? p - q : (m > n) - (m < n);
}

static struct level *level_make(struct branch *n, struct level *up)
{
    struct level *level = malloc(sizeof *level + 2 * (size_t)n->directories * sizeof level->event[0]);
    if (!level)
        return NULL;
    level->up = up;
    level->count = level->next = 0;
    size_t below = 0;
    for (uint32_t i = 0; i < n->directories; i++) {
        struct branch *child = &n->children[i];
        if (child->gone)
            continue;
        level->event[level->count++] = (struct event){.branch = child};
        below += child->alive > 0;
        if (child->alive > 0)
            level->event[level->count++] = (struct event){.branch = child, .below = true};
    }
    /* the files of a directory directly below the root stay with all below it, so the order is already right */
    if (below > 0 && n->parent)
        qsort(level->event, level->count, sizeof level->event[0], event_compare);
    return level;
}

static void place_files(struct tree_order *o, struct branch *n, uint64_t *place, uint32_t *file)
{
    o->by_path[(*place)++] = n;
    n->first_file = *file;
    *file += n->files;
}

static int order_by_path(struct branch *root, struct tree_order *o)
{
    o->by_path = malloc(o->directories * sizeof *o->by_path);
    struct level *level = o->by_path ? level_make(root, NULL) : NULL;
    uint64_t place = 0;
    uint32_t file = 0;
    int error = level ? 0 : -ENOMEM;
    while (level) {
        if (level->next == level->count || error) {
            struct level *up = level->up;
            free(level);
            level = up;
            continue;
        }
        struct event e = level->event[level->next++];
        if (!e.below) {
            place_files(o, e.branch, &place, &file);
            continue;
        }
        struct level *down = level_make(e.branch, level);
        if (down)
            level = down;
        else
            error = -ENOMEM;
    }
    if (!error)
        place_files(o, root, &place, &file);
    return error;
}

int tree_order_make(struct branch *root, struct tree_order *order)
{
    memset(order, 0, sizeof *order);
    int error = number_directories(root, order);
    return error ? error : order_by_path(root, order);
}

void tree_order_fini(struct tree_order *order)
{
    free(order->by_number);
    free(order->by_path);
    order->by_number = order->by_path = NULL;
}
