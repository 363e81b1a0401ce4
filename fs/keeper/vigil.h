/* How a dealfs-mounter notices that all processes of a mount have been killed, although a thread of one of them cannot
 * end and keeps its socket open: it hangs in the kernel, on a disk, on the source or on the mount itself.
 *
 * Each keeper announces itself (MOUNTER_KEEPER). If the last one is dead, no other follows and the mount does not
 * answer, nobody is left who could serve. Processes that are only stopped, such as those of a suspended job, are not
 * dead. */
#ifndef FS_KEEPER_VIGIL_H
#define FS_KEEPER_VIGIL_H

#include "fs/attach/pair.h"
#include "fs/base/process.h"

struct vigil {
    struct process keeper; /* id 0: unknown, perhaps in another namespace of process ids */
};

void vigil_note(struct vigil *vigil, pid_t keeper);
/* Call it about once per minute. True: nobody serves, and all requests have been ended. */
bool vigil_is_over(const struct vigil *vigil, const struct pair *pair);

#endif
