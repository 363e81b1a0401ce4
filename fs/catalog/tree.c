/* The branches of a scan, and their common modes and owners. */
#include "fs/catalog/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void branch_init(struct branch *n, struct branch *parent, const char *name, size_t length, uint32_t old)
{
    memset(n, 0, sizeof *n);
    n->parent = parent;
    n->name = name;
    n->name_length = length;
    n->path_length = parent ? parent->path_length + (parent->parent ? 1 : 0) + length : 0;
    n->old = old;
    n->fd = -1;
}

/* Trees can be deeper than the stack allows: children's arrays are freed on the way up, by following `parent`. */
void branch_fini(struct branch *root)
{
    struct branch *n = root;
    for (;;) {
        if (n->directories > 0 && n->children) {
            n = &n->children[n->directories - 1];
            continue;
        }
        free(n->children);
        n->children = NULL;
        free(n->own);
        n->own = NULL;
        if (n->fd >= 0)
            close(n->fd);
        n->fd = -1;
        if (n == root)
            return;
        n = n->parent;
        n->directories--; /* the last child is done */
    }
}

char *branch_path(const struct branch *n)
{
    if (!n->parent)
        return strdup(".");
    char *path = malloc(n->path_length + 1);
    if (!path)
        return NULL;
    char *at = path + n->path_length;
    *at = '\0';
    for (; n->parent; n = n->parent) {
        at -= n->name_length;
        memcpy(at, n->name, n->name_length);
        if (at > path)
            *--at = '/';
    }
    return path;
}

/* --- attributes --- */

static uint32_t attribute_hash(const struct format_attribute *a)
{
    return (uint32_t)hash64(a, sizeof *a, 0);
}

static bool attribute_same(const struct format_attribute *a, const struct format_attribute *b)
{
    return a->mode == b->mode && a->uid == b->uid && a->gid == b->gid;
}

static uint32_t *slot_of(struct attributes *a, const struct format_attribute *attribute)
{
    uint32_t i = attribute_hash(attribute) & (a->slots - 1);
    while (a->slot[i] && !attribute_same(&a->list[a->slot[i] - 1], attribute))
        i = (i + 1) & (a->slots - 1);
    return &a->slot[i];
}

/* At most half of the slots are used. */
static int attributes_grow(struct attributes *a)
{
    if (a->capacity > UINT32_MAX / 4)
        return -ENOMEM;
    uint32_t capacity = a->capacity ? a->capacity * 2 : 64;
    struct format_attribute *list = realloc(a->list, capacity * sizeof *list);
    if (!list)
        return -ENOMEM;
    a->list = list;
    uint32_t *slot = calloc((size_t)capacity * 2, sizeof *slot);
    if (!slot)
        return -ENOMEM;
    free(a->slot);
    a->slot = slot;
    a->slots = capacity * 2;
    a->capacity = capacity;
    for (uint32_t i = 0; i < a->count; i++)
        *slot_of(a, &a->list[i]) = i + 1;
    return 0;
}

static int attribute_add(struct attributes *a, const struct format_attribute *attribute, bool even_twice, uint32_t *id)
{
    int error = a->count == a->capacity ? attributes_grow(a) : 0;
    if (error)
        return error;
    uint32_t *slot = slot_of(a, attribute);
    if (!*slot || even_twice) {
        a->list[a->count] = *attribute;
        *slot = ++a->count;
    }
    *id = *slot - 1;
    return 0;
}

int attributes_init(struct attributes *a, const struct catalog *old)
{
    memset(a, 0, sizeof *a);
    pthread_mutex_init(&a->lock, NULL);
    int error = attributes_grow(a);
    for (uint64_t i = 0; !error && old && i < old->attributes; i++) {
        uint32_t id;
        error = attribute_add(a, &old->attribute[i], true, &id);
    }
    if (error)
        attributes_fini(a);
    return error;
}

void attributes_fini(struct attributes *a)
{
    pthread_mutex_destroy(&a->lock);
    free(a->list);
    free(a->slot);
    a->list = NULL;
    a->slot = NULL;
}

int attributes_id(struct attributes *a, struct attribute_memory *memory, const struct stat *st, uint32_t *id)
{
    struct format_attribute attribute = {.mode = st->st_mode & 07777, .uid = st->st_uid, .gid = st->st_gid};
    size_t place = attribute_hash(&attribute) % (sizeof memory->slot / sizeof memory->slot[0]);
    if (memory->slot[place].id_and_1 && attribute_same(&memory->slot[place].attribute, &attribute)) {
        *id = memory->slot[place].id_and_1 - 1;
        return 0;
    }
    pthread_mutex_lock(&a->lock);
    int error = attribute_add(a, &attribute, false, id);
    pthread_mutex_unlock(&a->lock);
    if (!error) {
        memory->slot[place].attribute = attribute;
        memory->slot[place].id_and_1 = *id + 1;
    }
    return error;
}
