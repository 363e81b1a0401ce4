/* A node as the others know it, and what it brings into a world. */
#ifndef FS_WIRE_NODE_H
#define FS_WIRE_NODE_H

#include <stdatomic.h>
#include <stdint.h>

enum { NODES_MOST = 16384, NODE_ID = 33, NODE_HOST = 65 };
#define NO_OWNER 0xffffu

struct world_node {
    char id[NODE_ID];     /* 32 hexadecimal digits: whose holdings these are */
    char host[NODE_HOST]; /* for people */
    uint64_t capacity;    /* bytes of both tiers */
};

/* Which world and which layout a node took last: the first bytes of their names. It outlives servers; 0: none. */
struct world_mark {
    _Atomic uint64_t world, layout;
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

/* What a node claims of an extent at a join, two bits for each, from the lowest of the first word on. */
enum claim {
    CLAIM_NONE,
    CLAIM_PART,  /* it holds some bytes */
    CLAIM_WHOLE, /* it holds all */
    CLAIM_OWNED, /* and was the owner in the last layout that it knows */
};
enum { CLAIMS_A_WORD = 32 };
static inline uint64_t claims_words(uint64_t extents)
{
    return (extents + CLAIMS_A_WORD - 1) / CLAIMS_A_WORD;
}

/* Who keeps what is held: in each group the highest claim wins, of equal ones that of the lowest number. */
struct claims_merged {
    uint64_t extents;
    uint16_t *holder; /* groups times `extents`; NO_OWNER everywhere at first */
    uint64_t *best;   /* groups times claims_words, of the holders; zeros at first */
};
/* To be called for the nodes in their order. */
void claims_merge(struct claims_merged *merged, uint32_t nodes, uint32_t groups, uint32_t node, const uint64_t *claims);

#endif
