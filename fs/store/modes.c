/* A hash table with open addressing. An inode whose mode was restored stays in it. */
#include "fs/store/modes.h"

#include "fs/base/cleanup.h"
#include "fs/base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { LEAST_ROOM = 64, BITS = 07777 };

struct seen_mode {
    uint64_t ino; /* 0: the place is free */
    int64_t ctime;
    uint32_t granted; /* what the source grants */
    bool reduced;     /* that is less than the catalog's mode */
};

struct modes {
    const struct catalog *catalog;
    _Atomic uint64_t count, reduced; /* of inodes in the table; only written with the lock */
    pthread_mutex_t lock;
    /* guarded by lock: */
    struct seen_mode *table;
    size_t room; /* a power of two, at least twice `count` */
    void (*changed)(void *user, uint64_t ino);
    void *user;
};

int modes_create(const struct catalog *catalog, struct modes **modes)
{
    struct modes *m = calloc(1, sizeof *m);
    if (!m)
        return -ENOMEM;
    m->catalog = catalog;
    pthread_mutex_init(&m->lock, NULL);
    *modes = m;
    return 0;
}

void modes_destroy(struct modes *m)
{
    if (!m)
        return;
    pthread_mutex_destroy(&m->lock);
    free(m->table);
    free(m);
}

/* The inode's place, or the free one where it would be. */
static struct seen_mode *place_of(struct seen_mode *table, size_t room, uint64_t ino)
{
    size_t i = (size_t)(ino * 0x9e3779b97f4a7c15u >> 32) & (room - 1);
    while (table[i].ino && table[i].ino != ino)
        i = (i + 1) & (room - 1);
    return &table[i];
}

static int modes_grow(struct modes *m)
{
    size_t room = m->room ? 2 * m->room : LEAST_ROOM;
    struct seen_mode *table = calloc(room, sizeof *table);
    if (!table)
        return -ENOMEM;
    for (size_t i = 0; i < m->room; i++)
        if (m->table[i].ino)
            *place_of(table, room, m->table[i].ino) = m->table[i];
    free(m->table);
    m->table = table;
    m->room = room;
    return 0;
}

/* With the lock. True: the mode that the mount shows has changed. */
static bool note_locked(struct modes *m, const struct seen_mode *look, uint32_t scanned)
{
    struct seen_mode *seen = m->room ? place_of(m->table, m->room, look->ino) : NULL;
    bool known = seen && seen->ino;
    uint32_t before = known ? seen->granted : scanned;
    if (known ? look->ctime < seen->ctime : !look->reduced)
        return false;
    if (!known && 2 * (atomic_load(&m->count) + 1) > m->room) {
        if (modes_grow(m)) {
            log_limited(LOG_LEVEL_ERROR, 1, "a mode that the source has reduced is not applied: out of memory");
            return false;
        }
        seen = place_of(m->table, m->room, look->ino);
    }
    atomic_fetch_add(&m->count, !known);
    atomic_fetch_add(&m->reduced, (uint64_t)look->reduced - (known && seen->reduced));
    *seen = *look;
    return ((before ^ look->granted) & scanned) != 0;
}

void modes_note(struct modes *m, uint64_t ino, const struct stat *st)
{
    struct stat scan;
    if (catalog_stat(m->catalog, ino, &scan) || (scan.st_mode & S_IFMT) != (st->st_mode & S_IFMT))
        return;
    uint32_t scanned = scan.st_mode & BITS, granted = st->st_mode & BITS;
    struct seen_mode look = {ino, state_time(st->st_ctim), granted, (scanned & ~granted) != 0};
    if (!look.reduced && atomic_load_explicit(&m->count, memory_order_acquire) == 0)
        return;
    pthread_mutex_lock(&m->lock);
    void (*changed)(void *, uint64_t) = note_locked(m, &look, scanned) ? m->changed : NULL;
    void *user = m->user;
    pthread_mutex_unlock(&m->lock);
    if (changed)
        changed(user, ino);
}

mode_t modes_limit(struct modes *m, uint64_t ino, mode_t mode)
{
    if (atomic_load_explicit(&m->count, memory_order_acquire) == 0)
        return mode;
    LOCK_SCOPE(&m->lock);
    const struct seen_mode *seen = place_of(m->table, m->room, ino);
    return seen->ino ? mode & (~(mode_t)BITS | seen->granted) : mode;
}

bool modes_are_reduced(struct modes *m)
{
    return atomic_load_explicit(&m->reduced, memory_order_relaxed) > 0;
}

static uint64_t *copy_inodes(struct modes *m, size_t *count)
{
    LOCK_SCOPE(&m->lock);
    uint64_t *inodes = calloc(atomic_load(&m->count) + 1, sizeof *inodes);
    for (size_t i = 0; inodes && i < m->room; i++)
        if (m->table[i].ino)
            inodes[(*count)++] = m->table[i].ino;
    return inodes;
}

void modes_listen(struct modes *m, void (*changed)(void *user, uint64_t ino), void *user)
{
    size_t count = 0;
    pthread_mutex_lock(&m->lock);
    m->user = user;
    m->changed = changed;
    pthread_mutex_unlock(&m->lock);
    CLEANUP_FREE uint64_t *inodes = copy_inodes(m, &count);
    for (size_t i = 0; i < count; i++)
        changed(user, inodes[i]);
}
