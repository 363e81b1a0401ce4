/* For tests of extents and directories: catalogs made of nothing but sizes, and worlds over them. Every function ends
 * the program when the test cannot go on. */
#ifndef TESTS_FS_WORLD_WORLDS_H
#define TESTS_FS_WORLD_WORLDS_H

#include "fs/world/directory.h"

/* A dataset of so many files in one directory, in this order. */
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
struct world {
    const struct sizes *sizes;
    uint32_t nodes, groups;
    struct world_node node[WORLD_NODES];
    uint64_t taken[WORLD_NODES]; /* of what it holds; 0: as much as it costs */
    uint64_t *holdings[WORLD_NODES];
};
void world_begin(struct world *w, const struct sizes *sizes, uint32_t groups);
uint32_t world_add(struct world *w, uint32_t name, uint64_t capacity); /* its number */
void world_hold(struct world *w, uint32_t node, uint64_t extent);
bool world_holds(const struct world *w, uint32_t node, uint64_t extent);
int world_try(const struct world *w, struct directory **directory);
struct directory *world_deal(const struct world *w);
void world_end(struct world *w);

uint64_t random_next(uint64_t *state);
uint64_t random_below(uint64_t *state, uint64_t n);

#endif
