/* The sample lists of a mount by name.
 *
 * Any thread may look one up. Those who put one take turns (`writing`), because a list is written to disk before it
 * shows, and the lock is not held meanwhile. */
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/catalog/samples.h"

#include <pthread.h>
#include <string.h>

enum { NAME_MOST = 64 };

struct named {
    char name[NAME_MOST + 1];
    struct samples *samples; /* NULL: `all` or `imagefolder` that nobody asked for yet */
};

struct samples_table {
    const struct catalog *catalog;
    char *directory;      /* NULL: lists are not kept */
    pthread_mutex_t lock; /* all below */
    pthread_cond_t idle;  /* writing became false */
    bool writing;
    struct named *list; /* sorted by name */
    size_t count;
};

static bool is_name(const char *name)
{
    size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");
    return n >= 1 && n <= NAME_MOST && name[n] == '\0' && name[0] != '.';
}

static bool is_built_in(const char *name)
{
    return strcmp(name, "all") == 0 || strcmp(name, "imagefolder") == 0;
}

/* ---- the array; with the lock held ---- */

static struct named *find(struct samples_table *t, const char *name)
{
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->list[i].name, name) == 0)
            return &t->list[i];
    return NULL;
}

static struct named *add(struct samples_table *t, const char *name)
{
    struct named *grown = realloc(t->list, (t->count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    t->list = grown;
    size_t place = 0;
    while (place < t->count && strcmp(t->list[place].name, name) < 0)
        place++;
    memmove(&t->list[place + 1], &t->list[place], (t->count - place) * sizeof *t->list);
    t->count++;
    t->list[place].samples = NULL;
    snprintf(t->list[place].name, sizeof t->list[place].name, "%s", name);
    return &t->list[place];
}

/* ---- on disk ---- */

static char *path_of(const struct samples_table *t, const char *name)
{
    struct str path = STR_INIT;
    str_addf(&path, "%s/%s", t->directory, name);
    return str_steal(&path);
}

static int load_one(struct samples_table *t, const char *name)
{
    CLEANUP_FREE char *path = path_of(t, name);
    struct samples *s;
    int error = path ? samples_load(t->catalog, path, &s) : -ENOMEM;
    if (error == -ENOMEM)
        return error;
    if (error) {
        log_warning("sample list %s: %s", path,
                    error == -ESTALE    ? "made for the dataset as it was before: left out"
                    : error == -EBADMSG ? "damaged: left out"
                                        : strerror(-error));
        return 0;
    }
    struct named *named = add(t, name);
    if (!named) {
        samples_put(s);
        return -ENOMEM;
    }
    named->samples = s;
    return 0;
}

static int load_all(struct samples_table *t)
{
    int error = dir_make(t->directory, 0700);
    if (error)
        return error;
    CLEANUP_CLOSEDIR DIR *d = opendir(t->directory);
    if (!d)
        return -errno;
    for (struct dirent *e; !error && (e = readdir(d));)
        if (is_name(e->d_name) && !is_built_in(e->d_name))
            error = load_one(t, e->d_name);
    return error;
}

/* Written, and taken back from disk: what is kept is mapped. Without a directory the list itself. */
static int keep(const struct samples_table *t, const char *name, struct samples *s, struct samples **kept)
{
    if (!t->directory) {
        *kept = samples_get(s);
        return 0;
    }
    CLEANUP_FREE char *path = path_of(t, name);
    int error = path ? samples_save(s, path) : -ENOMEM;
    return error ? error : samples_load(t->catalog, path, kept);
}

/* ---- the table ---- */

int samples_table_create(const struct catalog *c, const char *directory, struct samples_table **table)
{
    struct samples_table *t = calloc(1, sizeof *t);
    if (!t)
        return -ENOMEM;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->idle, NULL);
    t->catalog = c;
    t->directory = directory ? strdup(directory) : NULL;
    int error = (directory && !t->directory) || !add(t, "all") || !add(t, "imagefolder") ? -ENOMEM : 0;
    if (!error && directory)
        error = load_all(t);
    if (error)
        samples_table_destroy(t);
    else
        *table = t;
    return error;
}

void samples_table_destroy(struct samples_table *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->count; i++)
        samples_put(t->list[i].samples);
    free(t->list);
    cleanup_free_(&t->directory);
    pthread_cond_destroy(&t->idle);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

/* Made without the lock; if somebody else was faster, theirs stays. */
static struct samples *make_built_in(struct samples_table *t, const char *name)
{
    struct samples *made = strcmp(name, "all") == 0 ? samples_all(t->catalog) : samples_imagefolder(t->catalog);
    if (!made)
        return NULL;
    pthread_mutex_lock(&t->lock);
    struct named *named = find(t, name);
    struct samples *late = named->samples ? made : NULL;
    if (!late)
        named->samples = made;
    struct samples *s = samples_get(named->samples);
    pthread_mutex_unlock(&t->lock);
    samples_put(late);
    return s;
}

struct samples *samples_table_find(struct samples_table *t, const char *name)
{
    pthread_mutex_lock(&t->lock);
    struct named *named = find(t, name);
    bool known = named;
    struct samples *s = named && named->samples ? samples_get(named->samples) : NULL;
    pthread_mutex_unlock(&t->lock);
    return s || !known ? s : make_built_in(t, name);
}

static void begin_writing(struct samples_table *t)
{
    pthread_mutex_lock(&t->lock);
    while (t->writing)
        pthread_cond_wait(&t->idle, &t->lock);
    t->writing = true;
    pthread_mutex_unlock(&t->lock);
}

/* Shows the list, if there is one. */
static int end_writing(struct samples_table *t, const char *name, struct samples *kept)
{
    pthread_mutex_lock(&t->lock);
    struct named *named = !kept ? NULL : find(t, name) ? find(t, name) : add(t, name);
    struct samples *before = named ? named->samples : kept;
    if (named)
        named->samples = kept;
    t->writing = false;
    pthread_cond_signal(&t->idle);
    pthread_mutex_unlock(&t->lock);
    samples_put(before);
    return kept && !named ? -ENOMEM : 0;
}

int samples_table_put(struct samples_table *t, const char *name, struct samples *s)
{
    struct samples *kept = NULL;
    int error = !is_name(name) ? -EINVAL : is_built_in(name) ? -EEXIST : 0;
    if (!error) {
        begin_writing(t);
        error = keep(t, name, s, &kept);
        int late = end_writing(t, name, error ? NULL : kept);
        error = error ? error : late;
    }
    samples_put(s);
    return error;
}

int samples_table_names(struct samples_table *t, struct str *names)
{
    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->count; i++)
        str_add(names, t->list[i].name, strlen(t->list[i].name) + 1);
    pthread_mutex_unlock(&t->lock);
    return names->failed ? -ENOMEM : 0;
}
