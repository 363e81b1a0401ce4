/* What a node's part of a job may leave behind: folders made for the mountpoint, and processes whose parents have
 * ended. The agent and its parent share this memory, so that the parent can clean up. */
#ifndef CLI_LAUNCH_REMAINS_H
#define CLI_LAUNCH_REMAINS_H

#include "fs/base/str.h"

#include <sys/types.h>

struct remains {
    char folder[4096]; /* the mountpoint */
    unsigned made;     /* how many of its last components are folders that the agent made */
    pid_t mount;       /* the process `dealfs mount -f`, which adopts all other processes of the mount; 0: none */
};

struct remains *remains_new(void); /* NULL: no memory */
void remains_free(struct remains *r);

/* From here on, descendants whose parent ends become children of this process. */
void remains_adopt(void);
/* Make the mountpoint and the folders above it. 0 or -errno with `why`. */
int remains_make_folder(struct remains *r, const char *path, struct str *why);
void remains_remove_folders(struct remains *r);

/* Number of children of this process, except `mount`; -errno: none was found, but some could not be examined. `signal`
 * is sent to each; 0: none. */
int remains_signal(const struct remains *r, int signal);

#endif
