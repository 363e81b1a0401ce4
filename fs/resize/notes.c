/* Implements notes.h: records, followed by the list. */
#include "fs/resize/notes.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t list_at(uint32_t files)
{
    return sizeof(struct notes) + files * sizeof(struct derived_record);
}

uint32_t *notes_list(struct notes *n)
{
    return (uint32_t *)(void *)((char *)n + list_at(n->files));
}

static int notes_map(int fd, size_t length, struct notes **notes)
{
    struct stat st;
    if (fd >= 0 && (fstat(fd, &st) < 0 || ((size_t)st.st_size < length && ftruncate(fd, (off_t)length) < 0)))
        return -errno;
    void *map = mmap(NULL, length, PROT_READ | PROT_WRITE, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return -errno;
    *notes = map;
    return 0;
}

int notes_open(int fd, struct derived *derived, struct notes **notes)
{
    struct notes *n = NULL;
    int error = notes_map(fd, list_at(derived->files) + ((size_t)derived->files + 1) * sizeof(uint32_t), &n);
    if (error)
        return error;
    bool mine = n->stage == NOTES_EMPTY || n->files != derived->files || n->listed > n->files;
    if (mine)
        *n = (struct notes){.files = derived->files};
    derived_keep_in(derived, n->record, mine);
    *notes = n;
    return 0;
}

void notes_reach(struct notes *n, enum notes_stage stage)
{
    atomic_thread_fence(memory_order_release); /* everything it describes was written before */
    n->stage = stage;
}
