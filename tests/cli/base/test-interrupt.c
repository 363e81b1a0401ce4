/* Signals that a command catches, and one that its starter has set to be ignored. */
#include "cli/base/interrupt.h"
#include "tests/lib/tap.h"

#include <stddef.h>

int main(void)
{
    struct sigaction now;
    signal(SIGHUP, SIG_IGN); /* as under nohup */
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    interrupt_catch(SIGHUP, SIGTERM);
    raise(SIGHUP);
    is_int(interrupted, 0, "a signal that was ignored stays ignored");
    raise(SIGTERM);
    is_int(interrupted, SIGTERM, "another one is noted");
    ok(sigaction(SIGTERM, NULL, &now) == 0 && !(now.sa_flags & SA_RESTART), "and interrupts system calls");
    ok(sigaction(SIGINT, NULL, &now) == 0 && now.sa_handler == SIG_DFL, "signals that are not listed are not caught");
    return done_testing();
}
