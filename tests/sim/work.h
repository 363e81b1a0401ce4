/* The loaders and jobs of a run, and the checks of bytes, lists, times, and released resources. */
#ifndef TESTS_SIM_WORK_H
#define TESTS_SIM_WORK_H

void work_begin(void);
void work_end(void);        /* nothing new is begun; returns when all that was has ended, each within its bound */
void work_check_idle(void); /* rooms, parked reads and loads are given back */

#endif
