/* A table by place of 64 bits each: where the value begins in the file, and its length. Zero is unknown. The index
 * record has no place in it and is kept beside. */
#include "fs/store/known.h"

#include "fs/store/index.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LENGTH_BITS = 20 };

struct spot {
    uint64_t at;
    size_t n;
};

struct known {
    int fd;          /* -1: none */
    const char *map; /* NULL: none */
    uint64_t bytes;  /* of the map */
    struct spot record;
    uint32_t places, room;
    uint64_t *spot;
};

struct known *known_create(void)
{
    struct known *k = calloc(1, sizeof *k);
    if (k)
        k->fd = -1;
    return k;
}

void known_destroy(struct known *k)
{
    if (!k)
        return;
    if (k->map)
        munmap((void *)k->map, k->bytes);
    if (k->fd >= 0)
        close(k->fd);
    free(k->spot);
    free(k);
}

static int reach_place(struct known *k, uint32_t place)
{
    if (place >= SEGMENT_PLACES)
        return -EINVAL;
    if (place >= k->room) {
        uint32_t room = k->room ? k->room : 512;
        while (room <= place)
            room *= 2;
        uint64_t *grown = realloc(k->spot, room * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        k->spot = grown;
        k->room = room;
    }
    while (k->places <= place)
        k->spot[k->places++] = 0;
    return 0;
}

int known_note(struct known *k, uint32_t place, uint64_t at, size_t n)
{
    if (place == INDEX_PLACE) {
        k->record = (struct spot){at, n};
        return 0;
    }
    int error = reach_place(k, place);
    if (!error && at && !(at >> (64 - LENGTH_BITS)) && !(n >> LENGTH_BITS))
        k->spot[place] = at << LENGTH_BITS | n;
    return error;
}

/* No more is noted: what the table has not used is given back. */
static void trim(struct known *k)
{
    uint64_t *fitting = k->places ? realloc(k->spot, k->places * sizeof *fitting) : NULL;
    if (fitting) {
        k->spot = fitting;
        k->room = k->places;
    }
}

int known_map(struct known *k, int fd, uint64_t bytes)
{
    trim(k);
    void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return -errno;
    k->map = map;
    k->bytes = bytes;
    return 0;
}

void known_take(struct known *k, int fd)
{
    trim(k);
    k->fd = fd;
}

bool known_find(const struct known *k, uint32_t place, uint64_t *at, size_t *n)
{
    if (!k || (!k->map && k->fd < 0))
        return false;
    struct spot spot = {0, 0};
    if (place == INDEX_PLACE)
        spot = k->record;
    else if (place < k->places)
        spot = (struct spot){k->spot[place] >> LENGTH_BITS, k->spot[place] & ((1u << LENGTH_BITS) - 1)};
    if (!spot.at || (k->map && (spot.at > k->bytes || spot.n > k->bytes - spot.at)))
        return false;
    *at = spot.at;
    *n = spot.n;
    return true;
}

const void *known_bytes(const struct known *k, uint64_t at)
{
    return k->map ? k->map + at : NULL;
}

const char *known_read(const struct known *k, uint64_t from, uint64_t to, char *buffer, int *error)
{
    uint64_t begin = from / KNOWN_ALIGN * KNOWN_ALIGN, end = (to + KNOWN_ALIGN - 1) / KNOWN_ALIGN * KNOWN_ALIGN;
    for (uint64_t at = begin; at < to;) {
        ssize_t n = pread(k->fd, buffer + (at - begin), end - at, (off_t)at);
        bool more = n > 0 && (n % KNOWN_ALIGN == 0 || at + (uint64_t)n >= to);
        if (!more && !(n < 0 && errno == EINTR)) {
            *error = n < 0 ? -errno : -EIO;
            return NULL;
        }
        at += n > 0 ? (uint64_t)n : 0;
    }
    return buffer + (from - begin);
}
