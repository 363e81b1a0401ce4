/* Which program the keeper chooses when an upgrade is requested during a trial. */
#include "fs/keeper/program.h"

#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct handover *h;
static struct program p;

static void install(const char *name)
{
    if (unlink(p.path) && errno != ENOENT)
        bail_out("unlink %s", p.path);
    if (link(test_path("%s", name), p.path))
        bail_out("link %s: %s", name, strerror(errno));
}

static bool is_on_trial(const char *name)
{
    struct stat trial, file;
    return handover_has(FD_TRIAL) && fstat(FD_TRIAL, &trial) == 0 && stat(test_path("%s", name), &file) == 0 &&
           trial.st_ino == file.st_ino;
}

static bool is_replaced(void)
{
    atomic_store(&h->program, PROGRAM_ASKED);
    return program_begin(&p, h);
}

static void begin(void)
{
    static const char *const names[] = {"first", "second", "third"};
    for (int i = 0; i < 3; i++)
        if (file_write_atomic(AT_FDCWD, test_path("%s", names[i]), "", 0, 0755))
            bail_out("make %s", names[i]);
    if (handover_reserve() || handover_open(true, &h))
        bail_out("make the shared memory");
    snprintf(p.path, sizeof p.path, "%s", test_path("dealfs-server"));
    int fd = open(test_path("first"), O_PATH | O_CLOEXEC);
    if (fd < 0 || dup2(fd, FD_PROGRAM) < 0)
        bail_out("open the first program");
}

static void test_requests(void)
{
    install("second");
    ok(is_replaced() && is_on_trial("second"), "another program is on trial");
    ok(!is_replaced() && is_on_trial("second"), "a second request for it changes nothing");
    is_int(atomic_load(&h->program), PROGRAM_TRIAL, "and the trial continues");
    install("third");
    ok(is_replaced() && is_on_trial("third"), "a request for another one ends that trial, and begins another");
    install("first");
    ok(is_replaced(), "a request for the program before the trial ends it, too");
    ok(!handover_has(FD_TRIAL) && atomic_load(&h->program) == PROGRAM_INSTALLED, "and that program runs");
    ok(!is_replaced(), "a request for the running program changes nothing");
}

static void test_end(void)
{
    install("second");
    ok(is_replaced(), "a trial");
    atomic_store(&h->program, PROGRAM_ASKED);
    atomic_store(&h->started, clock_now());
    p.trial = 0;
    ok(!program_look(&p, h, true, 0) && !handover_has(FD_TRIAL), "it ends well");
    is_int(atomic_load(&h->program), PROGRAM_ASKED, "an upgrade that was requested meanwhile stays requested");
}

int main(void)
{
    begin();
    test_requests();
    test_end();
    return done_testing();
}
