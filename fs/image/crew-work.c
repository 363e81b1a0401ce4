/* What a process of a crew does: see crew.h. */
#include "fs/base/cleanup.h"
#include "fs/base/process.h"
#include "fs/image/crew-inside.h"
#include "fs/image/crew.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>

/* A picture of the most pixels, and its coefficients, take about 2 GiB. */
static const rlim_t MEMORY_MOST = (rlim_t)3 << 30;

static void fault_at(uint64_t length)
{
    const char *fault = getenv("DEALFS_IMAGE_FAULT");

    if (!fault || strtoull(fault + 6 * (strncmp(fault, "crash=", 6) == 0) + 5 * (strncmp(fault, "hang=", 5) == 0), NULL,
                           10) != length)
        return;
    if (*fault == 'h')
        dprintf(STDERR_FILENO, "it hangs, as it is told to\n");
    while (*fault == 'h')
        pause();
    raise(SIGKILL);
}

static int work_once(struct str *file, struct str *out)
{
    struct crew_question question;
    struct crew_answer answer = {.verdict = IMAGE_NO_MEMORY};

    str_clear(file);
    str_clear(out);
    int error = crew_receive(STDIN_FILENO, &question, sizeof question, -1);
    char *room = error ? NULL : str_reserve(file, question.length);
    if (!error && !room)
        error = -ENOMEM;
    if (!error)
        error = crew_receive(STDIN_FILENO, room, question.length, -1);
    if (error)
        return error;
    fault_at(question.length);
    answer.verdict = image_shrink(room, question.length, &question.wanted, out, &answer.reason);
    answer.length = out->length;
    error = crew_send(STDIN_FILENO, &answer, sizeof answer);
    return error ? error : crew_send(STDIN_FILENO, out->data, out->length);
}

static pid_t parent;

static void end_with_parent(int signal)
{
    (void)signal;
    if (getppid() != parent)
        _exit(1);
}

/* Also one whose codec goes round for ever ends when nobody waits for it any more. Signals to all of a job, or of a
 * terminal, are its parent's to heed. */
static void watch_parent(void)
{
    static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    const struct sigaction action = {.sa_handler = end_with_parent, .sa_flags = SA_RESTART};
    const struct itimerval second = {{1, 0}, {1, 0}};

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        signal(ends[i], SIG_IGN);
    parent = getppid();
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &second, NULL);
}

static int limit(int resource, rlim_t most)
{
    struct rlimit now;

    if (getrlimit(resource, &now) < 0)
        return -errno;
    now.rlim_max = now.rlim_max < most ? now.rlim_max : most;
    now.rlim_cur = now.rlim_cur < most ? now.rlim_cur : most;
    return setrlimit(resource, &now) < 0 ? -errno : 0;
}

/* A file may take over the library that decodes it. Then it has little: not the rights of root, nor a way to win any,
 * no terminal to type into, and no more memory than the limits of a picture allow. Becoming another user
 * comes first: it makes a process one that others may look at. */
static int lay_down_rights(char **user)
{
    int error = 0;

    if (user[0] && user[1])
        error = process_become((uid_t)strtoul(user[0], NULL, 10), (gid_t)strtoul(user[1], NULL, 10));
    setsid();
    if (!error)
        error = limit(RLIMIT_CORE, 0);
#ifndef DEALFS_CHECKS /* a sanitizer takes terabytes of addresses */
    if (!error)
        error = limit(RLIMIT_AS, MEMORY_MOST);
#endif
    if (!error && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0))
        error = -errno;
    return error;
}

int crew_work(char **user)
{
    CLEANUP_STR struct str file = STR_INIT, out = STR_INIT;
    int error = lay_down_rights(user);

    watch_parent();
    while (!error)
        error = work_once(&file, &out);
    return error == -EPIPE ? 0 : 1;
}
