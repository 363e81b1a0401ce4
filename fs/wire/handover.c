/* Shared memory and descriptors that outlive the processes of a mount. */
#include "fs/wire/handover.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/wire/feed.h"
#include "fs/wire/lane.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#ifndef HANDOVER_FORM
#define HANDOVER_FORM 17 /* increase with each change of handover.h, lane.h, feed.h or of the store's counters */
#endif

enum {
    MAGIC = 0x6465616c, /* "deal" */
    PAGE = 4096,
    FEED_OFFSET = PAGE + COUNTS_ROOM,
    FEED_ROOM = 2 << 20,
    DATA_OFFSET = FEED_OFFSET + FEED_ROOM,
};

_Static_assert(sizeof(struct handover) <= PAGE, "the counts follow it");
_Static_assert(sizeof(struct feed) <= FEED_ROOM, "the lanes follow it");

static uint64_t control_offset(void)
{
    return DATA_OFFSET + lane_size(DATA_SLOTS, DATA_ROOM);
}

unsigned handover_lingering(const struct handover *h)
{
    unsigned n = 0;
    while (n < LINGERING_MOST && atomic_load(&h->lingering[n]))
        n++;
    return n;
}

static uint64_t whole_size(void)
{
    return control_offset() + lane_size(CONTROL_SLOTS, CONTROL_ROOM);
}

static int make_memory(void)
{
    CLEANUP_CLOSE int fd = memfd_create("dealfs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, (off_t)whole_size()) ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        return -errno;
    return dup2(fd, FD_SHARED) < 0 ? -errno : 0; /* its number is reserved, so the copy has another one */
}

static void lay_out(struct handover *h)
{
    h->form = HANDOVER_FORM;
    h->size = whole_size();
    lane_init(handover_data(h), DATA_SLOTS, DATA_ROOM);
    lane_init(handover_control(h), CONTROL_SLOTS, CONTROL_ROOM);
    h->magic = MAGIC;
}

int handover_open(bool create, struct handover **handover)
{
    bool fresh = false;
    if (create && !handover_has(FD_SHARED)) {
        int error = make_memory();
        if (error)
            return error;
        fresh = true;
    }
    struct stat st;
    if (fstat(FD_SHARED, &st))
        return -errno;
    if ((uint64_t)st.st_size != whole_size())
        return -ESTALE;
    struct handover *h = mmap(NULL, whole_size(), PROT_READ | PROT_WRITE, MAP_SHARED, FD_SHARED, 0);
    if (h == MAP_FAILED)
        return -errno;
    /* memory that its creator had not initialised yet is as good as new: no server has seen it */
    if (fresh || (create && h->magic == 0))
        lay_out(h);
    if (h->magic != MAGIC || h->form != HANDOVER_FORM || h->size != whole_size()) {
        munmap(h, whole_size());
        return -ESTALE;
    }
    *handover = h;
    return 0;
}

void handover_close(struct handover *h)
{
    if (h)
        munmap(h, whole_size());
}

void *handover_counts(struct handover *h)
{
    return (char *)h + PAGE;
}

struct feed *handover_feed(struct handover *h)
{
    return (struct feed *)((char *)h + FEED_OFFSET);
}

struct lane *handover_data(struct handover *h)
{
    return (struct lane *)((char *)h + DATA_OFFSET);
}

struct lane *handover_control(struct handover *h)
{
    return (struct lane *)((char *)h + control_offset());
}

uint64_t handover_answered(struct handover *h)
{
    return atomic_load_explicit(&handover_data(h)->answered, memory_order_relaxed) +
           atomic_load_explicit(&handover_control(h)->answered, memory_order_relaxed);
}

int handover_find_program(const char *name, char *path, unsigned long n)
{
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0)
        return -ENOENT;
    self[length] = '\0';
    char *slash = strrchr(self, '/');
    if (!slash)
        return -ENOENT;
    *slash = '\0';
    static const char *const places[] = {"%s/%s", "%s/../libexec/dealfs/%s"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        int written = snprintf(path, n, places[i], self, name);
        if (written > 0 && (unsigned long)written < n && access(path, X_OK) == 0)
            return 0;
    }
    return -ENOENT;
}

int handover_reserve(void)
{
    CLEANUP_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return -errno;
    bool taken = false;
    for (int fd = FD_DATA; fd <= FD_LAST; fd++) {
        taken |= fd == null;
        if (fd != null && fcntl(fd, F_GETFD) < 0 && dup3(null, fd, O_CLOEXEC) < 0)
            return -errno;
    }
    if (taken)
        steal_fd(null);
    return 0;
}

bool handover_has(int fd)
{
    int flags = fcntl(fd, F_GETFD);
    return flags >= 0 && !(flags & FD_CLOEXEC);
}

void handover_drop(int fd)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup3(null, fd, O_CLOEXEC) < 0)
        close(fd);
    if (null >= 0)
        close(null);
}

bool handover_tell(const char *line)
{
    if (!handover_has(FD_READY))
        return false;
    int error = file_write_all(FD_READY, line, strlen(line));
    return !error && !file_write_all(FD_READY, "\n", 1);
}

void handover_let_go(bool puts_up)
{
    for (int fd = FD_DATA; fd <= FD_LAST; fd++) {
        bool needed = puts_up && (fd == FD_READY || fd == FD_DATA_MOUNT || fd == FD_CONTROL_MOUNT);
        if (fd != FD_LOG && fd != FD_MOUNTER && !needed)
            close(fd);
    }
}

void handover_close_others(void)
{
    close_range(FD_LAST + 1, ~0u, 0);
}
