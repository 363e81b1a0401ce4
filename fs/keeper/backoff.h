/* When the next server starts after one has died, and what it does without.
 *
 *     deaths within a minute     1  2      3      4      5      6      7      8 and more
 *     pause before the next      none      0.1 s  0.2 s  0.4 s  0.8 s  1.6 s  3.2 s, then 5 s
 *     it does without                      the tiers     the tiers and the peers
 *
 * After one that hung (watchdog.h) the next one does without one thing more than it did. A server that has lived for a
 * minute without tiers or peers, after one that hung for ten, is replaced by one that has all. DEALFS_MINUTE=SECONDS
 * shortens the minute, and with it the longest pause, for tests; with 0 deaths are forgotten at once. */
#ifndef FS_KEEPER_BACKOFF_H
#define FS_KEEPER_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

struct handover;

uint64_t backoff_minute(void); /* nanoseconds */
/* A server's death was added to the endings: chooses the level of the next one, and returns the pause before it. */
uint64_t backoff_died(struct handover *handover);
/* The running server does without something, and has lived long enough. */
bool backoff_is_over(const struct handover *handover);

#endif
