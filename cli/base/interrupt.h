/* Catches signals that end a command, if it must clean up first. */
#ifndef CLI_BASE_INTERRUPT_H
#define CLI_BASE_INTERRUPT_H

#include <signal.h>

extern volatile sig_atomic_t interrupted; /* the last one that arrived; 0: none */

/* From here on the signal sets it, and interrupts system calls. An ignored signal (a hang-up under nohup) stays
 * ignored. */
void interrupt_catch(int signal);

#endif
