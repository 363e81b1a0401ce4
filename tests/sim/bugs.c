/* Faults of the product that are planted here, by name, to see that they are found: `make sim BUG=NAME`.
 *
 *   save     that a world cannot be saved is ignored
 *   bound    a request for a turn waits without its bound
 *   checksum stored values are not checked
 *   leak     answers are not given back (node.c)
 *   look     the source is not looked at after a read (rewrite.c)
 *   patience peers are waited for longer than peer_timeout (node.c)
 *   sync     files get their names before they are synced (power.c)
 *   feed     what the feeder reads is not marked as such (node.c)
 *   lists    a node does not hear that a sample list was removed
 *   skip     who resumes an epoch loses a sample
 *   catalog  a catalog arrives damaged at nodes that wait for it (net-agree.c)
 *   refuse   a world forms with a node that may not join (net-agree.c) */
#include "fs/catalog/samples.h"
#include "fs/plan/batches.h"
#include "fs/store/value.h"
#include "fs/world/turn-wait.h"
#include "fs/world/world.h"
#include "tests/sim/node.h"

#include <string.h>

bool bug_is_planted(const char *name)
{
    return sim_options && sim_options->bug && !strcmp(sim_options->bug, name);
}

int __real_world_save(const char *state, const struct world *world);
int __wrap_world_save(const char *state, const struct world *world);
int __wrap_world_save(const char *state, const struct world *world)
{
    int error = __real_world_save(state, world);
    return bug_is_planted("save") ? 0 : error;
}

int __real_turn_wait(struct self *self, struct membership *membership, const struct turn *turn,
                     const struct turn_patience *patience, struct turn_record *record, struct str *trouble);
int __wrap_turn_wait(struct self *self, struct membership *membership, const struct turn *turn,
                     const struct turn_patience *patience, struct turn_record *record, struct str *trouble);
int __wrap_turn_wait(struct self *self, struct membership *membership, const struct turn *turn,
                     const struct turn_patience *patience, struct turn_record *record, struct str *trouble)
{
    struct turn_patience endless = *patience;
    endless.deadline = UINT64_MAX;
    return __real_turn_wait(self, membership, turn, bug_is_planted("bound") ? &endless : patience, record, trouble);
}

int __real_value_check(const void *value, size_t n, uint64_t seed, size_t expected_raw);
int __wrap_value_check(const void *value, size_t n, uint64_t seed, size_t expected_raw);
int __wrap_value_check(const void *value, size_t n, uint64_t seed, size_t expected_raw)
{
    return bug_is_planted("checksum") ? value_check_header(value, n, seed, expected_raw)
                                      : __real_value_check(value, n, seed, expected_raw);
}

bool __real_samples_table_wants(struct samples_table *table, const struct samples_record *record);
bool __wrap_samples_table_wants(struct samples_table *table, const struct samples_record *record);
bool __wrap_samples_table_wants(struct samples_table *table, const struct samples_record *record)
{
    bool deaf = bug_is_planted("lists") && record->count == 0;
    return !deaf && __real_samples_table_wants(table, record);
}

int __real_batches_cut(struct batches *b, uint32_t batch, enum plan_tail tail);
int __wrap_batches_cut(struct batches *b, uint32_t batch, enum plan_tail tail);
int __wrap_batches_cut(struct batches *b, uint32_t batch, enum plan_tail tail)
{
    b->skip += bug_is_planted("skip") && b->skip > 0 && b->skip < b->count;
    return __real_batches_cut(b, batch, tail);
}
