/* The walk over source and mount at once.
 *
 * Threads: the caller walks the directories in order of their names and puts every entry, numbered, into a bounded
 * queue; `jobs` workers take them out and compare. When an entry differs, what stands after it in the walk no longer
 * matters; what stands before it is still compared, so that the difference reported does not depend on luck.
 *
 * One lock guards the queue and the outcome. Nothing is read or compared while it is held. */
#include "cli/walk.h"

#include "cli/compare.h"
#include "cli/tree.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { QUEUE = 1024 };

struct item {
    char *path; /* owned */
    uint64_t number;
};

struct walk {
    int source, mount;
    const struct walk_options *options;
    _Atomic uint64_t files, directories, links, bytes, left_out, unreadable;
    _Atomic uint64_t first; /* the lowest number that differs; UINT64_MAX: none yet */
    _Atomic int error;      /* the first reason to give up */

    pthread_mutex_t lock;
    pthread_cond_t filled, emptied; /* an item came or the walk is over; one went or a worker ended */
    struct item queue[QUEUE];       /* lock; a ring */
    unsigned head, length;          /* lock */
    bool over;                      /* lock: nothing more will come */
    int working;                    /* lock: workers that have not ended */
    uint64_t next;                  /* of the walking thread */
    struct str difference;          /* lock; of `first` */
};

static void give_up(struct walk *w, int error)
{
    int none = 0;

    atomic_compare_exchange_strong(&w->error, &none, error);
}

static bool given_up(struct walk *w)
{
    if (w->options->stop && *w->options->stop)
        give_up(w, -ECANCELED);
    return atomic_load(&w->error) != 0;
}

static void found(struct walk *w, uint64_t number, const struct str *difference)
{
    pthread_mutex_lock(&w->lock);
    if (number < atomic_load(&w->first)) {
        atomic_store(&w->first, number);
        str_clear(&w->difference);
        str_add(&w->difference, difference->data, difference->length);
    }
    pthread_mutex_unlock(&w->lock);
}

/* A worker: the entry in hand. */
struct worker {
    struct walk *walk;
    uint64_t number;
};

static bool pointless(void *user)
{
    struct worker *worker = user;

    return given_up(worker->walk) || worker->number > atomic_load(&worker->walk->first);
}

static void count_bytes(void *user, uint64_t bytes)
{
    atomic_fetch_add(&((struct worker *)user)->walk->bytes, bytes);
}

static bool take(struct walk *w, struct item *item)
{
    pthread_mutex_lock(&w->lock);
    while (w->length == 0 && !w->over)
        pthread_cond_wait(&w->filled, &w->lock);
    bool got = w->length > 0;
    if (got) {
        *item = w->queue[w->head];
        w->head = (w->head + 1) % QUEUE;
        w->length--;
        pthread_cond_signal(&w->emptied);
    }
    pthread_mutex_unlock(&w->lock);
    return got;
}

static void compare_item(struct worker *worker, struct compare *compare, const struct item *item)
{
    struct walk *w = worker->walk;
    CLEANUP_STR struct str difference = STR_INIT;

    worker->number = item->number;
    if (pointless(worker))
        return;
    switch (compare_entry(compare, item->path, &difference)) {
    case COMPARE_DIFFERS:
        if (difference.failed)
            give_up(w, -ENOMEM);
        else
            found(w, item->number, &difference);
        break;
    case COMPARE_UNREADABLE:
        atomic_fetch_add(&w->unreadable, 1);
        break;
    case COMPARE_SAME:
    case COMPARE_STOPPED:
        break;
    }
}

static void *work(void *user)
{
    struct walk *w = user;
    struct worker worker = {.walk = w};
    struct compare compare = {.source = w->source, .mount = w->mount, .stop = pointless, .read = count_bytes,
                              .user = &worker};
    struct item item;

    if (compare_init(&compare) < 0)
        give_up(w, -ENOMEM);
    while (take(w, &item)) {
        if (!given_up(w))
            compare_item(&worker, &compare, &item);
        free(item.path);
    }
    compare_fini(&compare);
    pthread_mutex_lock(&w->lock);
    w->working--;
    pthread_cond_signal(&w->emptied);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void read_counts(struct walk *w, struct walk_counts *counts)
{
    *counts = (struct walk_counts){
        .files = w->files, .directories = w->directories, .links = w->links,
        .bytes = w->bytes, .left_out = w->left_out, .unreadable = w->unreadable,
    };
}

static void show(struct walk *w)
{
    struct walk_counts now;

    read_counts(w, &now);
    if (w->options->progress)
        w->options->progress(w->options->user, &now);
}

/* Waits for room in the queue, or (`drain`) for the workers to end, and shows the progress meanwhile. The lock is held
 * at entry and exit. */
static void wait_showing(struct walk *w, bool drain)
{
    while (drain ? w->working > 0 : w->length == QUEUE) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += 100000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000;
        }
        if (pthread_cond_timedwait(&w->emptied, &w->lock, &until) == ETIMEDOUT) {
            pthread_mutex_unlock(&w->lock);
            show(w);
            given_up(w);
            pthread_mutex_lock(&w->lock);
        }
    }
}

/* Takes the path over. */
static void put(struct walk *w, char *path)
{
    if (!path) {
        give_up(w, -ENOMEM);
        return;
    }
    pthread_mutex_lock(&w->lock);
    wait_showing(w, false);
    w->queue[(w->head + w->length++) % QUEUE] = (struct item){path, w->next++};
    pthread_cond_signal(&w->filled);
    bool due = w->next % 256 == 0;
    pthread_mutex_unlock(&w->lock);
    if (due)
        show(w);
}

static char *join(const char *directory, const char *name)
{
    struct str path = STR_INIT;

    if (*directory) {
        str_adds(&path, directory);
        str_adds(&path, "/");
    }
    str_adds(&path, name);
    if (path.failed) {
        str_fini(&path);
        return NULL;
    }
    return str_steal(&path);
}

/* Directories that wait for their turn, the next one last. */
struct pending {
    char **path;
    size_t count, room;
};

static int pending_push(struct pending *p, char *path)
{
    if (!path)
        return -ENOMEM;
    if (p->count == p->room) {
        size_t room = p->room ? p->room * 2 : 64;
        char **grown = reallocarray(p->path, room, sizeof *grown);
        if (!grown) {
            free(path);
            return -ENOMEM;
        }
        p->path = grown;
        p->room = room;
    }
    p->path[p->count++] = path;
    return 0;
}

static bool passed_over(const char *directory, const char *name)
{
    return !*directory && strcmp(name, ".dealfs") == 0;
}

static bool is_special(unsigned char type)
{
    return type != DT_REG && type != DT_DIR && type != DT_LNK;
}

static void only_in(struct walk *w, const char *directory, const char *name, const char *where)
{
    CLEANUP_STR struct str difference = STR_INIT;
    char *path = join(directory, name);

    if (path)
        str_add_printable(&difference, path, strlen(path));
    str_addf(&difference, ": in the %s only", where);
    free(path);
    found(w, w->next++, &difference);
}

static void count_type(struct walk *w, unsigned char type)
{
    atomic_fetch_add(type == DT_DIR ? &w->directories : type == DT_LNK ? &w->links : &w->files, 1);
}

/* Both lists are sorted: one pass over both. */
static void walk_lists(struct walk *w, const char *directory, const struct tree_list *a, const struct tree_list *b,
                       struct pending *pending)
{
    size_t i = 0, j = 0;

    while ((i < a->count || j < b->count) && !given_up(w) && atomic_load(&w->first) == UINT64_MAX) {
        const struct tree_entry *left = i < a->count ? &a->entry[i] : NULL;
        const struct tree_entry *right = j < b->count ? &b->entry[j] : NULL;
        int order = !left ? 1 : !right ? -1 : strcmp(left->name, right->name);

        i += order <= 0;
        j += order >= 0;
        if (passed_over(directory, order <= 0 ? left->name : right->name))
            continue;
        if (order <= 0 && is_special(left->type) && order != 0) {
            atomic_fetch_add(&w->left_out, 1);
        } else if (order < 0) {
            only_in(w, directory, left->name, "source");
        } else if (order > 0) {
            only_in(w, directory, right->name, "mount");
        } else {
            count_type(w, left->type);
            put(w, join(directory, left->name));
            if (left->type == DT_DIR && right->type == DT_DIR && pending_push(pending, join(directory, left->name)))
                give_up(w, -ENOMEM);
        }
    }
}

static void unlisted(struct walk *w, const char *directory, const char *where, int error)
{
    CLEANUP_STR struct str difference = STR_INIT;

    if (*directory)
        str_add_printable(&difference, directory, strlen(directory));
    else
        str_adds(&difference, ".");
    str_addf(&difference, ": list it in the %s: %s", where, strerror(-error));
    found(w, w->next++, &difference);
}

static void walk_directory(struct walk *w, const char *directory, struct pending *pending)
{
    struct tree_list a, b = {0};
    size_t before = pending->count;
    int error = tree_list(w->source, directory, &a);

    if (error == -EACCES) {
        atomic_fetch_add(&w->unreadable, 1);
        return;
    }
    if (error) {
        unlisted(w, directory, "source", error);
        return;
    }
    error = tree_list(w->mount, directory, &b);
    if (error)
        unlisted(w, directory, "mount", error);
    else
        walk_lists(w, directory, &a, &b, pending);
    /* pushed in order of names; the one to come next must stand last */
    for (size_t i = before, j = pending->count; i + 1 < j; i++, j--) {
        char *swap = pending->path[i];
        pending->path[i] = pending->path[j - 1];
        pending->path[j - 1] = swap;
    }
    tree_list_fini(&a);
    tree_list_fini(&b);
}

static void walk_tree(struct walk *w)
{
    struct pending pending = {0};

    atomic_fetch_add(&w->directories, 1);
    put(w, strdup(""));
    if (pending_push(&pending, strdup("")))
        give_up(w, -ENOMEM);
    while (pending.count > 0) {
        char *directory = pending.path[--pending.count];
        if (!given_up(w) && atomic_load(&w->first) == UINT64_MAX)
            walk_directory(w, directory, &pending);
        free(directory);
    }
    free(pending.path);
}

static int start_workers(struct walk *w, pthread_t *thread, int jobs)
{
    int started = 0;

    while (started < jobs && pthread_create(&thread[started], NULL, work, w) == 0)
        started++;
    w->working = started;
    return started;
}

static struct walk *walk_create(int source, int mount, const struct walk_options *options)
{
    struct walk *w = calloc(1, sizeof *w);
    pthread_condattr_t monotonic;

    if (!w)
        return NULL;
    w->source = source;
    w->mount = mount;
    w->options = options;
    w->first = UINT64_MAX;
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&w->emptied, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_cond_init(&w->filled, NULL);
    return w;
}

static void walk_destroy(struct walk *w)
{
    pthread_cond_destroy(&w->emptied);
    pthread_cond_destroy(&w->filled);
    pthread_mutex_destroy(&w->lock);
    str_fini(&w->difference);
    free(w);
}

int walk_compare(int source, int mount, const struct walk_options *options, struct walk_counts *counts,
                 struct str *difference)
{
    struct walk *w = walk_create(source, mount, options);
    pthread_t *thread = calloc((size_t)options->jobs, sizeof *thread);
    int result = -ENOMEM, started = 0;

    if (!w || !thread)
        goto done;
    pthread_mutex_lock(&w->lock);
    started = start_workers(w, thread, options->jobs);
    pthread_mutex_unlock(&w->lock);
    result = -EAGAIN;
    if (started == 0)
        goto done;
    walk_tree(w);
    pthread_mutex_lock(&w->lock);
    w->over = true;
    pthread_cond_broadcast(&w->filled);
    wait_showing(w, true);
    pthread_mutex_unlock(&w->lock);
    for (int i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    read_counts(w, counts);
    result = atomic_load(&w->first) != UINT64_MAX ? 1 : atomic_load(&w->error);
    if (atomic_load(&w->error) == -ECANCELED)
        result = -ECANCELED;
    if (result == 1)
        str_add(difference, w->difference.data, w->difference.length);
done:
    free(thread);
    if (w)
        walk_destroy(w);
    return result;
}
