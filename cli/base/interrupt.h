/* Signals that end a command are caught where it has something to take back first. */
#ifndef CLI_BASE_INTERRUPT_H
#define CLI_BASE_INTERRUPT_H

#include <signal.h>

extern volatile sig_atomic_t interrupted; /* the last that came; 0: none */

/* From here on the signal sets it, and interrupts system calls. One that is ignored (a hang-up under nohup) stays
 * so. */
void interrupt_catch(int signal);

#endif
