/* Implements remake.h.
 *
 * Threads: any number read concurrently. Two that need the same file may both make it. The last results are cached
 * until the layer is idle, for readers that read a file in pieces; `lock` guards these. */
#include "fs/resize/remake.h"

#include "fs/base/cleanup.h"
#include "fs/base/log.h"
#include "fs/base/thread.h"
#include "fs/image/crew.h"
#include "fs/resize/originals.h"

#include <pthread.h>
#include <semaphore.h>
#include <string.h>

enum { KEPT = 4, LOG_BURST = 10 };

struct remade {
    atomic_int holders;
    uint32_t file;
    struct str bytes;
};

struct remaking {
    struct layer layer, *below;
    const struct derived *derived;
    struct derived_counts *counts, own;
    struct crew *crew;
    sem_t slots; /* limits concurrent work: originals are in memory meanwhile */
    pthread_mutex_t lock;
    struct remade *kept[KEPT]; /* guarded by lock */
    unsigned next;             /* guarded by lock */
};

static struct remaking *remaking_of(struct layer *layer)
{
    return (struct remaking *)layer;
}

static void remade_release(void *object)
{
    struct remade *m = object;
    if (!m || atomic_fetch_sub(&m->holders, 1) > 1)
        return;
    str_fini(&m->bytes);
    free(m);
}

static struct remade *take_kept(struct remaking *r, uint32_t file)
{
    struct remade *found = NULL;
    LOCK_SCOPE(&r->lock);
    for (int i = 0; i < KEPT && !found; i++)
        if (r->kept[i] && r->kept[i]->file == file)
            found = r->kept[i];
    if (found)
        atomic_fetch_add(&found->holders, 1);
    return found;
}

static void keep(struct remaking *r, struct remade *m)
{
    atomic_fetch_add(&m->holders, 1);
    pthread_mutex_lock(&r->lock);
    struct remade *before = r->kept[r->next % KEPT];
    r->kept[r->next++ % KEPT] = m;
    pthread_mutex_unlock(&r->lock);
    remade_release(before);
}

static int complain(struct remaking *r, uint32_t file, const char *why)
{
    CLEANUP_STR struct str name = STR_INIT;
    char path[CATALOG_PATH_MAX];
    const struct catalog *c = r->derived->original;
    long n = catalog_path(c, catalog_file_ino(c, file), path, sizeof path);
    str_add_printable(&name, path, n < 0 ? 0 : (size_t)n);
    log_limited(LOG_LEVEL_WARNING, LOG_BURST, "resize %.1000s again: %s", name.data ? name.data : "?", why);
    atomic_fetch_add(&r->counts->failed, 1);
    return -EIO;
}

static int remake(struct remaking *r, uint32_t file, struct str *out)
{
    const struct derived_record *record = &r->derived->record[file];
    const struct image_shrinking wanted = {.side = r->derived->terms.side, .quality = r->derived->terms.quality};
    CLEANUP_STR struct str original = STR_INIT;
    struct image_reason reason;
    int error = original_read(r->below, r->derived->original, file, &original);
    if (error)
        return error;
    if (crew_shrink(r->crew, original.data, original.length, &wanted, out, &reason) != IMAGE_FINE)
        return complain(r, file, reason.text);
    if (out->length != record->size || hash64(out->data, out->length, 0) != record->hash)
        return complain(r, file, "the result differs from the first one: another libjpeg, or another processor");
    atomic_fetch_add(&r->counts->remade, 1);
    return 0;
}

static int remake_take(struct remaking *r, uint32_t file, struct remade **out)
{
    struct remade *m = take_kept(r, file);
    if (!m) {
        m = calloc(1, sizeof *m);
        if (!m)
            return -ENOMEM;
        m->file = file;
        atomic_init(&m->holders, 1);
        while (sem_wait(&r->slots) < 0)
            ;
        int error = remake(r, file, &m->bytes);
        sem_post(&r->slots);
        if (error) {
            remade_release(m);
            return error;
        }
        keep(r, m);
    }
    *out = m;
    return 0;
}

/* --- the layer --- */

static bool is_made(const struct remaking *r, uint32_t file)
{
    return file < r->derived->files && r->derived->record[file].outcome == DERIVED_MADE;
}

static bool is_within(const struct remaking *r, const struct span *span)
{
    uint32_t size = r->derived->record[span->file].size;
    return span->offset <= size && span->length <= size - span->offset;
}

static int remake_get(struct layer *layer, const struct span *span, struct answer *answer)
{
    struct remaking *r = remaking_of(layer);
    struct remade *m;
    if (!is_made(r, span->file))
        return r->below->ops->get(r->below, span, answer);
    int error = is_within(r, span) ? remake_take(r, span->file, &m) : -EINVAL;
    if (error)
        return error;
    answer_pin(answer, remade_release, m);
    answer_add(answer, m->bytes.data + span->offset, span->length);
    return 0;
}

static int remake_read(struct layer *layer, const struct span *span, const struct iovec *into, int count)
{
    struct remaking *r = remaking_of(layer);
    struct remade *m;
    uint64_t at = span->offset;
    if (!is_made(r, span->file))
        return r->below->ops->read(r->below, span, into, count);
    int error = is_within(r, span) ? remake_take(r, span->file, &m) : -EINVAL;
    if (error)
        return error;
    for (int i = 0; i < count && at < m->bytes.length; at += into[i++].iov_len)
        memcpy(into[i].iov_base, m->bytes.data + at,
               into[i].iov_len < m->bytes.length - at ? into[i].iov_len : m->bytes.length - at);
    remade_release(m);
    return 0;
}

static void drop_kept(struct remaking *r)
{
    struct remade *dropped[KEPT];
    pthread_mutex_lock(&r->lock);
    memcpy(dropped, r->kept, sizeof dropped);
    memset(r->kept, 0, sizeof r->kept);
    pthread_mutex_unlock(&r->lock);
    for (int i = 0; i < KEPT; i++)
        remade_release(dropped[i]);
}

static void remake_idle(struct layer *layer)
{
    struct remaking *r = remaking_of(layer);
    drop_kept(r);
    crew_rest(r->crew);
    layer_idle(r->below);
}

static void remake_stop(struct layer *layer)
{
    struct remaking *r = remaking_of(layer);
    crew_stop(r->crew);
    layer_stop(r->below);
}

static void remake_destroy(struct layer *layer)
{
    struct remaking *r = remaking_of(layer);
    drop_kept(r);
    crew_destroy(r->crew);
    sem_destroy(&r->slots);
    layer_destroy(r->below);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

static const struct layer_ops remake_ops = {
    .get = remake_get, .read = remake_read, .idle = remake_idle, .stop = remake_stop, .destroy = remake_destroy};

int remake_create(const struct derived *derived, const char *program, struct derived_counts *counts,
                  struct layer *below, struct layer **layer)
{
    struct remaking *r = calloc(1, sizeof *r);
    int error = r ? crew_create(program, &r->crew) : -ENOMEM;
    if (error) {
        free(r);
        return error;
    }
    crew_allow(r->crew, CREW_SHRINK_MEMORY);
    r->layer.ops = &remake_ops;
    r->below = below;
    r->derived = derived;
    r->counts = counts ? counts : &r->own;
    pthread_mutex_init(&r->lock, NULL);
    sem_init(&r->slots, 0, processors_count());
    *layer = &r->layer;
    return 0;
}
