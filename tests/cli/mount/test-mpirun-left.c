/* What Open MPI has left, in a mount namespace with an empty /tmp and /dev/shm: those of the machine belong to running
 * jobs. */
#include "cli/base/place.h"
#include "cli/mount/mpirun-left.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "tests/lib/tap.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GONE "999999999" /* no process has this number */

static bool hide_machine(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", "/tmp", "tmpfs", 0, NULL) == 0 && mount("tmpfs", "/dev/shm", "tmpfs", 0, NULL) == 0;
}

static void make_old(const char *path)
{
    const struct timespec hour[2] = {{.tv_sec = time(NULL) - 3600}, {.tv_sec = time(NULL) - 3600}};
    if (utimensat(AT_FDCWD, path, hour, AT_SYMLINK_NOFOLLOW) < 0)
        bail_out("utimensat %s", path);
}

static void make_session(const char *folder, const char *name, bool old)
{
    CLEANUP_STR struct str path = STR_INIT;
    str_addf(&path, "%s/%s/0", folder, name);
    if (dir_make(path.data, 0700))
        bail_out("make %s", path.data);
    path.data[path.length - 2] = '\0';
    if (old)
        make_old(path.data);
}

static void make_segment(const char *path, bool old)
{
    if (file_write_atomic(AT_FDCWD, path, "x", 1, 0600))
        bail_out("make %s", path);
    if (old)
        make_old(path);
}

static bool is_there(const char *folder, const char *name)
{
    CLEANUP_STR struct str path = STR_INIT;
    str_addf(&path, "%s/%s", folder, name);
    return access(path.data, F_OK) == 0;
}

static int clean(bool dry_run)
{
    CLEANUP_STR struct str said = STR_INIT;
    struct clean c = {.dry_run = dry_run, .said = &said};
    mpirun_left_clean(&c);
    is_int(c.failed, 0, "nothing fails");
    return c.removed;
}

static void test_sessions(const char *temporary)
{
    char folder[512], ours[32];
    snprintf(folder, sizeof folder, "%s/ompi.%s.%u", temporary, place_host(), (unsigned)geteuid());
    snprintf(ours, sizeof ours, "pid.%d", (int)getpid());
    make_session(folder, "pid." GONE, true);
    make_session(folder, ours, true);
    make_session(folder, "pid.x", true);
    make_session(folder, "jf.17", true);
    is_int(clean(true), 1, "%s: a dry run finds one session", temporary);
    ok(is_there(folder, "pid." GONE), "and does not remove it");
    is_int(clean(false), 1, "one session is removed");
    ok(!is_there(folder, "pid." GONE), "that of a process that is gone");
    ok(is_there(folder, ours), "that of a process that runs stays");
    ok(is_there(folder, "pid.x") && is_there(folder, "jf.17"), "as do those that do not show their process");
    make_session(folder, "pid." GONE, false);
    is_int(clean(false), 0, "a new one stays for a while");
    dir_remove_tree(AT_FDCWD, folder);
    make_session(folder, "pid." GONE, true);
    is_int(clean(false), 1, "the last session is removed");
    ok(access(folder, F_OK) < 0, "and so is the folder");
}

/* Those of Open MPI 5.0 lie in the temporary directory itself. */
static void test_sessions_of_prrte(const char *temporary)
{
    static const char *const of[] = {"prterun", "prted"};
    char gone[512], ours[512], others[512];
    for (int i = 0; i < 2; i++) {
        snprintf(gone, sizeof gone, "%s.%s." GONE ".%u", of[i], place_host(), (unsigned)geteuid());
        snprintf(ours, sizeof ours, "%s.%s.%d.%u", of[i], place_host(), (int)getpid(), (unsigned)geteuid());
        snprintf(others, sizeof others, "%s.elsewhere." GONE ".%u", of[i], (unsigned)geteuid());
        make_session(temporary, gone, true);
        make_session(temporary, ours, true);
        make_session(temporary, others, true);
        make_session(temporary, "pid." GONE, true);
        is_int(clean(false), 1, "%s: one session is removed", of[i]);
        ok(!is_there(temporary, gone), "that of a process that is gone");
        ok(is_there(temporary, ours), "that of a process that runs stays");
        ok(is_there(temporary, others), "that of another host stays");
        ok(is_there(temporary, "pid." GONE), "what is only called like one of 4.1 stays");
    }
}

/* A process that has mapped the file, and does not have it open. */
static pid_t map_in_child(const char *path)
{
    int ready[2], fd = open(path, O_RDONLY | O_CLOEXEC);
    char byte;
    if (fd < 0 || pipe2(ready, O_CLOEXEC) < 0)
        bail_out("open %s", path);
    pid_t child = fork();
    if (child == 0) {
        void *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
        close(fd);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (map != MAP_FAILED && write(ready[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    close(fd);
    close(ready[1]);
    if (child < 0 || read(ready[0], &byte, 1) != 1)
        bail_out("map %s", path);
    close(ready[0]);
    return child;
}

static void test_segments(void)
{
    static const char at[] = "/dev/shm";
    make_segment("/dev/shm/vader_segment.left", true);
    make_segment("/dev/shm/sm_segment.left", true);
    make_segment("/dev/shm/vader_segment.new", false);
    make_segment("/dev/shm/vader_segment.used", true);
    make_segment("/dev/shm/another", true);
    pid_t user = map_in_child("/dev/shm/vader_segment.used");
    is_int(clean(false), 2, "two segments are removed");
    ok(!is_there(at, "vader_segment.left") && !is_there(at, "sm_segment.left"), "those that nobody has mapped");
    ok(is_there(at, "vader_segment.used") && is_there(at, "vader_segment.new") && is_there(at, "another"),
       "one in use, a new one and other files stay");
    kill(user, SIGKILL);
    waitpid(user, NULL, 0);
}

int main(void)
{
    if (!hide_machine())
        plan_skip_all("no mount namespace");
    unsetenv("TMPDIR");
    test_sessions("/tmp");
    test_sessions_of_prrte("/tmp");
    dir_make("/tmp/theirs", 0700);
    setenv("TMPDIR", "/tmp/theirs", 1);
    test_sessions("/tmp/theirs");
    test_segments();
    return done_testing();
}
