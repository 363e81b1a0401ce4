/* What a process of a crew does: see crew.h. */
#include "fs/base/cleanup.h"
#include "fs/image/crew-inside.h"
#include "fs/image/crew.h"

#include <signal.h>
#include <string.h>
#include <sys/time.h>

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

int crew_work(void)
{
    CLEANUP_STR struct str file = STR_INIT, out = STR_INIT;
    int error = 0;

    watch_parent();
    while (!error)
        error = work_once(&file, &out);
    return error == -EPIPE ? 0 : 1;
}
