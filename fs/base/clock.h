/* Time in nanoseconds. A deadline is a value of clock_now(). */
#ifndef FS_BASE_CLOCK_H
#define FS_BASE_CLOCK_H

#include <stdint.h>

#define MILLISECOND UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

uint64_t clock_now(void);               /* monotonic */
uint64_t clock_realtime(void);          /* since 1970 */
void clock_sleep(uint64_t nanoseconds); /* a signal interrupts it */

#endif
