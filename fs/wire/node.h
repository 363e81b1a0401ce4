/* A node as the others know it, and what it brings into a world. */
#ifndef FS_WIRE_NODE_H
#define FS_WIRE_NODE_H

#include <stdatomic.h>
#include <stdint.h>

enum { NODES_MOST = 16384, GROUPS_MOST = 64, NODE_ID = 33, NODE_HOST = 65 };
#define NO_OWNER 0xffffu

struct world_node {
    char id[NODE_ID];     /* 32 hexadecimal digits; identifies the cached data */
    char host[NODE_HOST]; /* for people */
    uint64_t capacity;    /* bytes of both tiers */
};

/* The world and layout that a node took last: the first bytes of their names. Outlives servers; 0: none. */
struct world_mark {
    _Atomic uint64_t world, layout;
};

/* What a node brings: it has cached extents of this cost, possibly incomplete. When complete, they take `taken` of its
 * room in the form in which its tiers store them. */
struct holding {
    uint64_t room; /* the cost that fits into its empty tiers */
    uint64_t cost, taken;
};

/* The group of a node: with G groups, node n is in group n·G/nodes. */
static inline uint32_t node_group(uint32_t node, uint32_t nodes, uint32_t groups)
{
    return (uint32_t)((uint64_t)node * groups / nodes);
}
/* The first node of a group; a group's nodes are consecutive. */
static inline uint32_t node_first(uint32_t group, uint32_t nodes, uint32_t groups)
{
    return (uint32_t)(((uint64_t)group * nodes + groups - 1) / groups);
}

/* A node's claim to an extent at a join: two bits each, beginning with the lowest of the first word. */
enum claim {
    CLAIM_NONE,
    CLAIM_PART,  /* has cached some bytes */
    CLAIM_WHOLE, /* has cached all bytes */
    CLAIM_OWNED, /* and owned it in the last layout that it knows */
};
enum { CLAIMS_A_WORD = 32 };
static inline uint64_t claims_words(uint64_t extents)
{
    return (extents + CLAIMS_A_WORD - 1) / CLAIMS_A_WORD;
}

/* Which node keeps what is cached: in each group the highest claim wins, with equal claims the lowest number. */
struct claims_merged {
    uint64_t extents;
    uint16_t *holder; /* groups times `extents` elements; NO_OWNER at first */
    uint64_t *best;   /* the holders' claims: groups times claims_words elements; zeros at first */
};
/* Call it for the nodes in ascending order. */
void claims_merge(struct claims_merged *merged, uint32_t nodes, uint32_t groups, uint32_t node, const uint64_t *claims);

#endif
