/* The thread waits for the time of the next look, and for mode_round_stop. */
#include "fs/store/mode-round.h"

#include "fs/base/beneath.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { LOOKS = 100 /* per second */, ROUND_LEAST_S = 5 };
#define SLACK (100 * MILLISECOND) /* pauses are not shorter */

struct mode_round {
    struct mode_round_config config;
    _Atomic uint64_t nodes;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool stop; /* guarded by lock */
};

/* False: mode_round_stop was called. */
static bool pause_until(struct mode_round *r, uint64_t when)
{
    LOCK_SCOPE(&r->lock);
    while (!r->stop && cond_wait_until(&r->ended, &r->lock, when))
        continue;
    return !r->stop;
}

/* A directory that was removed, or that this user may no longer reach, is below one with a reduced mode, or shows as
 * before. */
static void look_at_directory(struct mode_round *r, uint64_t ino, char *path)
{
    struct stat st;
    if (catalog_path(r->config.catalog, ino, path, CATALOG_PATH_MAX) < 0)
        return;
    CLEANUP_CLOSE int fd = *path ? beneath_open(r->config.root, path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (*path && fd < 0)
        return;
    int directory = *path ? fd : r->config.root;
    if (state_look(directory, NULL, AT_STATX_FORCE_SYNC, &st, NULL))
        return;
    state_limit_mode(directory, NULL, &st, NULL);
    modes_note(r->config.modes, ino, &st);
}

static void *round_thread(void *object)
{
    struct mode_round *r = object;
    CLEANUP_FREE char *path = malloc(CATALOG_PATH_MAX);
    uint64_t directories = path ? catalog_directories(r->config.catalog) : 0, due = clock_now(), next = due;
    do {
        unsigned nodes = r->config.nodes(r->config.user);
        atomic_store(&r->nodes, nodes > 0 ? nodes : 1);
        next = clock_now() + ROUND_LEAST_S * SECOND;
        for (uint64_t ino = CATALOG_ROOT; ino <= directories; ino++) {
            uint64_t now = clock_now();
            look_at_directory(r, ino, path);
            due = (due < now ? now : due) + atomic_load(&r->nodes) * SECOND / LOOKS;
            if (due > now + SLACK && !pause_until(r, due))
                return NULL;
        }
    } while (pause_until(r, next));
    return NULL;
}

uint64_t mode_round_seconds(const struct mode_round *r)
{
    uint64_t seconds = catalog_directories(r->config.catalog) * atomic_load(&r->nodes) / LOOKS;
    return seconds > ROUND_LEAST_S ? seconds : ROUND_LEAST_S;
}

int mode_round_start(const struct mode_round_config *config, struct mode_round **round)
{
    struct mode_round *r = calloc(1, sizeof *r);
    if (!r)
        return -ENOMEM;
    r->config = *config;
    r->nodes = 1;
    pthread_mutex_init(&r->lock, NULL);
    cond_init(&r->ended);
    int error = thread_create(&r->thread, "modes", round_thread, r);
    if (error) {
        pthread_cond_destroy(&r->ended);
        pthread_mutex_destroy(&r->lock);
        free(r);
        return error;
    }
    *round = r;
    return 0;
}

void mode_round_stop(struct mode_round *r)
{
    if (!r)
        return;
    thread_stop(r->thread, &r->lock, &r->ended, &r->stop);
    pthread_cond_destroy(&r->ended);
    pthread_mutex_destroy(&r->lock);
    free(r);
}
