/* Catches signals that end a command, if it must clean up first. */
#ifndef CLI_BASE_INTERRUPT_H
#define CLI_BASE_INTERRUPT_H

#include <signal.h>

extern volatile sig_atomic_t interrupted; /* the last one that arrived; 0: none */

/* From here on these signals set it, and interrupt system calls: interrupt_catch(SIGINT, SIGTERM). An ignored signal (a
 * hang-up under nohup) stays ignored. */
#define interrupt_catch(...) interrupt_catch_list((const int[]){__VA_ARGS__, 0})
void interrupt_catch_list(const int *signals);

#endif
