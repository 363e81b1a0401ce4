/* as-feeder SERVER COMMAND…: execute the command as the one whom this server takes for its feeder. Root's, for tests
 * of mounts that have none. */
#include "fs/wire/feed.h"
#include "fs/wire/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char path[64];
    struct handover *handover;
    if (argc < 3)
        return 2;
    snprintf(path, sizeof path, "/proc/%s/fd/%d", argv[1], FD_SHARED);
    int fd = open(path, O_RDWR);
    if (fd < 0 || dup2(fd, FD_SHARED) < 0) {
        fprintf(stderr, "open %s: %s\n", path, strerror(errno));
        return 1;
    }
    int error = handover_open(false, &handover);
    if (error) {
        fprintf(stderr, "map %s: %s\n", path, strerror(-error));
        return 1;
    }
    atomic_store(&handover_feed(handover)->feeder, (uint32_t)getpid());
    if (fd != FD_SHARED)
        close(fd);
    close(FD_SHARED);
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
