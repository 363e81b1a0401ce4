/* The courier's thread only. Nothing here waits for another process, or calls MPI. */
#include "mpi/tier-view.h"

#include "fs/base/array.h"
#include "fs/base/clock.h"
#include "fs/catalog/cut.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BUFFERS = 64,            /* answers that are being sent */
    KEPT_FREE = BUFFERS / 4, /* buffers that feeders' reads leave free */
    REFUSED_MS = 50,         /* no segment is asked for that soon after one that is not in a file */
    FORGET_MS = 10 * 1000,   /* how long dropped files may stay open: they have no memory */
    SPARE_FDS = 256,         /* descriptors that are left to others, and per node to MPI */
    SPARE_OF_NODE = 16,
    SEGMENTS_MOST = 16384, /* a process has at most 65,530 mappings */
};

/* A file in the tier. */
struct seen_segment {
    uint32_t number, places;
    int file;
    const uint64_t *spot; /* mapped */
};

struct tier_view {
    /* the map; NULL: nothing is shared */
    const _Atomic uint64_t *entry;
    struct cut parts;             /* without a catalog; `large` is mapped */
    struct seen_segment *segment; /* by ascending number */
    size_t segments, room;
    int fd_end;                  /* segments use descriptors below this one */
    bool full;                   /* until they are closed, no more are opened */
    uint64_t dropped, forgot_at; /* the word `dropped`, and the time, when all files were last closed */
    bool wants, asking;          /* the server should be asked for `wanted`; it was, and has not answered */
    uint32_t wanted;
    uint64_t ask_at;
    void *buffer[BUFFERS]; /* unused ones */
    unsigned unused, made;
};

/* The kernel gives the lowest free descriptor. So while segments have those below this one, MPI finds others. */
static int descriptors_end(uint32_t nodes)
{
    struct rlimit limit;
    uint64_t spare = SPARE_FDS + (uint64_t)nodes * SPARE_OF_NODE;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 0;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur <= spare ? 0 : limit.rlim_cur - spare < INT_MAX ? (int)(limit.rlim_cur - spare) : INT_MAX;
}

int tier_view_create(uint32_t nodes, struct tier_view **view)
{
    struct tier_view *v = calloc(1, sizeof *v);
    if (!v)
        return -ENOMEM;
    v->fd_end = descriptors_end(nodes);
    v->full = !v->fd_end;
    *view = v;
    return 0;
}

static size_t spots_bytes(const struct seen_segment *s)
{
    return s->places * sizeof *s->spot;
}

static void forget_segments(struct tier_view *v)
{
    for (size_t i = 0; i < v->segments; i++) {
        munmap((void *)v->segment[i].spot, spots_bytes(&v->segment[i]));
        close(v->segment[i].file);
    }
    v->segments = 0;
    v->full = !v->fd_end;
}

void tier_view_close(struct tier_view *v)
{
    forget_segments(v);
    if (v->entry)
        munmap((void *)v->entry, (v->parts.pieces + 1) * sizeof *v->entry);
    if (v->parts.large)
        munmap(v->parts.large, v->parts.count * sizeof *v->parts.large);
    v->entry = NULL;
    v->parts = (struct cut){0};
    v->asking = v->wants = false;
    v->dropped = v->forgot_at = v->ask_at = 0;
}

void tier_view_destroy(struct tier_view *v)
{
    if (!v)
        return;
    tier_view_close(v);
    while (v->unused)
        free(v->buffer[--v->unused]);
    free(v->segment);
    free(v);
}

/* --- what the server shares --- */

/* Map exactly `n` items of shared memory for reading; NULL for none. */
static int map_items(int fd, uint64_t n, size_t item, void **map)
{
    struct stat st;
    *map = NULL;
    if (n == 0)
        return 0;
    if (n > SIZE_MAX / item || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size != n * item)
        return -EBADMSG;
    void *mapped = mmap(NULL, n * item, PROT_READ, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        return -errno;
    *map = mapped;
    return 0;
}

/* Without memory, the server answers everything. */
int tier_view_open(struct tier_view *v, const void *payload, size_t n, int fd[SHARE_FDS])
{
    struct message_shared m;
    void *map, *large;
    if (v->entry || n != sizeof m)
        return -EBADMSG;
    memcpy(&m, payload, sizeof m);
    if (m.pieces < m.files || m.pieces == UINT64_MAX)
        return -EBADMSG;
    int error = map_items(fd[SHARE_MAP], m.pieces + 1, sizeof *v->entry, &map);
    if (error)
        return error == -ENOMEM ? 0 : -EBADMSG;
    v->entry = map;
    v->parts = (struct cut){.shift = (unsigned)__builtin_ctz(VALUE_BYTES), .files = m.files, .pieces = m.pieces};
    error = map_items(fd[SHARE_LARGE], m.large, sizeof *v->parts.large, &large);
    if (error) {
        tier_view_close(v);
        return error == -ENOMEM ? 0 : -EBADMSG;
    }
    v->parts.large = large;
    v->parts.count = m.large;
    return 0;
}

/* Position of the first segment with this number or a higher one. */
static size_t segment_place(const struct tier_view *v, uint32_t number)
{
    return bisect(i, v->segments, v->segment[i].number < number);
}

static const struct seen_segment *find_segment(struct tier_view *v, uint32_t number)
{
    size_t at = segment_place(v, number);
    if (at < v->segments && v->segment[at].number == number)
        return &v->segment[at];
    if (!v->asking && !v->full) {
        v->wants = true;
        v->wanted = number;
    }
    return NULL;
}

/* Owns `file`, unless it fails. */
static int add_segment(struct tier_view *v, const struct message_segment *m, int spots, int file)
{
    void *spot;
    if (file < 0)
        return -ENOENT;
    v->full = file >= v->fd_end || v->segments == SEGMENTS_MOST;
    if (v->full)
        return -EMFILE;
    if (array_reserve(v->segment, v->room, v->segments + 1))
        return -ENOMEM;
    int error = map_items(spots, m->places, sizeof(uint64_t), &spot);
    if (error)
        return error;
    size_t at = segment_place(v, m->number);
    memmove(&v->segment[at + 1], &v->segment[at], (v->segments - at) * sizeof *v->segment);
    v->segment[at] = (struct seen_segment){m->number, m->places, file, spot};
    v->segments++;
    return 0;
}

int tier_view_add(struct tier_view *v, const void *payload, size_t n, int fd[SHARE_FDS])
{
    struct message_segment m;
    if (!v->asking || n != sizeof m)
        return -EBADMSG;
    memcpy(&m, payload, sizeof m);
    if (m.number != v->wanted || !m.places != (fd[SHARE_FILE] < 0))
        return -EBADMSG;
    int error = add_segment(v, &m, fd[SHARE_SPOTS], fd[SHARE_FILE]);
    if (!error)
        fd[SHARE_FILE] = -1;
    v->asking = v->wants = false;
    v->ask_at = error ? clock_now() + REFUSED_MS * MILLISECOND : 0;
    return error == -EBADMSG ? error : 0;
}

bool tier_view_wants(struct tier_view *v, uint32_t *segment)
{
    if (!v->wants || v->asking || clock_now() < v->ask_at)
        return false;
    v->asking = true;
    *segment = v->wanted;
    return true;
}

/* --- answers --- */

/* The word is read before the clock, so that this costs little. */
static void forget_dropped(struct tier_view *v)
{
    uint64_t dropped = atomic_load_explicit(&v->entry[v->parts.pieces], memory_order_acquire);
    if (dropped == v->dropped || v->asking || clock_now() < v->forgot_at + FORGET_MS * MILLISECOND)
        return;
    forget_segments(v);
    v->dropped = dropped;
    v->forgot_at = clock_now();
}

/* Copy a value. 0: the server must be asked. */
static uint32_t copy_value(struct tier_view *v, uint32_t file, uint32_t value, char *to, size_t room)
{
    uint64_t part = cut_at(&v->parts, file, (uint64_t)value * VALUE_BYTES);
    if (part >= v->parts.pieces)
        return 0;
    uint64_t entry = atomic_load_explicit(&v->entry[part], memory_order_acquire);
    const struct seen_segment *s =
        entry_held(entry) && entry_tier(entry) == 0 ? find_segment(v, entry_segment(entry)) : NULL;
    uint64_t place = (uint64_t)entry_place(entry) + (cut_is_large(&v->parts, file) ? 0 : value);
    if (!s || place >= s->places)
        return 0;
    uint32_t n = spot_length(s->spot[place]);
    if (n <= VALUE_HEADER || n > VALUE_MOST || n > room ||
        pread(s->file, to, n, (off_t)spot_at(s->spot[place])) != (ssize_t)n)
        return 0;
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&v->entry[part], memory_order_relaxed) == entry ? n : 0;
}

/* Length of the payload of one part of a question; 0: the server must be asked. */
static size_t put_run(struct tier_view *v, const struct fetch_part *q, char *to, size_t room)
{
    uint32_t length[RING_VALUES] = {0};
    if (q->flags & ~(uint32_t)FETCH_FED || q->file >= v->parts.files || q->count > RING_VALUES)
        return 0;
    for (uint32_t i = 0; i < q->count; i++) {
        size_t at = payload_begin(length, i);
        length[i] = at < room ? copy_value(v, q->file, q->value + i, to + at, room - at) : 0;
        if (!length[i])
            return 0;
    }
    size_t n = payload_begin(length, q->count);
    if (n > room)
        return 0;
    payload_finish(to, &(struct value_run){q->file, q->value, q->count}, length);
    return n;
}

static size_t put_many(struct tier_view *v, const struct wire_message *asked, char *to)
{
    uint32_t length[MANY_MOST] = {0};
    size_t at = payload_many_begin(length, 0);
    for (uint32_t i = 0; i < asked->count; i++) {
        length[i] = at < RING_SLOT ? (uint32_t)put_run(v, &asked->part[i], to + at, RING_SLOT - at) : 0;
        if (!length[i])
            return 0;
        at = payload_many_begin(length, i + 1);
    }
    payload_many_finish(to, asked->count, length);
    return at;
}

static void *take_buffer(struct tier_view *v, bool fed, unsigned held)
{
    unsigned left = v->unused + BUFFERS - v->made;
    if (left <= held || (fed && left <= KEPT_FREE))
        return NULL;
    if (v->unused)
        return v->buffer[--v->unused];
    void *buffer = malloc(RING_SLOT);
    v->made += buffer != NULL;
    return buffer;
}

void tier_view_give_back(struct tier_view *v, void *bytes)
{
    v->buffer[v->unused++] = bytes;
}

size_t tier_view_answer(struct tier_view *v, const struct wire_message *asked, unsigned held, void **bytes)
{
    *bytes = NULL;
    if (!v->entry || asked->flags & ~(uint32_t)(FETCH_FED | FETCH_MANY | FETCH_SHARED))
        return 0;
    forget_dropped(v);
    void *buffer = take_buffer(v, asked->flags & FETCH_FED, held);
    if (!buffer)
        return 0;
    const struct fetch_part whole = {asked->file, asked->value, asked->count, asked->flags & ~(uint32_t)FETCH_SHARED};
    size_t n = asked->flags == FETCH_MANY ? put_many(v, asked, buffer) : put_run(v, &whole, buffer, RING_SLOT);
    if (n) {
        payload_mark_shared(buffer);
        *bytes = buffer;
    } else {
        tier_view_give_back(v, buffer);
    }
    return n;
}
