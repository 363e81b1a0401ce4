/* How long a read may take, by the faults of the run and the timeouts of the product. */
#ifndef TESTS_SIM_BOUND_H
#define TESTS_SIM_BOUND_H

#include "tests/sim/node.h"

/* From now until that time a fault keeps peers from answering. */
void bound_peers(uint64_t until);
void bound_source(uint64_t delay);   /* each call takes this time */
void bound_fed(void);                /* there is a feeder */
void bound_reads(int change);        /* of crowds: READs that now wait, or with a minus, no more */
void bound_messages(uint64_t delay); /* each message takes up to this time */
/* For a READ, or a request without `wait=`, that ends now. The time in which its node had no server, or one that was
 * stopped, is not in it. */
uint64_t bound_of(const struct sim_node *n, const struct sim_request *read);

#endif
