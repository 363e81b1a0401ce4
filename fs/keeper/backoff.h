/* When the next server starts after one has died, and what it does not use.
 *
 *     deaths within a minute     1  2      3      4      5      6      7      8 and more
 *     pause before the next      none      0.1 s  0.2 s  0.4 s  0.8 s  1.6 s  3.2 s, then 5 s
 *     the next one is without              the tiers     the tiers and the peers
 *
 * After a server that hung (watchdog.h), the next one is one level lower. A server without tiers or peers is replaced
 * by one with all of them after a minute; after a hang, after ten minutes. For tests, DEALFS_MINUTE=SECONDS shortens
 * the minute, and so the longest pause; with 0, deaths are forgotten at once. */
#ifndef FS_KEEPER_BACKOFF_H
#define FS_KEEPER_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

struct handover;

uint64_t backoff_minute(void); /* nanoseconds */
/* Call it when a death was added to the endings: chooses the level of the next server, and returns the pause before
 * it. */
uint64_t backoff_died(struct handover *handover);
/* The running server is on a lower level, and has lived long enough. */
bool backoff_is_over(const struct handover *handover);

#endif
