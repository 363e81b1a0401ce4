/* Implements vigil.h. */
#include "fs/keeper/vigil.h"

#include "fs/base/log.h"

#include <errno.h>

void vigil_note(struct vigil *v, pid_t keeper)
{
    struct process p = {0, -1, -1};
    int error = keeper > 0 ? process_watch(keeper, &p) : -ESRCH;
    if (error == -ESRCH)
        return;
    /* after another error, no keeper is known to be dead: the previous one has a successor */
    if (v->keeper.id)
        process_forget(&v->keeper);
    v->keeper = p;
}

bool vigil_is_over(const struct vigil *v, const struct pair *pair)
{
    if (!v->keeper.id || !process_is_dead(&v->keeper) || !pair_abort(pair))
        return false;
    log_warning("keeper %d has died, none has followed, and the mount does not answer", (int)v->keeper.id);
    return true;
}
