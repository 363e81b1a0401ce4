/* Sorts entries and packs them: records first, then names and targets, in one block of memory. */
#include "fs/catalog/entry.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- sort --- */

/* Names of one directory often have a common prefix (val_00001.jpg, val_00002.jpg): it is skipped, and the next 8 bytes
 * as a number decide nearly every comparison. */
struct item {
    uint64_t key;
    const char *rest; /* after the key; NULL: the name ended before */
    struct scan_entry *entry;
};

static size_t common_prefix(struct scan_entry *const *list, size_t count)
{
    size_t common = list[0]->length;
    for (size_t i = 1; i < count; i++) {
        size_t same = 0;
        while (same < common && list[i]->name[same] == list[0]->name[same]) /* stops at the NUL of either */
            same++;
        common = same;
    }
    return common;
}

static struct item item_make(struct scan_entry *e, size_t skip)
{
    struct item item = {.entry = e};
    size_t n = e->length - skip;
    memcpy(&item.key, e->name + skip, n < sizeof item.key ? n : sizeof item.key);
    item.key = be64toh(item.key);
    item.rest = n > sizeof item.key ? e->name + skip + sizeof item.key : NULL;
    return item;
}

static int item_compare(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return strcmp(x->rest ? x->rest : "", y->rest ? y->rest : "");
}

int entries_sort(struct scan_entry **list, size_t *count)
{
    if (*count < 2)
        return 0;
    struct item *item = malloc(*count * sizeof *item);
    if (!item)
        return -ENOMEM;
    size_t skip = common_prefix(list, *count), kept = 0;
    for (size_t i = 0; i < *count; i++)
        item[i] = item_make(list[i], skip);
    qsort(item, *count, sizeof *item, item_compare);
    for (size_t i = 0; i < *count; i++)
        if (i == 0 || item_compare(&item[i - 1], &item[i]) != 0)
            list[kept++] = item[i].entry;
    *count = kept;
    free(item);
    return 0;
}

/* --- pack --- */

struct sums {
    size_t directories, files, links, bytes;
};

static struct sums sum(struct scan_entry *const *list, size_t count)
{
    struct sums s = {0};
    for (size_t i = 0; i < count; i++) {
        s.directories += list[i]->kind == ENTRY_DIRECTORY;
        s.files += list[i]->kind == ENTRY_FILE;
        s.links += list[i]->kind == ENTRY_LINK;
        s.bytes += list[i]->length + 1u + (list[i]->target ? strlen(list[i]->target) + 1 : 0);
    }
    return s;
}

static uint64_t add_name(char *names, size_t *end, const char *text, size_t length)
{
    uint64_t name = name_pack(*end, length);
    memcpy(names + *end, text, length);
    names[*end + length] = '\0';
    *end += length + 1;
    return name;
}

/* Where the entries of a branch go: all but the children is one block of memory. */
struct branch_room {
    struct format_file *file;
    struct format_link *link;
    struct format_seen *seen;
    int64_t *version;
    char *names;
    size_t names_end;
};

static int make_room(const struct sums *s, struct branch *n, struct branch_room *room)
{
    size_t records = s->files * (sizeof *n->file + sizeof *n->seen + sizeof *n->version) + s->links * sizeof *n->link;
    char *own = malloc(records + s->bytes + 1);
    struct branch *children = s->directories ? malloc(s->directories * sizeof *children) : NULL;
    if (!own || (s->directories && !children)) {
        free(own);
        free(children);
        return -ENOMEM;
    }
    room->file = (void *)own;
    room->link = (void *)(room->file + s->files);
    room->seen = (void *)(room->link + s->links);
    room->version = (void *)(room->seen + s->files);
    room->names = own + records;
    room->names_end = 0;
    n->own = own;
    n->file = room->file;
    n->link = room->link;
    n->seen = room->seen;
    n->version = room->version;
    n->names = room->names;
    n->children = children;
    return 0;
}

static void add_entry(const struct scan_entry *e, const struct catalog *old, struct branch *n, struct branch_room *room)
{
    uint64_t name = add_name(room->names, &room->names_end, e->name, e->length);
    if (e->kind == ENTRY_DIRECTORY) {
        const char *text = room->names + name_offset(name);
        uint32_t before = n->old && old ? catalog_subdirectory(old, n->old, text, e->length) : 0;
        branch_init(&n->children[n->directories++], n, text, e->length, before);
    } else if (e->kind == ENTRY_FILE) {
        room->seen[n->files] = (struct format_seen){e->state.ctime, e->blocks, e->state.links, e->state.object};
        room->version[n->files] = e->version;
        room->file[n->files++] = (struct format_file){
            .size = e->state.size, .mtime = e->state.mtime, .name = name, .attribute = e->attribute};
    } else {
        room->link[n->links++] = (struct format_link){
            .mtime = e->state.mtime,
            .name = name,
            .target = add_name(room->names, &room->names_end, e->target, strlen(e->target)),
            .attribute = e->attribute,
        };
    }
}

int entries_to_branch(struct scan_entry *const *list, size_t count, const struct catalog *old, struct branch *n)
{
    struct branch_room room;
    struct sums s = sum(list, count);
    if (s.directories > FORMAT_COUNT_MOST || s.files > FORMAT_COUNT_MOST || s.links > FORMAT_COUNT_MOST)
        return -EFBIG;
    int error = make_room(&s, n, &room);
    for (size_t i = 0; !error && i < count; i++)
        add_entry(list[i], old, n, &room);
    return error;
}
