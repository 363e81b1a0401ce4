/* The table has one spot per place: fs/wire/tier-share.h.
 *
 * The index record is the last value of the file, followed by RocksDB's own index and some more bytes. So it is
 * searched from the end of the file. */
#include "fs/store/segment-file.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/wire/tier-share.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum {
    TAIL_FIRST = 128 << 10, /* usually contains the record if values are large */
    TAIL_STEP = 8,          /* if it does not, this many times more is searched */
    TAIL_MOST = 16 << 20,   /* always contains the record */
};

struct segment_file {
    struct rocks *rocks;
    struct rocks_file which;
    int fd;          /* -1: opened for each read */
    const char *map; /* NULL: the file is not mapped */
    uint32_t places;
    _Atomic uint64_t *spot;
};

static int map_file(struct segment_file *f, int fd)
{
    void *map = mmap(NULL, f->which.bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return -errno;
    f->map = map;
    return 0;
}

int segment_file_open(struct rocks *rocks, const struct rocks_file *which, bool mapped, struct segment_file **out)
{
    struct stat st;
    bool spare;
    CLEANUP_CLOSE int fd = rocks_open_file(rocks, which->name, &spare);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    if ((uint64_t)st.st_size < which->bytes)
        return -EBADMSG;
    struct segment_file *f = calloc(1, sizeof *f);
    if (!f)
        return -ENOMEM;
    *f = (struct segment_file){.rocks = rocks, .which = *which, .fd = -1};
    int error = mapped ? map_file(f, fd) : 0;
    if (error) {
        segment_file_close(f);
        return error;
    }
    if (!mapped && spare)
        f->fd = steal_fd(fd);
    *out = f;
    return 0;
}

void segment_file_close(struct segment_file *f)
{
    if (!f)
        return;
    if (f->map)
        munmap((void *)f->map, f->which.bytes);
    if (f->fd >= 0)
        close(f->fd);
    free((void *)f->spot);
    free(f);
}

/* -ENOENT: the record does not begin within the last `tail` bytes. */
static int look_in_tail(const struct segment_file *f, uint64_t tail, struct index *index)
{
    uint64_t from = f->which.bytes - tail;
    if (f->map)
        return index_find(index, f->which.segment, f->map + from, tail);
    int error = -ENOMEM;
    CLEANUP_FREE char *buffer = aligned_alloc(SEGMENT_FILE_ALIGN, (tail / SEGMENT_FILE_ALIGN + 3) * SEGMENT_FILE_ALIGN);
    const char *bytes = buffer ? segment_file_read(f, from, f->which.bytes, buffer, &error) : NULL;
    return bytes ? index_find(index, f->which.segment, bytes, tail) : error;
}

int segment_file_index(const struct segment_file *f, struct index *index)
{
    uint64_t most = f->which.bytes < TAIL_MOST ? f->which.bytes : TAIL_MOST;
    uint64_t tail = most < TAIL_FIRST ? most : TAIL_FIRST;
    int error = look_in_tail(f, tail, index);
    while (error == -ENOENT && tail < most) {
        tail = tail * TAIL_STEP < most ? tail * TAIL_STEP : most;
        error = look_in_tail(f, tail, index);
    }
    const struct index_value *last = !error && index->values ? &index->value[index->values - 1] : NULL;
    if (last && (uint64_t)last->at + last->length > f->which.bytes) {
        index_fini(index);
        error = -EBADMSG;
    }
    return error == -ENOENT ? -EBADMSG : error;
}

int segment_file_learn(struct segment_file *f, const struct index *index)
{
    const struct index_run *last = index->runs ? &index->run[index->runs - 1] : NULL;
    const struct index_value *value = index->value;
    f->places = last ? last->place + last->count : 0;
    f->spot = calloc(f->places + 1, sizeof *f->spot);
    if (!f->spot)
        return -ENOMEM;
    for (uint32_t i = 0; i < index->runs; i++)
        for (uint32_t j = 0; j < index->run[i].count; j++, value++)
            atomic_init(&f->spot[index->run[i].place + j], spot_make(value->at, value->length));
    return 0;
}

const struct rocks_file *segment_file_which(const struct segment_file *f)
{
    return &f->which;
}

static uint64_t spot_of(const struct segment_file *f, uint32_t place)
{
    return place < f->places ? atomic_load_explicit(&f->spot[place], memory_order_relaxed) : 0;
}

bool segment_file_find(const struct segment_file *f, uint32_t place, uint64_t *at, size_t *n)
{
    uint64_t spot = spot_of(f, place);
    *at = spot_at(spot);
    *n = spot_length(spot);
    return spot != 0;
}

bool segment_file_verified(const struct segment_file *f, uint32_t place)
{
    return spot_of(f, place) & SPOT_VERIFIED;
}

void segment_file_set_verified(struct segment_file *f, uint32_t place)
{
    atomic_fetch_or_explicit(&f->spot[place], SPOT_VERIFIED, memory_order_relaxed);
}

const char *segment_file_bytes(const struct segment_file *f, uint64_t at)
{
    return f->map ? f->map + at : NULL;
}

const char *segment_file_read(const struct segment_file *f, uint64_t from, uint64_t to, char *buffer, int *error)
{
    bool spare;
    int fd = f->fd >= 0 ? f->fd : rocks_open_file(f->rocks, f->which.name, &spare);
    if (fd < 0) {
        *error = fd;
        return NULL;
    }
    const char *bytes = rocks_read(fd, from, to, buffer, error);
    if (fd != f->fd)
        close(fd);
    return bytes;
}

int segment_file_share(const struct segment_file *f, struct message_segment *m, int fd[2])
{
    bool spare;
    *m = (struct message_segment){f->which.segment, f->places};
    if (!f->map)
        return -EOPNOTSUPP;
    CLEANUP_FREE uint64_t *spot = calloc(f->places + 1, sizeof *spot);
    if (!spot)
        return -ENOMEM;
    for (uint32_t place = 0; place < f->places; place++)
        spot[place] = spot_of(f, place);
    CLEANUP_CLOSE int file = rocks_open_file(f->rocks, f->which.name, &spare);
    int spots = file < 0 ? file : file_memory("dealfs-spots", spot, f->places * sizeof *spot);
    if (spots < 0)
        return spots;
    fd[SHARE_FILE] = steal_fd(file);
    fd[SHARE_SPOTS] = spots;
    return 0;
}
