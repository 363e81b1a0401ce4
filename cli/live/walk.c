/* Walks over source and mount together.
 *
 * Threads: the caller walks the directories in order of their names and puts every entry, with a number, into a bounded
 * queue; `jobs` workers take entries out and compare them. If an entry differs, entries after it no longer matter;
 * those before it are still compared, so that always the first difference is reported.
 *
 * One lock guards the queue and the result. It is not held during reads and comparisons. */
#include "cli/live/walk.h"

#include "cli/live/compare.h"
#include "fs/base/beneath.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/thread.h"

#include <fcntl.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>

enum { QUEUE_MOST = 1024 };

struct walk_entry {
    STAILQ_ENTRY(walk_entry) next;
    uint64_t number;
    char path[];
};
STAILQ_HEAD(walk_entries, walk_entry);

struct tree_walk {
    int source, mount;
    const struct walk_options *options;
    struct walk_counts *counts;
    struct walk_entries directories; /* used by the walking thread: directories still to be walked */
    uint64_t numbers;                /* used by the walking thread: number of entries so far */
    _Atomic uint64_t first;          /* the lowest number with a difference; UINT64_MAX: none yet */
    _Atomic uint64_t without_acls;   /* see state_limit_mode */
    _Atomic int error;               /* the first error that ends the walk */

    pthread_mutex_t lock;
    /* signals: an entry was added, or the walk is over; one was taken, or a worker ended */
    pthread_cond_t filled, emptied;
    struct walk_entries queue; /* guarded by lock */
    unsigned length;           /* lock: of the queue */
    bool over;                 /* lock: nothing more will be added */
    int working;               /* lock: workers that have not ended */
    struct str *difference;    /* lock: of entry `first` */
};

static void give_up(struct tree_walk *w, int error)
{
    int none = 0;
    atomic_compare_exchange_strong(&w->error, &none, error);
}

static bool given_up(struct tree_walk *w)
{
    if (w->options->stop && *w->options->stop)
        give_up(w, -ECANCELED);
    return atomic_load(&w->error) != 0;
}

static void note_difference(struct tree_walk *w, uint64_t number, const struct str *difference)
{
    if (difference->failed) {
        give_up(w, -ENOMEM);
        return;
    }
    LOCK_SCOPE(&w->lock);
    if (number < atomic_load(&w->first)) {
        atomic_store(&w->first, number);
        str_clear(w->difference);
        str_add(w->difference, difference->data, difference->length);
    }
}

/* --- a worker --- */

struct walk_worker {
    struct tree_walk *walk;
    uint64_t number; /* of the current entry */
};

static bool is_pointless(void *user)
{
    struct walk_worker *worker = user;
    return given_up(worker->walk) || worker->number > atomic_load(&worker->walk->first);
}

static struct walk_entry *queue_take(struct tree_walk *w)
{
    LOCK_SCOPE(&w->lock);
    while (w->length == 0 && !w->over)
        pthread_cond_wait(&w->filled, &w->lock);
    struct walk_entry *e = STAILQ_FIRST(&w->queue);
    if (e) {
        STAILQ_REMOVE_HEAD(&w->queue, next);
        w->length--;
        pthread_cond_signal(&w->emptied);
    }
    return e;
}

static void compare_next(struct walk_worker *worker, struct compare *compare, const struct walk_entry *e)
{
    struct tree_walk *w = worker->walk;
    worker->number = e->number;
    enum compare_result result = is_pointless(worker) ? COMPARE_STOPPED : compare_entry(compare, e->path);
    if (result == COMPARE_DIFFERS)
        note_difference(w, e->number, &compare->difference);
    else if (result == COMPARE_UNREADABLE)
        atomic_fetch_add(&w->counts->unreadable, 1);
}

static void *worker_body(void *user)
{
    struct tree_walk *w = user;
    struct walk_worker worker = {.walk = w};
    CLEANUP_FREE char *left = malloc(COMPARE_BYTES), *right = malloc(COMPARE_BYTES);
    struct compare compare = {.source = w->source,
                              .derived = w->options->derived,
                              .crew = w->options->crew,
                              .acls = w->options->acls,
                              .without_acls = &w->without_acls,
                              .mount = w->mount,
                              .buffer = {left, right},
                              .bytes = &w->counts->bytes,
                              .stop = is_pointless,
                              .user = &worker};
    if (!left || !right)
        give_up(w, -ENOMEM);
    for (struct walk_entry *e; (e = queue_take(w)); free(e))
        compare_next(&worker, &compare, e);
    str_fini(&compare.difference);
    LOCK_SCOPE(&w->lock);
    w->working--;
    pthread_cond_signal(&w->emptied);
    return NULL;
}

/* --- the walk --- */

static void walk_show(struct tree_walk *w)
{
    struct progress_now now = w->options->total;
    now.files = w->counts->files;
    now.bytes = atomic_load(&w->counts->bytes);
    if (w->options->progress)
        progress_show(w->options->progress, &now);
}

/* Waits for room in the queue, or (`drain`) for the workers to end, and shows the progress meanwhile. The lock is held
 * at entry and exit. */
static void wait_showing(struct tree_walk *w, bool drain)
{
    while (drain ? w->working > 0 : w->length == QUEUE_MOST)
        if (!cond_wait_until(&w->emptied, &w->lock, clock_now() + SECOND / 10)) {
            pthread_mutex_unlock(&w->lock);
            walk_show(w);
            given_up(w);
            pthread_mutex_lock(&w->lock);
        }
}

static struct walk_entry *entry_create(struct tree_walk *w, const char *directory, const char *name)
{
    size_t n = strlen(directory), room = n + strlen(name) + 2;
    struct walk_entry *e = malloc(sizeof *e + room);
    if (e)
        snprintf(e->path, room, "%s%s%s", directory, n > 0 ? "/" : "", name);
    else
        give_up(w, -ENOMEM);
    return e;
}

static void queue_put(struct tree_walk *w, const char *directory, const char *name)
{
    struct walk_entry *e = entry_create(w, directory, name);
    if (!e)
        return;
    e->number = w->numbers++;
    pthread_mutex_lock(&w->lock);
    wait_showing(w, false);
    STAILQ_INSERT_TAIL(&w->queue, e, next);
    w->length++;
    pthread_cond_signal(&w->filled);
    pthread_mutex_unlock(&w->lock);
    walk_show(w);
}

/* The contents of a directory, sorted by name as bytes. */
struct walk_names {
    struct dirent **entry;
    int count;
};

static int is_no_dots(const struct dirent *d)
{
    return strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int names_read(int root, const char *directory, struct walk_names *names)
{
    CLEANUP_CLOSE int fd = beneath_open(root, *directory ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;
    if (fd < 0)
        return fd;
    names->count = scandirat(fd, ".", &names->entry, is_no_dots, by_name);
    for (int i = 0; i < names->count; i++) {
        struct dirent *d = names->entry[i];
        if (d->d_type == DT_UNKNOWN && fstatat(fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            d->d_type = (unsigned char)IFTODT(st.st_mode);
    }
    return names->count < 0 ? -errno : 0;
}

static void names_fini(struct walk_names *names)
{
    for (int i = 0; i < names->count; i++)
        free(names->entry[i]);
    free(names->entry);
}

static void note_path(struct tree_walk *w, const char *path, const char *what, const char *why)
{
    CLEANUP_STR struct str difference = STR_INIT;
    str_add_printable(&difference, *path ? path : ".", *path ? strlen(path) : 1);
    str_addf(&difference, ": %s%s", what, why);
    note_difference(w, w->numbers++, &difference);
}

static void note_only_in(struct tree_walk *w, const char *directory, const char *name, const char *where)
{
    CLEANUP_FREE struct walk_entry *e = entry_create(w, directory, name);
    if (e)
        note_path(w, e->path, "in the ", where);
}

static bool is_special(unsigned char type)
{
    return type != DT_REG && type != DT_DIR && type != DT_LNK && type != DT_UNKNOWN;
}

/* The directories in it come next, in the order of their names, before those that waited already. */
static void walk_both(struct tree_walk *w, const char *directory, const struct dirent *left, const struct dirent *right,
                      struct walk_entry **last)
{
    struct walk_counts *c = w->counts;
    ++*(left->d_type == DT_DIR ? &c->directories : left->d_type == DT_LNK ? &c->links : &c->files);
    queue_put(w, directory, left->d_name);
    struct walk_entry *e =
        left->d_type == DT_DIR && right->d_type == DT_DIR ? entry_create(w, directory, left->d_name) : NULL;
    if (!e)
        return;
    STAILQ_INSERT_AFTER(&w->directories, *last, e, next);
    *last = e;
}

/* Both lists are sorted: one pass over both. */
static void walk_names(struct tree_walk *w, struct walk_entry *directory, const struct walk_names *a,
                       const struct walk_names *b)
{
    struct walk_entry *last = directory;
    for (int i = 0, j = 0; (i < a->count || j < b->count) && !given_up(w) && atomic_load(&w->first) == UINT64_MAX;) {
        const struct dirent *left = i < a->count ? a->entry[i] : NULL, *right = j < b->count ? b->entry[j] : NULL;
        int order = !left ? 1 : !right ? -1 : strcmp(left->d_name, right->d_name);
        const struct dirent *one = order <= 0 ? left : right;
        i += order <= 0;
        j += order >= 0;
        if (!one || (!*directory->path && strcmp(one->d_name, ".dealfs") == 0))
            continue;
        if (order == 0)
            walk_both(w, directory->path, left, right, &last);
        else if (order < 0 && is_special(left->d_type))
            w->counts->left_out++;
        else
            note_only_in(w, directory->path, one->d_name, order < 0 ? "source only" : "mount only");
    }
}

static void walk_directory(struct tree_walk *w, struct walk_entry *directory)
{
    struct walk_names a = {0}, b = {0};
    int error = names_read(w->source, directory->path, &a);
    if (error == -EACCES) {
        atomic_fetch_add(&w->counts->unreadable, 1);
    } else if (error) {
        note_path(w, directory->path, "list it in the source: ", strerror(-error));
    } else {
        error = names_read(w->mount, directory->path, &b);
        if (error)
            note_path(w, directory->path, "list it in the mount: ", strerror(-error));
        else
            walk_names(w, directory, &a, &b);
    }
    names_fini(&a);
    names_fini(&b);
}

static void walk_tree(struct tree_walk *w)
{
    struct walk_entry *directory = entry_create(w, "", "");
    w->counts->directories++;
    queue_put(w, "", "");
    if (directory)
        STAILQ_INSERT_HEAD(&w->directories, directory, next);
    while ((directory = STAILQ_FIRST(&w->directories))) {
        if (!given_up(w) && atomic_load(&w->first) == UINT64_MAX)
            walk_directory(w, directory);
        STAILQ_REMOVE_HEAD(&w->directories, next);
        free(directory);
    }
}

static int walk_with(struct tree_walk *w, pthread_t *thread)
{
    pthread_mutex_lock(&w->lock);
    int started = w->working = threads_start(thread, w->options->jobs, "verify", worker_body, w);
    pthread_mutex_unlock(&w->lock);
    if (started == 0)
        return -EAGAIN;
    walk_tree(w);
    pthread_mutex_lock(&w->lock);
    w->over = true;
    pthread_cond_broadcast(&w->filled);
    wait_showing(w, true);
    pthread_mutex_unlock(&w->lock);
    threads_join(thread, started);
    int error = atomic_load(&w->error);
    return error == -ECANCELED || atomic_load(&w->first) == UINT64_MAX ? error : 1;
}

int walk_compare(int source, int mount, const struct walk_options *options, struct walk_counts *counts,
                 struct str *difference)
{
    CLEANUP_FREE pthread_t *thread = calloc((size_t)options->jobs, sizeof *thread);
    struct tree_walk w = {.source = source,
                          .mount = mount,
                          .options = options,
                          .counts = counts,
                          .first = UINT64_MAX,
                          .directories = STAILQ_HEAD_INITIALIZER(w.directories),
                          .lock = PTHREAD_MUTEX_INITIALIZER,
                          .queue = STAILQ_HEAD_INITIALIZER(w.queue),
                          .difference = difference};
    if (!thread)
        return -ENOMEM;
    cond_init(&w.emptied);
    cond_init(&w.filled);
    int result = walk_with(&w, thread);
    pthread_cond_destroy(&w.emptied);
    pthread_cond_destroy(&w.filled);
    pthread_mutex_destroy(&w.lock);
    return result;
}
