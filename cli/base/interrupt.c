/* Implements interrupt.h. */
#include "cli/base/interrupt.h"

#include <stddef.h>

volatile sig_atomic_t interrupted;

static void interrupt_note(int signal)
{
    interrupted = signal;
}

void interrupt_catch(int signal)
{
    struct sigaction before, ours = {.sa_handler = interrupt_note};
    if (sigaction(signal, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(signal, &ours, NULL);
}
