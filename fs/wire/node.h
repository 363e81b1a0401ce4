/* A node as the others know it, and what it brings into a world. */
#ifndef FS_WIRE_NODE_H
#define FS_WIRE_NODE_H

#include <stdint.h>

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

/* The group of a node: of G groups, that of node n is n·G/nodes. */
static inline uint32_t node_group(uint32_t node, uint32_t nodes, uint32_t groups)
{
    return (uint32_t)((uint64_t)node * groups / nodes);
}
/* The first node of a group; those of a group stand in a row. */
static inline uint32_t node_first(uint32_t group, uint32_t nodes, uint32_t groups)
{
    return (uint32_t)(((uint64_t)group * nodes + groups - 1) / groups);
}

/* Note that a node holds some bytes of the extents whose bits are set; call it for the nodes in their order. `holder`
 * is NO_OWNER everywhere at first. */
void holders_note(uint16_t *holder, uint64_t extents, uint32_t nodes, uint32_t groups, uint32_t node,
                  const uint64_t *bits);

#endif
