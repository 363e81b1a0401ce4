/* The directory: computing it, and looking at it. Its file is in directory-file.c, the rule of who gets what in
 * spread.c.
 *
 * It is computed right into the image of its file. For each group in turn: what is held is given to its holders, in the
 * order of their numbers; then the rest is spread. */
#include "fs/world/directory-format.h"

#include "fs/base/cleanup.h"
#include "fs/world/spread.h"

#include <ctype.h>
#include <string.h>

/* ---- computing ---- */

/* One group's part of the work. */
struct deal {
    const struct extents *extents;
    uint16_t *owner;
    uint64_t *room;         /* a node of the group: what is still free of it */
    uint32_t first, nodes;  /* of the group */
    uint64_t left, to_deal; /* extents without an owner, and what they cost */
};

static bool is_id(const char id[NODE_ID])
{
    for (int i = 0; i < NODE_ID - 1; i++)
        if (!isxdigit((unsigned char)id[i]))
            return false;
    return id[NODE_ID - 1] == '\0';
}

static bool is_valid(const struct directory_input *in)
{
    if (in->nodes == 0 || in->nodes > NODES_MOST || in->groups == 0 || in->groups > in->nodes)
        return false;
    for (uint32_t i = 0; i < in->nodes; i++)
        if (!is_id(in->node[i].id) || !memchr(in->node[i].host, '\0', NODE_HOST))
            return false;
    return true;
}

void directory_note_held(uint16_t *holder, uint64_t extents, uint32_t nodes, uint32_t groups, uint32_t node,
                         const uint64_t *bits)
{
    uint16_t *of_group = holder + directory_group_of(node, nodes, groups) * extents;
    for (uint64_t word = 0; word * 64 < extents; word++) {
        for (uint64_t left = bits[word]; left; left &= left - 1) {
            uint64_t extent = word * 64 + (uint64_t)__builtin_ctzll(left);
            if (extent < extents && of_group[extent] == NO_OWNER)
                of_group[extent] = (uint16_t)node;
        }
    }
}

/* What is left when it keeps extents of this cost, of all that it holds. A part may be what compresses least of it, and
 * a quarter of its segments may be what it gives up. */
static uint64_t room_left(const struct holding *h, uint64_t kept)
{
    uint64_t most = kept > UINT64_MAX / 2 ? UINT64_MAX : kept + kept / 3;
    uint64_t taken = kept < h->cost && most < h->taken ? most : h->taken;
    return taken < h->room ? h->room - taken : 0;
}

/* What any byte of is held stays where it is. -EINVAL: with a node of another group. */
static int keep_held(struct deal *d, const uint16_t *holder, const struct holding *holding)
{
    uint64_t extents = extents_count(d->extents);
    CLEANUP_FREE uint64_t *kept = calloc(d->nodes, sizeof *kept);
    if (!kept)
        return -ENOMEM;
    for (uint64_t extent = 0; holder && extent < extents; extent++) {
        if (holder[extent] == NO_OWNER)
            continue;
        if (holder[extent] < d->first || holder[extent] - d->first >= d->nodes)
            return -EINVAL;
        d->owner[extent] = holder[extent];
        kept[holder[extent] - d->first] += extents_cost(d->extents, extent);
    }
    for (uint32_t i = 0; i < d->nodes; i++)
        d->room[i] = room_left(&holding[d->first + i], kept[i]);
    return 0;
}

static void sum_up(struct deal *d)
{
    uint64_t extents = extents_count(d->extents);
    d->left = d->to_deal = 0;
    for (uint64_t extent = 0; extent < extents; extent++) {
        if (d->owner[extent] != NO_OWNER)
            continue;
        d->left++;
        d->to_deal += extents_cost(d->extents, extent);
    }
}

static int spread_rest(struct deal *d)
{
    sum_up(d);
    if (d->left == 0)
        return 0;
    struct spread *spread;
    int error = spread_create(d->room, d->nodes, d->to_deal / d->left, &spread);
    if (error)
        return error;
    uint64_t extents = extents_count(d->extents);
    for (uint64_t extent = 0; extent < extents; extent++) {
        if (d->owner[extent] != NO_OWNER)
            continue;
        uint32_t node = spread_next(spread, extents_cost(d->extents, extent));
        if (node != SPREAD_NONE)
            d->owner[extent] = (uint16_t)(d->first + node);
    }
    spread_destroy(spread);
    return 0;
}

static int deal_begin(struct deal *d, const struct extents *extents, uint32_t nodes, uint32_t groups, uint32_t group,
                      uint16_t *owner)
{
    *d = (struct deal){.extents = extents, .owner = owner + group * extents_count(extents)};
    while (directory_group_of(d->first, nodes, groups) < group)
        d->first++;
    while (d->first + d->nodes < nodes && directory_group_of(d->first + d->nodes, nodes, groups) == group)
        d->nodes++;
    d->room = calloc(d->nodes, sizeof *d->room);
    return d->room ? 0 : -ENOMEM;
}

static int deal_group(const struct directory_input *in, uint32_t group, uint16_t *owner)
{
    struct deal d;
    const uint16_t *holder = in->holder ? in->holder + group * extents_count(in->extents) : NULL;
    int error = deal_begin(&d, in->extents, in->nodes, in->groups, group, owner);
    if (!error)
        error = keep_held(&d, holder, in->holding);
    if (!error)
        error = spread_rest(&d);
    free(d.room);
    return error;
}

static void fill_records(struct directory_record *record, const struct directory_input *in)
{
    for (uint32_t i = 0; i < in->nodes; i++) {
        memcpy(record[i].id, in->node[i].id, NODE_ID);
        memcpy(record[i].host, in->node[i].host, strlen(in->node[i].host));
        record[i].capacity = in->node[i].capacity;
    }
}

static int fill(void *image, size_t n, const struct directory_input *in)
{
    struct directory_header *header = image;
    struct directory_record *record = (void *)(header + 1);
    uint16_t *owner = (void *)(record + in->nodes);
    uint64_t extents = extents_count(in->extents);
    *header = (struct directory_header){
        .version = DIRECTORY_VERSION,
        .endian = DIRECTORY_ENDIAN,
        .length = n,
        .catalog = *catalog_digest(in->catalog),
        .extents = extents,
        .nodes = in->nodes,
        .groups = in->groups,
    };
    memcpy(header->magic, DIRECTORY_MAGIC, sizeof header->magic);
    fill_records(record, in);
    memset(owner, 0xff, extents * in->groups * sizeof *owner);
    int error = 0;
    for (uint32_t group = 0; !error && group < in->groups; group++)
        error = deal_group(in, group, owner);
    header->digest = directory_digest_of(image);
    header->checksum = directory_checksum_of(image);
    return error;
}

int directory_compute(const struct directory_input *in, struct directory **out)
{
    if (!is_valid(in))
        return -EINVAL;
    uint64_t n = directory_length(extents_count(in->extents), in->nodes, in->groups);
    CLEANUP_FREE void *image = n ? calloc(1, n) : NULL;
    if (!image)
        return -ENOMEM;
    int error = fill(image, n, in);
    if (!error)
        error = directory_from_image(image, n, in->extents, out);
    if (!error)
        (*out)->image = steal_pointer(image);
    return error;
}

static int extend(void *image, const struct extents *extents, const uint64_t *room)
{
    struct directory_header *header = image;
    uint16_t *owner = (void *)((struct directory_record *)(header + 1) + header->nodes);
    int error = 0;
    for (uint32_t group = 0; !error && group < header->groups; group++) {
        struct deal d;
        error = deal_begin(&d, extents, header->nodes, header->groups, group, owner);
        if (!error)
            memcpy(d.room, room + d.first, d.nodes * sizeof *d.room);
        if (!error)
            error = spread_rest(&d);
        free(d.room);
    }
    header->digest = directory_digest_of(image);
    header->checksum = directory_checksum_of(image);
    return error;
}

int directory_extend(const struct directory *d, const struct extents *extents, const uint64_t *room,
                     struct directory **out)
{
    size_t n = d->header->length;
    CLEANUP_FREE void *image = malloc(n);
    if (!image)
        return -ENOMEM;
    memcpy(image, d->header, n);
    int error = extend(image, extents, room);
    if (!error)
        error = directory_from_image(image, n, extents, out);
    if (!error)
        (*out)->image = steal_pointer(image);
    return error;
}

/* ---- looking ---- */

const struct digest *directory_digest(const struct directory *d)
{
    return &d->header->digest;
}

uint32_t directory_nodes(const struct directory *d)
{
    return d->header->nodes;
}

uint32_t directory_groups(const struct directory *d)
{
    return d->header->groups;
}

uint32_t directory_group(const struct directory *d, uint32_t node)
{
    return directory_group_of(node, d->header->nodes, d->header->groups);
}

const struct world_node *directory_node(const struct directory *d, uint32_t node)
{
    return &d->node[node];
}

uint32_t directory_owner(const struct directory *d, uint32_t group, uint64_t extent)
{
    return d->owner[group * d->header->extents + extent];
}

uint64_t directory_owned(const struct directory *d, uint32_t node, uint64_t *extents)
{
    if (extents)
        *extents = d->owned[node].extents;
    return d->owned[node].bytes;
}

uint64_t directory_unowned(const struct directory *d)
{
    return d->unowned;
}
