/* Descriptors are closed without the lock: close may wait for a network. */
#include "fs/store/handles.h"

#include "fs/base/clock.h"

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

enum { MOST_AGE_NS = 1000000000 };

static bool handle_expired(const struct handle *handle, uint64_t now)
{
    return now - handle->opened > MOST_AGE_NS;
}

static struct handle handle_take(struct handle *kept)
{
    struct handle taken = *kept;
    kept->fd = -1;
    return taken;
}

void handles_init(struct handles *h)
{
    pthread_mutex_init(&h->lock, NULL);
    for (int i = 0; i < HANDLES; i++)
        h->kept[i].fd = -1;
}

void handles_fini(struct handles *h)
{
    for (int i = 0; i < HANDLES; i++)
        if (h->kept[i].fd >= 0)
            close(h->kept[i].fd);
    pthread_mutex_destroy(&h->lock);
}

int handles_take(struct handles *h, uint32_t file, struct handle *out)
{
    out->fd = -1;
    pthread_mutex_lock(&h->lock);
    for (int i = 0; i < HANDLES && out->fd < 0; i++)
        if (h->kept[i].fd >= 0 && h->kept[i].file == file)
            *out = handle_take(&h->kept[i]);
    pthread_mutex_unlock(&h->lock);
    if (out->fd >= 0 && handle_expired(out, clock_now())) {
        close(out->fd);
        out->fd = -1;
    }
    return out->fd >= 0 ? 0 : -ENOENT;
}

/* Replaces the oldest. */
void handles_give(struct handles *h, struct handle handle)
{
    pthread_mutex_lock(&h->lock);
    struct handle *place = &h->kept[0];
    for (int i = 0; i < HANDLES && place->fd >= 0; i++)
        if (h->kept[i].fd < 0 || h->kept[i].opened < place->opened)
            place = &h->kept[i];
    struct handle old = handle_take(place);
    *place = handle;
    pthread_mutex_unlock(&h->lock);
    if (old.fd >= 0)
        close(old.fd);
}

void handles_expire(struct handles *h)
{
    uint64_t now = clock_now();
    for (int i = 0; i < HANDLES; i++) {
        struct handle old = {.fd = -1};
        pthread_mutex_lock(&h->lock);
        if (h->kept[i].fd >= 0 && handle_expired(&h->kept[i], now))
            old = handle_take(&h->kept[i]);
        pthread_mutex_unlock(&h->lock);
        if (old.fd >= 0)
            close(old.fd);
    }
}
