/* Time in nanoseconds. A deadline is a value of clock_now(). */
#ifndef FS_BASE_CLOCK_H
#define FS_BASE_CLOCK_H

#include <stdint.h>

#define MILLISECOND UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

uint64_t clock_now(void);      /* monotonic */
uint64_t clock_realtime(void); /* since 1970 */

/* A bound of `seconds`, in nanoseconds. A test sets a shorter one, in seconds, in the environment; a program with
 * another user's rights ignores it. */
uint64_t clock_bound(const char *variable, unsigned seconds);

void clock_sleep(uint64_t nanoseconds); /* a signal interrupts it */

#endif
