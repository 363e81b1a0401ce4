/* Opens the control mount, and checks that it is ours. */
#include "fs/feed/desk.h"

#include "fs/base/cleanup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

int desk_open(const struct desk *desk)
{
    struct stat st;
    CLEANUP_CLOSE int fd = open(desk->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st))
        return -errno;
    if (major(st.st_dev) != 0 || minor(st.st_dev) != desk->minor)
        return -ENODEV;
    return steal_fd(fd);
}
