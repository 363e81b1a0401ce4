/* Implements interrupt.h. */
#include "cli/base/interrupt.h"

#include <stddef.h>

volatile sig_atomic_t interrupted;

static void interrupt_note(int signal)
{
    interrupted = signal;
}

void interrupt_catch_list(const int *signals)
{
    struct sigaction before, ours = {.sa_handler = interrupt_note};
    for (; *signals; signals++)
        if (sigaction(*signals, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(*signals, &ours, NULL);
}
