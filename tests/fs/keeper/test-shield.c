/* fs/keeper/shield.h: which process is protected from the OOM killer. "Our keeper" is here this program. Only a process
 * with CAP_SYS_RESOURCE may lower a score below the one that it began with, so this test begins with a higher one. */
#include "fs/keeper/shield.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BEGIN = 300, PROTECTED = 100 };

static int score_of(pid_t pid)
{
    char path[64];
    int score = -1;
    snprintf(path, sizeof path, "/proc/%d/oom_score_adj", (int)pid);
    FILE *f = fopen(path, "re");
    if (!f || fscanf(f, "%d", &score) != 1)
        bail_out("read %s: %s", path, strerror(errno));
    fclose(f);
    return score;
}

/* A keeper waits for a byte, and then executes another program, which waits for the end of its input. */
struct keeper {
    struct process process;
    int go, gone; /* gone: hangs up when the other program runs */
};

static struct keeper keeper_start(void)
{
    int in[2], out[2];
    char byte;
    struct keeper k;
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
        bail_out("make pipes: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        close(in[1]);
        if (read(in[0], &byte, 1) != 1 || dup2(in[0], STDIN_FILENO) < 0)
            _exit(0);
        execlp("cat", "cat", NULL);
        _exit(1);
    }
    close(in[0]);
    close(out[1]);
    if (child < 0 || process_watch(child, &k.process))
        bail_out("start a process");
    k.go = in[1];
    k.gone = out[0];
    return k;
}

static void keeper_execute(struct keeper *k)
{
    char byte = 0;
    if (write(k->go, &byte, 1) != 1 || read(k->gone, &byte, 1) != 0)
        bail_out("execute another program");
}

static void keeper_end(struct keeper *k)
{
    close(k->go);
    close(k->gone);
    process_kill(&k->process);
    waitpid(k->process.id, NULL, 0);
}

static void test_one(struct shield *s)
{
    struct keeper first = keeper_start(), second = keeper_start(), third = keeper_start();
    is_int(shield_give(s, &first.process, getuid() + 1), -ESRCH, "a process of another user is not protected");
    is_int(score_of(first.process.id), BEGIN, "it keeps its score");
    is_int(shield_give(s, &first.process, getuid()), 0, "the keeper is protected");
    is_int(score_of(first.process.id), PROTECTED, "which shows in its score");
    shield_check(s);
    is_int(score_of(first.process.id), PROTECTED, "as long as it executes our program");
    keeper_execute(&third);
    is_int(shield_give(s, &third.process, getuid()), -EPERM, "a process with another program is not protected");
    is_int(score_of(third.process.id), BEGIN, "it keeps its score");
    is_int(score_of(first.process.id), PROTECTED, "and the keeper its protection");
    is_int(shield_give(s, &second.process, getuid()), 0, "the keeper that follows is protected");
    is_int(score_of(first.process.id), BEGIN, "the former one is not any more");
    keeper_execute(&second);
    shield_check(s);
    is_int(score_of(second.process.id), BEGIN, "a keeper that executes another program loses the protection");
    keeper_end(&first);
    process_forget(&first.process);
    keeper_end(&second);
    is_int(shield_give(s, &second.process, getuid()), -ESRCH, "a dead process is not protected");
    process_forget(&second.process);
    keeper_end(&third);
    process_forget(&third.process);
}

int main(void)
{
    struct shield s;
    if (geteuid() != 0)
        plan_skip_all("only root may protect a process");
    FILE *own = fopen("/proc/self/oom_score_adj", "we");
    if (!own || fprintf(own, "%d", BEGIN) < 0 || fclose(own))
        bail_out("raise the score: %s", strerror(errno));
    shield_init(&s);
    struct keeper lone = keeper_start();
    is_int(shield_give(&s, &lone.process, getuid()), -EPERM, "without a dealfs-keeper nobody is protected");
    keeper_end(&lone);
    process_forget(&lone.process);
    s.given = "100";
    s.program = open("/proc/self/exe", O_PATH | O_CLOEXEC);
    test_one(&s);
    close(s.program);
    return done_testing();
}
