/* Who may use a dealfs-mounter that was started alone: the processes of one user, one mount after the other. */
#ifndef FS_KEEPER_LOBBY_H
#define FS_KEEPER_LOBBY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct lobby {
    const char *path; /* of the socket */
    uid_t uid;
    gid_t gid;
    int listening, signals;
    uint64_t end; /* when the mounter ends even if a mount lives: nanoseconds; 0: it was not told to end */
};

/* `path`, `uid` and `gid` are given. Logs what fails: 0 or -errno. */
int lobby_open(struct lobby *lobby);
/* The connection of the next process that may use the mounter; or -1: the mounter is to end. */
int lobby_await(struct lobby *lobby);
/* While a child serves that process, until the child ends (`pidfd`); others who come are refused. False: the mounter is
 * to end, and the mount has had its time. */
bool lobby_wait(struct lobby *lobby, int pidfd);

#endif
