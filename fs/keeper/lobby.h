/* The socket of a dealfs-mounter that was started alone. The processes of one user connect to it, one mount at a
 * time. */
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
    uint64_t end; /* time at which the mounter ends even if the mount lives; 0: there was no signal */
};

/* The caller sets `path`, `uid` and `gid`. From here on signals are stored until one of the functions below waits. */
int lobby_init(struct lobby *lobby);
/* Makes the socket. 0 or -errno; logs a failure. */
int lobby_open(struct lobby *lobby);
/* Waits for the next process that may use the mounter. Returns its connection, prepared; -1: a signal has ended the
 * mounter. */
int lobby_await(struct lobby *lobby);
/* Waits until the child that serves the mount (`pidfd`) ends, and refuses other connections meanwhile. False: the child
 * has not ended within END_S after the signal. */
bool lobby_wait(struct lobby *lobby, int pidfd);

/* Messages from a connection then have the sender's process id, and each wait for one ends after a minute with
 * -EAGAIN. 0 or -errno. */
int lobby_prepare(int connection);

#endif
