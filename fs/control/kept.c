/* Items in a tree by key, and in a list by last use. */
#include "fs/control/kept.h"

#include "fs/control/protocol.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/thread.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_EVERY_MS = 50, IN_USE_S = 60 };

void kept_init(struct kept *kept, size_t size, void (*item_fini)(struct kept_item *item), unsigned places,
               uint64_t most)
{
    *kept = (struct kept){.places = places, .most = most, .size = size, .item_fini = item_fini};
    TAILQ_INIT(&kept->order);
    pthread_mutex_init(&kept->lock, NULL);
    cond_init(&kept->changed);
}

static int key_compare(const void *a, const void *b)
{
    const struct kept_item *left = a, *right = b;
    return memcmp(&left->key, &right->key, sizeof left->key);
}

void kept_remove(struct kept *kept, struct kept_item *item, struct kept_items *gone)
{
    tdelete(item, &kept->tree, key_compare);
    TAILQ_REMOVE(&kept->order, item, by_use);
    TAILQ_INSERT_TAIL(gone, item, by_use);
    kept->count--;
    kept_charge(kept, item, 0);
    pthread_cond_broadcast(&kept->changed);
}

void kept_free(struct kept *kept, struct kept_items *gone)
{
    for (struct kept_item *item; (item = TAILQ_FIRST(gone));) {
        TAILQ_REMOVE(gone, item, by_use);
        kept->item_fini(item);
        free(item);
    }
}

void kept_fini(struct kept *kept)
{
    struct kept_items gone = TAILQ_HEAD_INITIALIZER(gone);
    while (!TAILQ_EMPTY(&kept->order))
        kept_remove(kept, TAILQ_FIRST(&kept->order), &gone);
    kept_free(kept, &gone);
    pthread_cond_destroy(&kept->changed);
    pthread_mutex_destroy(&kept->lock);
}

void kept_charge(struct kept *kept, struct kept_item *item, uint64_t bytes)
{
    kept->bytes += bytes - item->bytes;
    item->bytes = bytes;
}

static struct kept_item *find_idle(const struct kept *kept)
{
    struct kept_item *item;
    TAILQ_FOREACH(item, &kept->order, by_use)
        if (item->ready && item->references == 0)
            return item;
    return NULL;
}

void kept_crowd(struct kept *kept, const struct kept_item *item)
{
    uint64_t now = clock_now();
    if (now < item->used + IN_USE_S * SECOND)
        kept->crowded = now;
}

bool kept_crowded(struct kept *kept)
{
    LOCK_SCOPE(&kept->lock);
    return kept->crowded && clock_now() < kept->crowded + IN_USE_S * SECOND;
}

static void make_room(struct kept *kept, struct kept_items *gone)
{
    while (kept->count > kept->places || kept->bytes > kept->most) {
        struct kept_item *idle = find_idle(kept);
        if (!idle || idle == TAILQ_LAST(&kept->order, kept_items))
            return;
        if (kept->count > kept->places)
            kept_crowd(kept, idle);
        kept_remove(kept, idle, gone);
    }
}

void kept_use(struct kept *kept, struct kept_item *item)
{
    item->references++;
    item->used = clock_now();
    kept->hits++;
    TAILQ_REMOVE(&kept->order, item, by_use);
    TAILQ_INSERT_TAIL(&kept->order, item, by_use);
}

static struct kept_item *find_item(const struct kept *kept, const struct digest *key)
{
    const struct kept_item wanted = {.key = *key};
    struct kept_item *const *node = tfind(&wanted, &kept->tree, key_compare);
    return node ? *node : NULL;
}

static int enter_item(struct kept *kept, const struct digest *key, struct kept_item **item)
{
    struct kept_item *new = calloc(1, kept->size);
    if (new) {
        new->key = *key;
        new->references = 1;
        new->used = clock_now();
    }
    if (!new || !tsearch(new, &kept->tree, key_compare)) {
        free(new);
        return -ENOMEM;
    }
    TAILQ_INSERT_TAIL(&kept->order, new, by_use);
    kept->count++;
    *item = new;
    return 1;
}

/* The asker is asked without the lock: that reads a file. */
bool kept_wait(struct kept *kept, const struct asker *asker, uint64_t *until)
{
    cond_wait_until(&kept->changed, &kept->lock, *until);
    if (clock_now() < *until)
        return false;
    pthread_mutex_unlock(&kept->lock);
    bool gone = asker_gave_up(asker);
    pthread_mutex_lock(&kept->lock);
    *until = clock_now() + LOOK_EVERY_MS * MILLISECOND;
    return gone;
}

int kept_get(struct kept *kept, const struct digest *key, const struct asker *asker, struct kept_item **item)
{
    struct kept_items gone = TAILQ_HEAD_INITIALIZER(gone);
    uint64_t until = clock_now() + LOOK_EVERY_MS * MILLISECOND;
    int result = 0;
    pthread_mutex_lock(&kept->lock);
    while (!result && (*item = find_item(kept, key)) && !(*item)->ready)
        result = kept_wait(kept, asker, &until) ? -EINTR : 0;
    if (!result && *item)
        kept_use(kept, *item);
    else if (!result)
        result = enter_item(kept, key, item);
    make_room(kept, &gone);
    pthread_mutex_unlock(&kept->lock);
    kept_free(kept, &gone);
    return result;
}

struct kept_item *kept_find(struct kept *kept, const struct digest *key)
{
    LOCK_SCOPE(&kept->lock);
    struct kept_item *item = find_item(kept, key);
    if (item && !item->ready)
        item = NULL;
    if (item)
        kept_use(kept, item);
    return item;
}

/* Called with the lock, which it releases. */
static void let_go(struct kept *kept)
{
    struct kept_items gone = TAILQ_HEAD_INITIALIZER(gone);
    make_room(kept, &gone);
    pthread_cond_broadcast(&kept->changed);
    pthread_mutex_unlock(&kept->lock);
    kept_free(kept, &gone);
}

void kept_done(struct kept *kept, struct kept_item *item, uint64_t bytes)
{
    pthread_mutex_lock(&kept->lock);
    item->ready = true;
    kept_charge(kept, item, bytes);
    let_go(kept);
}

void kept_put(struct kept *kept, struct kept_item *item)
{
    pthread_mutex_lock(&kept->lock);
    item->references--;
    let_go(kept);
}

void kept_fail(struct kept *kept, struct kept_item *item)
{
    struct kept_items gone = TAILQ_HEAD_INITIALIZER(gone);
    pthread_mutex_lock(&kept->lock);
    kept_remove(kept, item, &gone);
    pthread_mutex_unlock(&kept->lock);
    kept_free(kept, &gone);
}

bool kept_drop(struct kept *kept)
{
    struct kept_items gone = TAILQ_HEAD_INITIALIZER(gone);
    pthread_mutex_lock(&kept->lock);
    struct kept_item *idle = find_idle(kept);
    if (idle)
        kept_remove(kept, idle, &gone);
    pthread_mutex_unlock(&kept->lock);
    kept_free(kept, &gone);
    return idle;
}
