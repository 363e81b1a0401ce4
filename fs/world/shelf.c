/* The shelf has references to layouts that could not be saved. Saved ones are opened when they are needed. `lock` is
 * not held during I/O. */
#include "fs/world/shelf.h"

#include "fs/base/cleanup.h"
#include "fs/base/halt.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

static const char prefix[] = "layout-";

struct shelf {
    const char *state;
    pthread_mutex_t lock;                 /* guards all fields below */
    struct layout *unsaved[LAYOUTS_KEPT]; /* the newest first, NULLs at the end */
};

int shelf_create(const char *state, struct shelf **shelf)
{
    struct shelf *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->state = state;
    pthread_mutex_init(&s->lock, NULL);
    *shelf = s;
    return 0;
}

void shelf_destroy(struct shelf *s)
{
    if (!s)
        return;
    for (int i = 0; i < LAYOUTS_KEPT; i++)
        layout_close(s->unsaved[i]);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static void layout_path(const struct shelf *s, char path[PATH_MAX], const struct digest *digest)
{
    char text[DIGEST_TEXT];
    snprintf(path, PATH_MAX, "%s/%s%s", s->state, prefix, digest_format(digest, text));
}

/* --- in memory --- */

/* The caller holds the lock. */
static int unsaved_place(const struct shelf *s, const struct digest *digest)
{
    int i = 0;
    while (i < LAYOUTS_KEPT && s->unsaved[i] && !layout_is(s->unsaved[i], digest))
        i++;
    return i;
}

/* Put the layout first or, if it has been saved, remove it. */
static void note_unsaved(struct shelf *s, struct layout *layout, bool saved)
{
    pthread_mutex_lock(&s->lock);
    int place = unsaved_place(s, layout_digest(layout)), last = LAYOUTS_KEPT - 1;
    struct layout *gone = s->unsaved[place < last ? place : last];
    if (saved && place <= last) {
        memmove(&s->unsaved[place], &s->unsaved[place + 1], (size_t)(last - place) * sizeof gone);
        s->unsaved[last] = NULL;
    } else if (!saved) {
        memmove(&s->unsaved[1], &s->unsaved[0], (size_t)(place < last ? place : last) * sizeof gone);
        s->unsaved[0] = layout_get(layout);
    } else {
        gone = NULL;
    }
    pthread_mutex_unlock(&s->lock);
    layout_close(gone);
}

static struct layout *find_unsaved(struct shelf *s, const struct digest *digest)
{
    LOCK_SCOPE(&s->lock);
    int place = unsaved_place(s, digest);
    return place < LAYOUTS_KEPT && s->unsaved[place] ? layout_get(s->unsaved[place]) : NULL;
}

/* --- on disk --- */

struct saved_layout {
    struct timespec time;
    char name[NAME_MAX + 1];
};

static bool is_older(const struct saved_layout *a, const struct saved_layout *b)
{
    return a->time.tv_sec != b->time.tv_sec ? a->time.tv_sec < b->time.tv_sec : a->time.tv_nsec < b->time.tv_nsec;
}

/* Find the oldest saved layout, and count all. */
static int find_oldest(DIR *dir, struct saved_layout *oldest)
{
    int count = 0;
    oldest->name[0] = '\0';
    rewinddir(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct saved_layout one;
        struct stat st;
        if (strncmp(entry->d_name, prefix, strlen(prefix)) ||
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        count++;
        one.time = st.st_mtim;
        strcpy(one.name, entry->d_name);
        if (!oldest->name[0] || is_older(&one, oldest))
            *oldest = one;
    }
    return count;
}

static void prune_saved(const char *state)
{
    CLEANUP_CLOSEDIR DIR *dir = opendir(state);
    struct saved_layout oldest;
    while (dir && find_oldest(dir, &oldest) > LAYOUTS_KEPT)
        if (unlinkat(dirfd(dir), oldest.name, 0) < 0)
            return;
}

int shelf_keep(struct shelf *s, struct layout *layout)
{
    char path[PATH_MAX];
    layout_path(s, path, layout_digest(layout));
    int error = halt_fault("save-layout");
    if (!error)
        error = layout_save(layout, path);
    if (!error)
        prune_saved(s->state);
    note_unsaved(s, layout, !error);
    return error;
}

int shelf_find(struct shelf *s, const struct catalog *catalog, const struct digest *digest, struct layout **layout)
{
    char path[PATH_MAX];
    if ((*layout = find_unsaved(s, digest)))
        return 0;
    layout_path(s, path, digest);
    int error = layout_open(path, catalog, layout);
    if (error || layout_is(*layout, digest))
        return error;
    layout_close(*layout);
    return -EBADMSG;
}

uint64_t shelf_key(const struct digest *digest)
{
    uint64_t key;
    memcpy(&key, digest->byte, sizeof key);
    return key;
}

static bool find_saved_key(const struct shelf *s, uint64_t key, struct digest *digest)
{
    CLEANUP_CLOSEDIR DIR *dir = opendir(s->state);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
            digest_parse(entry->d_name + strlen(prefix), digest) == 0 && shelf_key(digest) == key)
            return true;
    return false;
}

int shelf_find_key(struct shelf *s, const struct catalog *catalog, uint64_t key, struct layout **layout)
{
    struct digest digest;
    bool found = false;
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < LAYOUTS_KEPT && s->unsaved[i] && !found; i++) {
        digest = *layout_digest(s->unsaved[i]);
        found = shelf_key(&digest) == key;
    }
    pthread_mutex_unlock(&s->lock);
    if (!found && !find_saved_key(s, key, &digest))
        return -ENOENT;
    return shelf_find(s, catalog, &digest, layout);
}
