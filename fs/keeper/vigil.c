/* Implements vigil.h. */
#include "fs/keeper/vigil.h"

#include "fs/base/log.h"

void vigil_note(struct vigil *v, pid_t keeper)
{
    struct process p;
    if (keeper <= 0 || process_watch(keeper, &p))
        return;
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
