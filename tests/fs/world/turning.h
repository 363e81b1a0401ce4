/* What tests of turns share: two nodes whose tiers hold a part of the data set as it is, and all of it compressed. */
#ifndef TESTS_FS_WORLD_TURNING_H
#define TESTS_FS_WORLD_TURNING_H

#include "tests/fs/world/fake.h"

#define MIB (1ull << 20)
#define LONG 60000000000ull /* a timeout that no test waits for */

enum { FILES = 60, NODES = 2 };

extern struct dataset turning_set;
extern const uint64_t turning_ram[NODES];

void turning_set_up(void);
void turning_begin(struct fake *f); /* a world of both */
void turning_restart(struct fake *f, uint32_t node);

struct digest turning_layout(struct fake *f, uint32_t node);
bool turning_has(struct fake *f, uint32_t node, const struct digest *layout);
uint64_t turning_unowned(struct fake *f, uint32_t node); /* extents */
bool turning_reads(struct fake *f, uint32_t node);       /* every file: are all bytes right? */

void turning_stage(struct fake *f, uint64_t round); /* to its end */
bool turning_staged(struct fake *f, uint32_t node, uint64_t round);

/* A turn up to what would be the layout; false: the servers do not agree. */
bool turning_compute(struct fake *f, const struct turn *turn, struct digest *layout);

/* The turn after a round of staging, which gives room that was found to what has no owner. */
struct turn turning_for_room(uint64_t round);
bool turning_deal(struct fake *f, uint64_t round, struct digest *layout); /* as turning_compute */
void turning_settle(struct fake *f, uint32_t node, uint64_t round, uint64_t k, const struct digest *layout);
void turning_settle_all(struct fake *f, uint64_t round, uint64_t k, const struct digest *layout);
void turning_take(struct fake *f, uint64_t round, const struct digest *layout); /* as the next turn */
uint64_t turning_settled(struct fake *f, uint32_t node);                        /* the last round that was */
int turning_deal_all(struct fake *f, uint64_t round); /* until nothing changes any more; how often it turned */

#endif
