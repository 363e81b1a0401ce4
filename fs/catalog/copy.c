/* A copy of the catalog, in memory or in a file without a name. */
#include "fs/catalog/copy.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/catalog/derived.h"

#include <fcntl.h>
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

/* Files on a tmpfs also have seals; the first seal forbids all others. */
static int seal_memory(int copy)
{
    int seals = fcntl(copy, F_GET_SEALS);
    return seals >= 0 && !(seals & F_SEAL_SEAL) ? file_seal(copy) : 0;
}

/* Check the copy, not the original: the original may change or grow endlessly while root copies it for the mount's
 * owner. */
static int fill_checked(int copy, int from, uint64_t most, int (*check)(int fd, void *user), void *user)
{
    if (ftruncate(copy, 0) < 0 || lseek(copy, 0, SEEK_SET) < 0)
        return -errno;
    int error = file_copy(from, copy, most);
    if (!error)
        error = check(copy, user);
    return error ? error : seal_memory(copy);
}

static int check_catalog(int fd, void *user)
{
    return catalog_open_fd(fd, user);
}

int copy_fill(int copy, int from, uint64_t most, struct catalog **catalog)
{
    struct catalog *checked = NULL;
    int error = fill_checked(copy, from, most, check_catalog, &checked);
    if (error || !catalog)
        catalog_close(checked);
    else
        *catalog = checked;
    return error;
}

int copy_derive(int copy, const struct derived *derived)
{
    CLEANUP_CLOSE int from = memfd_create("dealfs-derived", MFD_CLOEXEC);
    CLEANUP_FREE void *bytes = NULL;
    size_t length;
    int error = from < 0 ? -errno : derived_catalog(derived, &bytes, &length);
    if (!error)
        error = file_write_all(from, bytes, length);
    if (!error)
        error = lseek(from, 0, SEEK_SET) < 0 ? -errno : 0;
    return error ? error : copy_fill(copy, from, length, NULL);
}

static int check_derived(int fd, void *user)
{
    (void)user;
    struct derived *derived;
    int error = derived_open(fd, &derived);
    if (!error)
        derived_close(derived);
    return error;
}

int copy_fill_derived(int copy, int from, uint64_t most)
{
    return fill_checked(copy, from, most, check_derived, NULL);
}
