/* What loaders and jobs do in a run, and what is checked of it: bytes, lists, times, and what is given back. */
#ifndef TESTS_SIM_WORK_H
#define TESTS_SIM_WORK_H

void work_begin(void);
void work_end(void);        /* nothing new is begun; returns when all that was has ended, each within its bound */
void work_check_idle(void); /* rooms, parked reads and loads are given back */

#endif
