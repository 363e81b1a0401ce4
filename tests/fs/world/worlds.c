/* See worlds.h. */
#include "tests/fs/world/worlds.h"

#include "fs/catalog/catalog-inside.h"
#include "tests/lib/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 8 };

static void fill_names(char *names, uint32_t files)
{
    names[0] = '\0'; /* the root's */
    for (uint32_t f = 0; f < files; f++)
        snprintf(names + 1 + (size_t)f * (NAME + 1), NAME + 1, "%08x", f);
}

static void fill_image(struct format_header *h, const uint64_t *size, uint32_t files)
{
    char *image = (void *)h;
    struct format_directory *root = (void *)(image + h->section[PART_DIRECTORIES].offset);
    struct format_file *file = (void *)(image + h->section[PART_FILES].offset);
    struct format_attribute *attribute = (void *)(image + h->section[PART_ATTRIBUTES].offset);
    *root = (struct format_directory){
        .name = name_pack(0, 0), .parent = CATALOG_ROOT, .first_directory = CATALOG_ROOT + 1, .files = files};
    attribute->mode = 0755;
    for (uint32_t f = 0; f < files; f++) {
        file[f] = (struct format_file){
            .size = size[f], .mtime = 1, .name = name_pack(1 + (uint64_t)f * (NAME + 1), NAME), .parent = CATALOG_ROOT};
        h->bytes += size[f];
    }
    fill_names(image + h->section[PART_NAMES].offset, files);
    h->digest = format_digest(image);
    h->versions = format_versions(image);
    h->checksum = format_checksum(image);
}

void sizes_begin(struct sizes *s, const uint64_t *size, uint32_t files)
{
    struct format_header h = {.version = FORMAT_VERSION, .endian = FORMAT_ENDIAN};
    memcpy(h.magic, FORMAT_MAGIC, sizeof h.magic);
    h.section[PART_SCAN].count = h.section[PART_DIRECTORIES].count = h.section[PART_ATTRIBUTES].count = 1;
    h.section[PART_FILES].count = h.section[PART_VERSIONS].count = h.section[PART_SEEN].count = files;
    h.section[PART_NAMES].count = 1 + (uint64_t)files * (NAME + 1);
    h.length = format_layout(h.section);
    s->image = calloc(1, h.length);
    if (!s->image)
        bail_out("no memory for %u files", files);
    memcpy(s->image, &h, sizeof h);
    fill_image(s->image, size, files);
    int error = catalog_open_memory(s->image, h.length, &s->catalog);
    if (!error)
        error = extents_create(s->catalog, &s->extents);
    if (error)
        bail_out("a catalog of %u files: %s", files, strerror(-error));
}

void sizes_end(struct sizes *s)
{
    extents_destroy(s->extents);
    catalog_close(s->catalog);
    free(s->image);
}

void world_begin(struct dealt_world *w, const struct sizes *sizes, uint32_t groups)
{
    *w = (struct dealt_world){.sizes = sizes, .groups = groups};
}

uint32_t world_add(struct dealt_world *w, uint32_t name, uint64_t capacity)
{
    if (w->nodes == WORLD_NODES)
        bail_out("more than %d nodes", WORLD_NODES);
    struct world_node *node = &w->node[w->nodes];
    snprintf(node->id, sizeof node->id, "%032x", name);
    snprintf(node->host, sizeof node->host, "host%u", name);
    node->capacity = capacity;
    w->holdings[w->nodes] = calloc(extents_count(w->sizes->extents) / 64 + 1, sizeof(uint64_t));
    if (!w->holdings[w->nodes])
        bail_out("no memory for holdings");
    return w->nodes++;
}

void world_hold(struct dealt_world *w, uint32_t node, uint64_t extent)
{
    w->holdings[node][extent / 64] |= (uint64_t)1 << extent % 64;
}

bool world_holds(const struct dealt_world *w, uint32_t node, uint64_t extent)
{
    return w->holdings[node][extent / 64] >> extent % 64 & 1;
}

static struct holding holding_of(const struct dealt_world *w, uint32_t node)
{
    struct holding h = {.room = w->node[node].capacity};
    for (uint64_t e = 0; e < extents_count(w->sizes->extents); e++)
        h.cost += world_holds(w, node, e) ? extents_cost(w->sizes->extents, e) : 0;
    h.taken = w->taken[node] ? w->taken[node] : h.cost;
    return h;
}

uint64_t world_extents(const struct layout *layout, const struct dealt_world *w, uint32_t node)
{
    uint64_t owned = 0;
    for (uint64_t e = 0; e < extents_count(w->sizes->extents); e++)
        owned += layout_owner(layout, layout_group(layout, node), e) == node;
    return owned;
}

static void note_holder(uint16_t *of_group, uint64_t extents, uint32_t node, const uint64_t *bits)
{
    for (uint64_t e = 0; e < extents; e++)
        if (bits[e / 64] >> e % 64 & 1 && of_group[e] == NO_OWNER)
            of_group[e] = (uint16_t)node;
}

int world_try(const struct dealt_world *w, struct layout **layout)
{
    uint64_t extents = extents_count(w->sizes->extents);
    struct message_member member[WORLD_NODES];
    uint16_t *holder = malloc((w->groups * extents + 1) * sizeof *holder);
    if (!holder)
        bail_out("no memory for holders");
    memset(holder, 0xff, w->groups * extents * sizeof *holder);
    for (uint32_t i = 0; i < w->nodes; i++) {
        member[i] = (struct message_member){w->node[i], holding_of(w, i)};
        if (w->groups > 0 && w->groups <= w->nodes)
            note_holder(holder + node_group(i, w->nodes, w->groups) * extents, extents, i, w->holdings[i]);
    }
    struct layout_input input = {
        .catalog = w->sizes->catalog,
        .extents = w->sizes->extents,
        .nodes = w->nodes,
        .groups = w->groups,
        .member = member,
        .holder = holder,
    };
    int error = layout_compute(&input, layout);
    free(holder);
    return error;
}

struct layout *world_deal(const struct dealt_world *w)
{
    struct layout *d;
    int error = world_try(w, &d);
    if (error)
        bail_out("a layout of %u nodes: %s", w->nodes, strerror(-error));
    return d;
}

void world_end(struct dealt_world *w)
{
    for (uint32_t i = 0; i < w->nodes; i++)
        free(w->holdings[i]);
}

uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t random_below(uint64_t *state, uint64_t n)
{
    return random_next(state) % n;
}
