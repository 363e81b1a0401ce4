/* The sample lists of a mount by name.
 *
 * Any thread may look one up. Those who put one take turns, because a list is written to disk before it shows.
 *
 * Lock order: `writing`, which is held over that, then `lock`, which is not. */
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/catalog/samples.h"

#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

enum { NAME_MOST = 64 };

struct named_list {
    char name[NAME_MOST + 1];
    struct samples *samples; /* NULL: `all` or `imagefolder` that nobody asked for yet */
};

struct samples_table {
    const struct catalog *catalog;
    char *directory;         /* NULL: lists are not kept */
    pthread_mutex_t writing; /* the files in it */
    pthread_mutex_t lock;    /* all below */
    struct named_list *list; /* sorted by name */
    size_t count;
};

static bool is_name(const char *name)
{
    size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");
    return n >= 1 && n <= NAME_MOST && name[n] == '\0' && name[0] != '.';
}

bool samples_built_in(const char *name)
{
    return strcmp(name, "all") == 0 || strcmp(name, "imagefolder") == 0;
}

/* ---- the array; with the lock held, but for show_list ---- */

static struct named_list *named_find(struct samples_table *t, const char *name)
{
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->list[i].name, name) == 0)
            return &t->list[i];
    return NULL;
}

static struct named_list *named_add(struct samples_table *t, const char *name)
{
    struct named_list *grown = realloc(t->list, (t->count + 1) * sizeof *grown);
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

/* In the place of the list that had the name; takes the reference over. */
static int show_list(struct samples_table *t, const char *name, struct samples *kept)
{
    pthread_mutex_lock(&t->lock);
    struct named_list *named = named_find(t, name);
    if (!named)
        named = named_add(t, name);
    struct samples *before = named ? named->samples : kept;
    if (named)
        named->samples = kept;
    pthread_mutex_unlock(&t->lock);
    samples_put(before);
    return named ? 0 : -ENOMEM;
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
    return show_list(t, name, s);
}

/* The state directory that it stands in may be gone, and is not made anew: then lists are not kept. */
static int load_all(struct samples_table *t)
{
    CLEANUP_CLOSEDIR DIR *d = mkdir(t->directory, 0700) == 0 || errno == EEXIST ? opendir(t->directory) : NULL;
    int error = 0;
    if (!d) {
        log_warning("sample lists cannot be kept in %s: %s", t->directory, strerror(errno));
        cleanup_free_(&t->directory);
        t->directory = NULL;
    }
    for (struct dirent *e; d && !error && (e = readdir(d));)
        if (is_name(e->d_name) && !samples_built_in(e->d_name))
            error = load_one(t, e->d_name);
    return error;
}

/* Written, and taken back from disk: what is kept is mapped. Without a directory the list itself. */
static int keep_list(const struct samples_table *t, const char *name, struct samples *s, struct samples **kept)
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
    pthread_mutex_init(&t->writing, NULL);
    t->catalog = c;
    t->directory = directory ? strdup(directory) : NULL;
    int error = (directory && !t->directory) || !named_add(t, "all") || !named_add(t, "imagefolder") ? -ENOMEM : 0;
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
    pthread_mutex_destroy(&t->writing);
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
    struct named_list *named = named_find(t, name);
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
    struct named_list *named = named_find(t, name);
    bool known = named;
    struct samples *s = named && named->samples ? samples_get(named->samples) : NULL;
    pthread_mutex_unlock(&t->lock);
    return s || !known ? s : make_built_in(t, name);
}

int samples_table_put(struct samples_table *t, const char *name, struct samples *s)
{
    struct samples *kept;
    int error = !is_name(name) ? -EINVAL : samples_built_in(name) ? -EEXIST : 0;
    if (!error) {
        pthread_mutex_lock(&t->writing);
        error = keep_list(t, name, s, &kept);
        if (!error)
            error = show_list(t, name, kept);
        pthread_mutex_unlock(&t->writing);
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
