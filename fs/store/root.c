/* One thread at a time tries, without the lock; threads whose reads fail meanwhile wait for its result. An error of a
 * single file says little (ESTALE also means that the file was replaced), so first the root itself is asked. */
#include "fs/store/root.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define TRY_AGAIN SECOND

void root_init(struct root *r, int fd, root_open *open, void *user)
{
    *r = (struct root){.fd = fd, .open = open, .user = user};
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->tried, NULL);
}

void root_fini(struct root *r)
{
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->tried);
}

unsigned root_opened(struct root *r)
{
    LOCK_SCOPE(&r->lock);
    return r->opened;
}

static bool may_be_lost(int error)
{
    return error == -ENOTCONN || error == -ESTALE || error == -ENODEV || error == -ECONNABORTED || error == -ESHUTDOWN;
}

/* 0: the root answers. */
static int ask_root(const struct root *r)
{
    struct statx stx;
    int error = statx(r->fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_TYPE, &stx) < 0 ? -errno : 0;
    return may_be_lost(error) ? error : 0;
}

static void say_root(const struct root *r)
{
    if (!r->lost)
        log_warning("the source was lost: its root was opened again");
    else
        log_limited(LOG_LEVEL_WARNING, 1, "the source is lost: %s; it cannot be opened again: %s", strerror(r->lost),
                    strerror(r->refused));
}

/* With the lock, which is released meanwhile. */
static void try_root(struct root *r)
{
    r->trying = true;
    pthread_mutex_unlock(&r->lock);
    int lost = ask_root(r), refused = lost ? r->open(r->user) : 0;
    if (lost && !refused) /* even a dead mount can be opened, so ask it */
        refused = ask_root(r);
    pthread_mutex_lock(&r->lock);
    r->trying = false;
    r->next = clock_now() + TRY_AGAIN;
    r->lost = refused ? -lost : 0;
    r->refused = -refused;
    if (lost && !refused) {
        r->opened++;
        r->last = clock_now();
    }
    if (lost)
        say_root(r);
    pthread_cond_broadcast(&r->tried);
}

bool root_regain(struct root *r, int error, unsigned opened)
{
    if (!r->open || !may_be_lost(error))
        return false;
    LOCK_SCOPE(&r->lock);
    while (r->trying)
        pthread_cond_wait(&r->tried, &r->lock);
    if (r->opened == opened && clock_now() >= r->next)
        try_root(r);
    return r->opened != opened;
}

void root_look(struct root *r, struct root_state *state)
{
    LOCK_SCOPE(&r->lock);
    *state = (struct root_state){.lost = r->lost, .refused = r->refused, .opened = r->opened, .last = r->last};
}
