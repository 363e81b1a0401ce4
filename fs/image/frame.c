/* Memory with a descriptor. It is sealed against shrinking, so that no access to it ends the process. */
#include "fs/image/frame.h"

#include "fs/base/cleanup.h"

#include <fcntl.h>
#include <sys/mman.h>

static size_t whole_pages(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return size > page ? (size + page - 1) / page * page : page;
}

static void give_back(const struct image_frame *f, size_t from, size_t to)
{
    if (to > from)
        fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)(to - from));
}

/* All pages are allocated here, where an error can be reported. */
static int frame_grow(struct image_frame *f, size_t size)
{
    if (fallocate(f->fd, 0, (off_t)f->size, (off_t)(size - f->size)) < 0)
        return -ENOMEM;
    if (size > f->mapped) {
        void *bytes = f->bytes ? mremap(f->bytes, f->mapped, size, MREMAP_MAYMOVE)
                               : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
        if (bytes == MAP_FAILED) {
            give_back(f, f->size, size);
            return -ENOMEM;
        }
        f->bytes = bytes;
        f->mapped = size;
    }
    madvise(f->bytes + f->size, size - f->size, MADV_POPULATE_WRITE); /* otherwise one fault per page */
    f->size = size;
    return 0;
}

int frame_resize(struct image_frame *f, size_t size)
{
    size = whole_pages(size);
    if (size > f->size)
        return frame_grow(f, size);
    give_back(f, size, f->size);
    f->size = size;
    return 0;
}

int frame_create(size_t size, struct image_frame **frame)
{
    struct image_frame *f = calloc(1, sizeof *f);
    if (!f)
        return -ENOMEM;
    f->fd = memfd_create("dealfs-picture", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int error = f->fd < 0 || fcntl(f->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) < 0 ? -errno : 0;
    if (!error)
        error = frame_grow(f, whole_pages(size));
    if (error)
        frame_destroy(f);
    else
        *frame = f;
    return error;
}

void frame_destroy(struct image_frame *f)
{
    if (!f)
        return;
    KEEP_ERRNO;
    if (f->bytes)
        munmap(f->bytes, f->mapped);
    if (f->fd >= 0) {
        give_back(f, 0, f->size);
        close(f->fd);
    }
    free(f);
}
