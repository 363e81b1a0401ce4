/* Computes and queries the layout. layout-file.c has its file, spread.c the rule that chooses owners.
 *
 * The layout is computed in place, in the image of its file. Per group: extents that nodes have cached are assigned to
 * these nodes, in the order of node numbers; then the other extents are spread. */
#include "fs/world/layout-inside.h"

#include "fs/base/cleanup.h"
#include "fs/plan/exchange.h"
#include "fs/world/spread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- computing --- */

/* The work for one group. */
struct layout_deal {
    const struct extents *extents;
    uint16_t *owner;
    struct spread_node *node; /* nodes of the group */
    uint32_t first, nodes;
};

static bool is_valid(const struct layout_input *in)
{
    if (in->nodes == 0 || in->nodes > NODES_MOST || in->groups == 0 || in->groups > in->nodes)
        return false;
    for (uint32_t i = 0; i < in->nodes; i++)
        if (!layout_is_id(in->member[i].node.id) || !memchr(in->member[i].node.host, '\0', NODE_HOST))
            return false;
    return true;
}

/* Room of a node that keeps extents of cost `kept`. If it drops the rest, `kept` may be what compresses least, and up
 * to a quarter of each segment may stay dead: so kept extents may take up to 4/3 of their cost. */
static uint64_t room_left(const struct holding *h, uint64_t kept)
{
    uint64_t most = kept > UINT64_MAX / 2 ? UINT64_MAX : kept + kept / 3;
    uint64_t taken = kept < h->cost && most < h->taken ? most : h->taken;
    return taken < h->room ? h->room - taken : 0;
}

/* An extent of which a node has cached any byte stays with that node. -EINVAL: the holder is in another group. */
static int keep_held(struct layout_deal *d, const uint16_t *holder, const struct message_member *member)
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
        d->node[i].room = room_left(&member[d->first + i].holding, kept[i]);
    return 0;
}

static int spread_rest(struct layout_deal *d)
{
    uint64_t extents = extents_count(d->extents), left = 0, cost = 0;
    for (uint64_t extent = 0; extent < extents; extent++) {
        if (d->owner[extent] != NO_OWNER) {
            d->node[d->owner[extent] - d->first].count++;
            continue;
        }
        left++;
        cost += extents_cost(d->extents, extent);
    }
    if (!left)
        return 0;
    struct spread *spread;
    int error = spread_create(d->node, d->nodes, left, cost / left, &spread);
    if (error)
        return error;
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

static uint16_t *image_owners(void *image, uint32_t group)
{
    const struct layout_header *h = image;
    uint16_t *owner = (void *)((struct layout_record *)(h + 1) + h->nodes);
    return owner + group * h->extents;
}

static int deal_begin(struct layout_deal *d, const struct extents *extents, void *image, uint32_t group)
{
    const struct layout_header *h = image;
    *d = (struct layout_deal){
        .extents = extents,
        .owner = image_owners(image, group),
        .first = node_first(group, h->nodes, h->groups),
    };
    d->nodes = node_first(group + 1, h->nodes, h->groups) - d->first;
    d->node = calloc(d->nodes, sizeof *d->node);
    return d->node ? 0 : -ENOMEM;
}

/* `room`: per node. NULL: the room that cached extents leave, from `in`. */
static int deal_group(void *image, const struct extents *extents, uint32_t group, const struct layout_input *in,
                      const uint64_t *room)
{
    struct layout_deal d;
    int error = deal_begin(&d, extents, image, group);
    if (error)
        return error;
    for (uint32_t i = 0; room && i < d.nodes; i++)
        d.node[i].room = room[d.first + i];
    if (!room)
        error = keep_held(&d, in->holder ? in->holder + group * extents_count(extents) : NULL, in->member);
    if (!error)
        error = spread_rest(&d);
    free(d.node);
    return error;
}

static void fill_records(struct layout_record *record, const struct layout_input *in)
{
    for (uint32_t i = 0; i < in->nodes; i++) {
        const struct world_node *node = &in->member[i].node;
        memcpy(record[i].id, node->id, NODE_ID);
        memcpy(record[i].host, node->host, strlen(node->host));
        record[i].capacity = node->capacity;
    }
}

/* Fill in all but the hashes. No extent has an owner yet. */
static void fill_image(void *image, size_t n, const struct layout_input *in)
{
    struct layout_header *header = image;
    struct layout_record *record = (void *)(header + 1);
    uint64_t extents = extents_count(in->extents);
    *header = (struct layout_header){
        .version = LAYOUT_VERSION,
        .endian = LAYOUT_ENDIAN,
        .length = n,
        .catalog = *catalog_digest(in->catalog),
        .extents = extents,
        .nodes = in->nodes,
        .groups = in->groups,
    };
    memcpy(header->magic, LAYOUT_MAGIC, sizeof header->magic);
    fill_records(record, in);
    memset(record + in->nodes, 0xff, extents * in->groups * sizeof(uint16_t));
}

/* On success the layout owns the image. */
static int finish_image(void **image, const struct extents *extents, struct layout **out)
{
    struct layout_header *header = *image;
    header->digest = layout_digest_of(header);
    header->checksum = layout_checksum_of(header);
    int error = layout_from_image(header, header->length, extents, out);
    if (!error)
        (*out)->image = steal_pointer(*image);
    return error;
}

int layout_compute(const struct layout_input *in, struct layout **out)
{
    if (!is_valid(in))
        return -EINVAL;
    uint64_t n = layout_length(extents_count(in->extents), in->nodes, in->groups);
    CLEANUP_FREE void *image = n ? calloc(1, n) : NULL;
    if (!image)
        return -ENOMEM;
    fill_image(image, n, in);
    int error = 0;
    for (uint32_t group = 0; !error && group < in->groups; group++)
        error = deal_group(image, in->extents, group, in, NULL);
    return error ? error : finish_image(&image, in->extents, out);
}

static void *layout_copy(const struct layout *l)
{
    void *image = malloc(l->header->length);
    return image ? memcpy(image, l->header, l->header->length) : NULL;
}

int layout_extend(const struct layout *l, const struct extents *extents, const uint64_t *room, struct layout **out)
{
    CLEANUP_FREE void *image = layout_copy(l);
    if (!image)
        return -ENOMEM;
    int error = 0;
    for (uint32_t group = 0; !error && group < l->header->groups; group++)
        error = deal_group(image, extents, group, NULL, room);
    return error ? error : finish_image(&image, extents, out);
}

static uint64_t cost_of_extent(const void *extents, uint64_t extent)
{
    return extents_cost(extents, extent);
}

int layout_exchange(const struct layout *l, const struct extents *extents, const struct turn *turn, struct layout **out)
{
    if (turn->cause == TURN_ROOM || !turn_is_sound(turn))
        return -EINVAL;
    CLEANUP_FREE void *image = layout_copy(l);
    if (!image)
        return -ENOMEM;
    const struct layout_header *h = image;
    struct exchange exchange = {
        .extents = h->extents,
        .fraction = turn->fraction,
        .seed = turn->seed,
        .epoch = turn->epoch,
        .cost = cost_of_extent,
        .user = extents,
    };
    int error = 0;
    for (; !error && exchange.group < h->groups; exchange.group++) {
        exchange.first = node_first(exchange.group, h->nodes, h->groups);
        exchange.nodes = node_first(exchange.group + 1, h->nodes, h->groups) - exchange.first;
        error = exchange_run(&exchange, image_owners(image, exchange.group));
    }
    return error ? error : finish_image(&image, extents, out);
}

/* --- queries --- */

const struct digest *layout_digest(const struct layout *l)
{
    return &l->header->digest;
}

bool layout_is(const struct layout *l, const struct digest *digest)
{
    return memcmp(&l->header->digest, digest, sizeof *digest) == 0;
}

uint32_t layout_nodes(const struct layout *l)
{
    return l->header->nodes;
}

uint32_t layout_groups(const struct layout *l)
{
    return l->header->groups;
}

uint32_t layout_group(const struct layout *l, uint32_t node)
{
    return node_group(node, l->header->nodes, l->header->groups);
}

const struct layout_record *layout_node(const struct layout *l, uint32_t node)
{
    return &l->record[node];
}

uint32_t layout_owner(const struct layout *l, uint32_t group, uint64_t extent)
{
    return l->owner[group * l->header->extents + extent];
}

uint64_t layout_owned(const struct layout *l, uint32_t node)
{
    return l->owned[node];
}

uint64_t layout_unowned(const struct layout *l)
{
    return l->unowned;
}
