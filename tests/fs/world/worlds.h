/* For tests of extents and layouts: catalogs made of nothing but sizes, and worlds over them. Every function ends
 * the program when the test cannot go on. */
#ifndef TESTS_FS_WORLD_WORLDS_H
#define TESTS_FS_WORLD_WORLDS_H

#include "fs/world/layout.h"

/* A dataset of `files` files in one directory, in this order. */
struct sizes {
    struct catalog *catalog;
    struct extents *extents;
    void *image;
};
void sizes_begin(struct sizes *s, const uint64_t *size, uint32_t files);
void sizes_end(struct sizes *s);

/* Nodes with room of their own for what each holds. Their ids are made of `name`, so that a node is known again in
 * another world, where it may have another number. */
enum { WORLD_NODES = 64 };
struct dealt_world {
    const struct sizes *sizes;
    uint32_t nodes, groups;
    struct world_node node[WORLD_NODES];
    uint64_t taken[WORLD_NODES]; /* of what it holds; 0: as much as it costs */
    uint64_t *holdings[WORLD_NODES];
};
void world_begin(struct dealt_world *w, const struct sizes *sizes, uint32_t groups);
uint32_t world_add(struct dealt_world *w, uint32_t name, uint64_t capacity); /* its number */
void world_hold(struct dealt_world *w, uint32_t node, uint64_t extent);
bool world_holds(const struct dealt_world *w, uint32_t node, uint64_t extent);
/* How many extents it owns, in its group. */
uint64_t world_extents(const struct layout *layout, const struct dealt_world *w, uint32_t node);
int world_try(const struct dealt_world *w, struct layout **layout);
struct layout *world_deal(const struct dealt_world *w);
void world_end(struct dealt_world *w);

uint64_t random_next(uint64_t *state);
uint64_t random_below(uint64_t *state, uint64_t n);

#endif
