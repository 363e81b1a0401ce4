/* One atomic exchange of `handover->keeper` decides which process follows a dead keeper: it changes from the dead
 * keeper's number to the standby's, or to 0 by a server that starts a keeper itself. If that server dies afterwards,
 * the standby takes over. */
#include "fs/keeper/standby.h"

#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/process.h"
#include "fs/base/ready.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CLAIM_TRIES = 50, CLAIM_MS = 10, LOOK_MS = 50 };
static const char shown[] = "dealfs-backup";

static bool exchange_keeper(struct handover *h, pid_t from, pid_t to)
{
    uint32_t expected = (uint32_t)from;
    return atomic_compare_exchange_strong(&h->keeper, &expected, (uint32_t)to);
}

static bool is_alive(pid_t id)
{
    struct process p;
    int error = process_watch(id, &p);
    if (error) /* two keepers are worse than a late one */
        return error != -ESRCH;
    bool alive = !process_is_dead(&p);
    process_forget(&p);
    return alive;
}

/* The keeper is dead. True: this process is the next one. */
static bool follow_keeper(struct handover *h, pid_t keeper)
{
    while (!exchange_keeper(h, keeper, getpid())) {
        if (atomic_load(&h->keeper) != 0)
            return false;
        if (!is_alive((pid_t)atomic_load(&h->server)))
            keeper = 0;
        else
            clock_sleep(LOOK_MS * MILLISECOND);
    }
    return true;
}

static _Noreturn void stand_by(struct handover *h, struct process *keeper, const char *state)
{
    struct pollfd end = {.fd = keeper->pidfd, .events = POLLIN};
    while (ready_wait(&end, 1, -1) <= 0)
        ;
    if (!follow_keeper(h, keeper->id))
        _exit(0);
    process_forget(keeper);
    execl("/proc/self/exe", "dealfs-keeper", state, (char *)NULL);
    log_error("become the keeper: %s", strerror(errno));
    _exit(1);
}

pid_t standby_start(struct handover *h, const char *state, char *name)
{
    struct process keeper;
    int error = process_watch(getpid(), &keeper);
    if (error)
        return error;
    pid_t child = fork();
    if (child == 0) {
        /* If no command knows of the mount yet, it ends with the keeper, and so does the pipe to the command. */
        handover_drop(FD_READY);
        handover_drop(FD_DATA_MOUNT);
        handover_drop(FD_CONTROL_MOUNT);
        prctl(PR_SET_NAME, shown);
        if (strlen(name) == strlen(shown))
            memcpy(name, shown, strlen(shown));
        stand_by(h, &keeper, state);
    }
    error = -errno;
    process_forget(&keeper);
    if (child < 0)
        return error;
    atomic_store(&h->standby, (uint32_t)child);
    return child;
}

void standby_stop(pid_t standby)
{
    if (standby <= 0)
        return;
    kill(standby, SIGKILL);
    waitpid(standby, NULL, 0);
}

bool standby_claim(struct handover *h, pid_t keeper)
{
    for (int i = 0; i < CLAIM_TRIES && atomic_load(&h->keeper) == (uint32_t)keeper; i++) {
        if (!is_alive((pid_t)atomic_load(&h->standby)))
            break;
        clock_sleep(CLAIM_MS * MILLISECOND);
    }
    return exchange_keeper(h, keeper, 0) || atomic_load(&h->keeper) == 0;
}
