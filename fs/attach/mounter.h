/* The requests to `dealfs-mounter`.
 *
 * With owner=USER it is the one process of a mount that stays root (fs/keeper/mounter-main.c). Root's command starts it
 * and then becomes USER for good, before it opens the first file of the source, the state directory or the SSD
 * directory. Command and keeper hold the other end of its socket. Each question is one message with the end of a pair
 * of sockets for the answer, so that several processes can ask.
 *
 * `dealfs mounter` starts it alone: it listens on a socket, and a `dealfs mount` without privileges connects to it
 * (mount option mounter=SOCKET). */
#ifndef FS_ATTACH_MOUNTER_H
#define FS_ATTACH_MOUNTER_H

#include "fs/attach/attach.h"

#include <limits.h>

struct ucred;

enum mounter_verb {
    MOUNTER_LOOK,    /* does it exist? */
    MOUNTER_MAKE,    /* create both mounts, detached; `source` is shown; returns the two devices. Once */
    MOUNTER_TMPFS,   /* create one for the RAM tier, of `bytes`; returns its root. Once */
    MOUNTER_CONFIG,  /* store the sealed configuration, which root's commands then read from the mounter. Once */
    MOUNTER_PUT,     /* attach both mounts. Once */
    MOUNTER_PROTECT, /* protect the keeper, which asks, from the OOM killer */
    MOUNTER_TAKE,    /* unmount; `bytes` is of enum mounter_take */
    MOUNTER_VERBS
};

/* The connections that have not ended. The numbers of ended ones may belong to another mount by now. */
enum mounter_take { TAKE_DATA = 1, TAKE_CONTROL = 2, TAKE_SPARES = 4 /* see pair_take */ };

struct mounter_request {
    uint32_t verb, zero;
    uint64_t bytes;
    char source[PATH_MAX];
};

struct mounter_reply {
    int32_t error; /* 0 or -errno */
    uint32_t data_minor, control_minor;
    char why[1024];
};

enum { MOUNTER_FDS = 2 };
/* Messages without a request: their number of bytes says what the sender is. */
enum { MOUNTER_ALIVE = 1 /* a command that has not mounted yet */, MOUNTER_KEEPER = 2 /* a keeper that begins */ };

/* The first message of a mounter that was started alone, to each process that connects. After an error it closes the
 * connection. */
enum { MOUNTER_FORM = 1 };
struct mounter_offer {
    uint32_t form;          /* MOUNTER_FORM */
    int32_t error;          /* 0, or -errno: `why` says more */
    uint64_t pid_namespace; /* process_namespace(): FUSE requests have process ids of this namespace */
    uint32_t allow_other, zero;
    char mountpoint[PATH_MAX];
    char why[256];
};

/* One message with up to MOUNTER_FDS descriptors (-1: none). Receiving gives the number of bytes, 0: hung up, or
 * -errno; `from` (may be NULL) is the process that sent it, with its user: uid -1 if the kernel does not say. */
int mounter_send(int socket, const void *message, size_t n, const int fds[MOUNTER_FDS]);
ssize_t mounter_receive(int socket, void *message, size_t n, int fds[MOUNTER_FDS], struct ucred *from);
/* May the mounter answer on this descriptor? Only on a SEQPACKET socket whose other end was made by the user who asks.
 * On any other one, a user could make root's process send something to a program that trusts root. */
bool mounter_may_answer(int fd, uid_t asker);

/* Send a request and wait, at most MOUNTER_SECONDS. `given`: a descriptor for the request, or -1; `got` (may be NULL):
 * the descriptors of the reply. -EPIPE: the mounter has ended. `why` gets a message for the user. */
enum { MOUNTER_SECONDS = 30 };
int mounter_ask(int mounter, const struct mounter_request *request, int given, struct mounter_reply *reply,
                int got[MOUNTER_FDS], struct str *why);
/* the same, for simple requests */
int mounter_do(int mounter, enum mounter_verb verb, uint64_t bytes, struct str *why);

/* Connect to the mounter that listens at `path`, and receive its offer. The socket, or -errno. -EPERM: the process that
 * listens is not root, or it refuses. */
int mounter_connect(const char *path, struct mounter_offer *offer, struct str *why);
/* The mounter that made the mount `minor` has ended: have the one that listens at `path` by now unmount it. */
int mounter_take_left(const char *path, unsigned minor, struct str *why);

#endif
