/* Implements owner-file.h: the child sends the descriptor through a socket. */
#include "cli/live/owner-file.h"

#include "cli/base/guard.h"
#include "fs/base/cleanup.h"
#include "fs/base/parcel.h"
#include "fs/base/process.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { OPEN_SECONDS = 10 };

struct opening {
    const struct live *live;
    const char *name;
    int to;
};

static int open_as_owner(void *user, struct str *out)
{
    const struct opening *o = user;
    (void)out;
    int error = process_become(o->live->uid, o->live->gid);
    if (error)
        return error;
    CLEANUP_CLOSE int state = open(o->live->config.state, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    CLEANUP_CLOSE int fd = state < 0 ? -1 : openat(state, o->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t sent = parcel_send(o->to, "f", 1, &fd, 1, 0);
    return sent < 0 ? (int)sent : 0;
}

static int check_file(int fd, uid_t owner, uint64_t most)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_uid != owner)
        return -EPERM;
    return (uint64_t)st.st_size > most ? -EFBIG : 0;
}

int owner_file_open(const struct live *live, const char *name, uint64_t most)
{
    enum { BITS = SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC };
    CLEANUP_STR struct str nothing = STR_INIT;
    char letter;
    int ends[2];
    if (socketpair(AF_UNIX, BITS, 0, ends) < 0)
        return -errno;
    CLEANUP_CLOSE int from = ends[0], to = ends[1], fd = -1;
    int error = guard_run(open_as_owner, &(struct opening){live, name, to}, OPEN_SECONDS, &nothing);
    if (!error && (parcel_receive(from, &letter, 1, &fd, 1, NULL) != 1 || fd < 0))
        error = -EIO;
    if (!error)
        error = check_file(fd, live->uid, most);
    return error ? error : steal_fd(fd);
}
