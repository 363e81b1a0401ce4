/* The directory: which node owns each extent, in one agreed state of the world. Made by every node from the same input
 * by the same rule, so it is the same everywhere, which its digest shows; immutable; kept as a mapped file.
 *
 * With G groups, the nodes of group g are those with number·G/nodes = g; each group owns the whole dataset. */
#ifndef FS_WORLD_DIRECTORY_H
#define FS_WORLD_DIRECTORY_H

#include "fs/base/hash.h"
#include "fs/world/extents.h"

enum { NODES_MOST = 16384, NODE_ID = 33, NODE_HOST = 65 };
#define NO_OWNER 0xffffu

struct world_node {
    char id[NODE_ID];     /* 32 hexadecimal digits: whose holdings these are */
    char host[NODE_HOST]; /* for people */
    uint64_t capacity;    /* bytes of both tiers */
};

struct directory_input {
    const struct catalog *catalog;
    const struct extents *extents;
    uint32_t nodes, groups;
    const struct world_node *node;    /* by number */
    const uint64_t *const *holdings;  /* by number: a bitmap, an extent a bit, set where any byte of it is held */
};

struct directory;

/* What is held stays with its holder, of two holders in a group with the lower number; the rest is spread by bytes over
 * the free capacity, until that is spent. -EINVAL: no nodes, more groups than nodes; -ENOMEM. */
int directory_compute(const struct directory_input *input, struct directory **directory);
int directory_save(const struct directory *d, const char *path); /* atomically */
/* -ENOENT; -EBADMSG: damaged, or of another catalog than this one. */
int directory_open(const char *path, const struct catalog *catalog, struct directory **directory);
void directory_close(struct directory *directory);

const struct digest *directory_digest(const struct directory *d);
uint32_t directory_nodes(const struct directory *d);
uint32_t directory_groups(const struct directory *d);
uint32_t directory_group(const struct directory *d, uint32_t node);
const struct world_node *directory_node(const struct directory *d, uint32_t node);
/* Within a group: the number of the node, or NO_OWNER. O(1), any thread. */
uint32_t directory_owner(const struct directory *d, uint32_t group, uint64_t extent);
uint64_t directory_owned(const struct directory *d, uint32_t node, uint64_t *extents); /* bytes, as they cost raw */

#endif
