/* A catalog's copy in memory or in a file without a name. */
#include "fs/catalog/copy.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/catalog/catalog.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>

enum { MEMORY_MOST = 256 << 20 };

int copy_make(int state, uint64_t bytes, int *copy)
{
    static const char name[] = "catalog.copy";

    if (bytes <= MEMORY_MOST) {
        *copy = memfd_create("dealfs-catalog", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        return *copy < 0 ? -errno : 0;
    }
    unlinkat(state, name, 0);
    int fd = openat(state, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    unlinkat(state, name, 0);
    *copy = fd;
    return 0;
}

/* What was copied is what is checked: the file may change under our eyes, or be replaced by one without end, while root
 * copies it for the mount's owner. */
int copy_fill(int copy, int from, uint64_t most)
{
    struct catalog *catalog;

    if (ftruncate(copy, 0) < 0 || lseek(copy, 0, SEEK_SET) < 0)
        return -errno;
    int error = file_copy(from, copy, most);
    if (!error)
        error = catalog_open_fd(copy, &catalog);
    if (error)
        return error;
    catalog_close(catalog);
    bool is_memory = fcntl(copy, F_GET_SEALS) >= 0;
    return is_memory ? file_seal(copy) : 0;
}
