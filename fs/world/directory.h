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

/* What a node brings along: it holds extents of this cost, of which some bytes may be missing, and these take so much
 * of its room, when they are whole, as they lie in its tiers. */
struct holding {
    uint64_t room; /* the cost that fits into its tiers when they are empty */
    uint64_t cost, taken;
};

struct directory_input {
    const struct catalog *catalog;
    const struct extents *extents;
    uint32_t nodes, groups;
    const struct world_node *node; /* by number */
    const struct holding *holding; /* by number */
    const uint16_t *holder;        /* for each group, of each extent: see directory_note_held; NULL: all NO_OWNER */
};

struct directory;

/* Note that a node holds some bytes of the extents whose bits are set; call it for the nodes in their order. `holder`
 * is NO_OWNER everywhere at first. */
void directory_note_held(uint16_t *holder, uint64_t extents, uint32_t nodes, uint32_t groups, uint32_t node,
                         const uint64_t *bits);

/* What is held stays with its holder, of several in a group with the lowest number; the rest is spread by bytes over
 * the room that is left, until that is spent. -EINVAL: no nodes, more groups than nodes, a holder of another group;
 * -ENOMEM. */
int directory_compute(const struct directory_input *input, struct directory **directory);
/* The same owners, and what had none is spread over the room that is left, by number. */
int directory_extend(const struct directory *d, const struct extents *extents, const uint64_t *room,
                     struct directory **extended);
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
uint64_t directory_unowned(const struct directory *d); /* how often an extent has no owner in a group */

#endif
