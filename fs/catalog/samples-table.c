/* The sample lists of a mount by name.
 *
 * Any thread may look one up. Threads that put lists take turns, because a list is written to disk before it is
 * visible.
 *
 * Lock order: `writing`, held during the write; then `lock`, which is not. */
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/catalog/samples-folder.h"
#include "fs/catalog/samples-inside.h"

#include <pthread.h>
#include <string.h>

enum { MOST_BYTES = 64 << 20, MOST_OF_A_FILE = 16 };

struct named_list {
    char name[SAMPLES_NAME + 1];
    uint64_t version;        /* 0: built in */
    struct samples *samples; /* NULL: removed; or `all` or `imagefolder` before first use */
};

struct samples_table {
    const struct catalog *catalog;
    struct samples_folder folder;
    pthread_mutex_t writing; /* guards the files */
    pthread_mutex_t lock;    /* guards all fields below */
    struct named_list *list; /* sorted by name */
    size_t count;
};

bool samples_built_in(const char *name)
{
    return strcmp(name, "all") == 0 || strcmp(name, "imagefolder") == 0;
}

/* --- the array; with the lock held, except show_list --- */

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
    t->list[place] = (struct named_list){0};
    snprintf(t->list[place].name, sizeof t->list[place].name, "%s", name);
    return &t->list[place];
}

static void named_drop(struct samples_table *t, struct named_list *named)
{
    size_t place = (size_t)(named - t->list);
    t->count--;
    memmove(named, named + 1, (t->count - place) * sizeof *named);
}

static bool is_removed(const struct named_list *named)
{
    return named->version > 0 && !named->samples;
}

static bool is_costs(const struct named_list *named)
{
    return named->samples && samples_costs(named->samples);
}

/* Replaces the list with that name; owns the reference. NULL: the name is removed. */
static int show_list(struct samples_table *t, const char *name, uint64_t version, struct samples *kept)
{
    pthread_mutex_lock(&t->lock);
    struct named_list *named = named_find(t, name);
    if (!named)
        named = named_add(t, name);
    struct samples *before = named ? named->samples : kept;
    if (named) {
        named->samples = kept;
        named->version = version;
    }
    pthread_mutex_unlock(&t->lock);
    samples_put(before);
    return named ? 0 : -ENOMEM;
}

static int show_loaded(void *table, const char *name, uint64_t version, struct samples *list)
{
    return show_list(table, name, version, list);
}

/* --- the table --- */

int samples_table_create(const struct catalog *c, const char *directory, struct samples_table **table)
{
    struct samples_table *t = calloc(1, sizeof *t);
    if (!t)
        return -ENOMEM;
    pthread_mutex_init(&t->lock, NULL);
    pthread_mutex_init(&t->writing, NULL);
    t->catalog = c;
    int error = named_add(t, "all") && named_add(t, "imagefolder") ? 0 : -ENOMEM;
    if (!error && directory)
        error = samples_folder_open(&t->folder, c, directory, show_loaded, t);
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
    free(t->folder.path);
    pthread_mutex_destroy(&t->writing);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

/* Created without the lock; if another thread was faster, its list stays. */
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

/* `known`: the name exists, or will exist. */
static struct samples *find_kind(struct samples_table *t, const char *name, bool costs, bool *known)
{
    LOCK_SCOPE(&t->lock);
    struct named_list *named = named_find(t, name);
    *known = named && !is_removed(named) && is_costs(named) == costs;
    return *known && named->samples ? samples_get(named->samples) : NULL;
}

struct samples *samples_table_find(struct samples_table *t, const char *name)
{
    bool known;
    struct samples *s = find_kind(t, name, false, &known);
    return s || !known ? s : make_built_in(t, name);
}

uint64_t samples_table_version(struct samples_table *t, const char *name)
{
    LOCK_SCOPE(&t->lock);
    struct named_list *named = named_find(t, name);
    return named ? named->version : 0;
}

struct samples *samples_table_costs(struct samples_table *t, const char *name)
{
    bool known;
    return find_kind(t, name, true, &known);
}

int samples_table_names(struct samples_table *t, bool costs, struct str *names)
{
    LOCK_SCOPE(&t->lock);
    for (size_t i = 0; i < t->count; i++)
        if (!is_removed(&t->list[i]) && is_costs(&t->list[i]) == costs)
            str_add(names, t->list[i].name, strlen(t->list[i].name) + 1);
    return names->failed ? -ENOMEM : 0;
}

uint64_t samples_table_record_count(struct samples_table *t)
{
    uint64_t count = 0;
    LOCK_SCOPE(&t->lock);
    for (size_t i = 0; i < t->count; i++)
        if (t->list[i].samples && samples_records(t->list[i].samples))
            count += samples_count(t->list[i].samples);
    return count;
}

const char *samples_table_directory(const struct samples_table *t)
{
    return t->folder.path;
}

/* --- changes; with `writing` held --- */

uint64_t samples_table_most(const struct samples_table *t)
{
    return (MOST_BYTES + (uint64_t)MOST_OF_A_FILE * catalog_files(t->catalog)) / sizeof(uint32_t);
}

/* Lists of files, of records and of costs have separate limits. */
static int kind_of(const struct samples *s)
{
    return samples_costs(s) ? 2 : samples_records(s) ? 1 : 0;
}

/* Is there room for this list, if it replaces the one with its name? */
static int check_room(struct samples_table *t, const char *name, const struct samples *s)
{
    uint64_t lists = 0, count = samples_count(s);
    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->count; i++)
        if (t->list[i].version > 0 && t->list[i].samples && strcmp(t->list[i].name, name) != 0) {
            lists++;
            if (kind_of(t->list[i].samples) == kind_of(s))
                count += samples_count(t->list[i].samples);
        }
    pthread_mutex_unlock(&t->lock);
    uint64_t most = kind_of(s) > 0 ? SAMPLES_RECORDS_MOST : samples_table_most(t);
    if (samples_costs(s) && most < samples_table_most(t))
        most = samples_table_most(t);
    return lists >= SAMPLES_LISTS ? -EDQUOT : count > most ? -E2BIG : 0;
}

/* Higher than `after` and all known versions. Based on the clock, so that it is also higher than those of absent
 * nodes. */
static uint64_t next_version(struct samples_table *t, uint64_t after)
{
    uint64_t now = clock_realtime(), version = now > after ? now : after + 1;
    LOCK_SCOPE(&t->lock);
    for (size_t i = 0; i < t->count; i++)
        if (t->list[i].version >= version)
            version = t->list[i].version + 1;
    return version;
}

static int write_list(struct samples_table *t, const char *name, uint64_t version, struct samples *s)
{
    struct samples *kept;
    int error = check_room(t, name, s);
    if (!error)
        error = samples_folder_keep(&t->folder, name, version, s, &kept);
    return error ? error : show_list(t, name, version, kept);
}

/* Nodes exchange a limited number of removed names: forget the oldest. */
static void forget_oldest(struct samples_table *t)
{
    char name[SAMPLES_NAME + 1] = "";
    struct named_list *oldest = NULL;
    size_t removed = 0;
    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->count; i++)
        if (is_removed(&t->list[i])) {
            removed++;
            oldest = !oldest || t->list[i].version < oldest->version ? &t->list[i] : oldest;
        }
    if (removed > SAMPLES_RECORDS - SAMPLES_LISTS) {
        memcpy(name, oldest->name, sizeof name);
        named_drop(t, oldest);
    }
    pthread_mutex_unlock(&t->lock);
    if (*name)
        samples_folder_delete(&t->folder, name);
}

/* A file without samples records that the name was removed. If it cannot be written, the list is removed
 * nevertheless. */
static int write_removal(struct samples_table *t, const char *name, uint64_t version)
{
    struct files none = {0};
    CLEANUP_SAMPLES struct samples *empty = NULL, *kept = NULL;
    int error = files_to_samples(&none, 0, t->catalog, &empty);
    if (error)
        return error;
    if (t->folder.path && samples_folder_keep(&t->folder, name, version, empty, &kept))
        samples_folder_delete(&t->folder, name);
    error = show_list(t, name, version, NULL);
    forget_oldest(t);
    return error;
}

static int check_name(const char *name)
{
    return !samples_folder_name(name) ? -EINVAL : samples_built_in(name) ? -EEXIST : 0;
}

static int check_kind(struct samples_table *t, const char *name, const struct samples *s)
{
    bool known;
    samples_put(find_kind(t, name, !samples_costs(s), &known));
    return known ? -ENOTUNIQ : 0;
}

int samples_table_put(struct samples_table *t, const char *name, uint64_t after, struct samples *s)
{
    int error = check_name(name);
    if (!error) {
        pthread_mutex_lock(&t->writing);
        error = check_kind(t, name, s);
        if (!error)
            error = write_list(t, name, next_version(t, after), s);
        pthread_mutex_unlock(&t->writing);
    }
    samples_put(s);
    return error;
}

int samples_table_remove(struct samples_table *t, const char *name, bool costs)
{
    int error = check_name(name);
    if (error)
        return error;
    pthread_mutex_lock(&t->writing);
    struct samples *s = costs ? samples_table_costs(t, name) : samples_table_find(t, name);
    error = s ? write_removal(t, name, next_version(t, 0)) : -ENOENT;
    pthread_mutex_unlock(&t->writing);
    samples_put(s);
    return error;
}

/* --- other nodes' --- */

static struct samples_record record_of(const struct named_list *named)
{
    struct samples_record r = {.version = named->version};
    memcpy(r.name, named->name, strlen(named->name));
    if (named->samples) {
        r.count = samples_count(named->samples);
        r.digest = *samples_digest(named->samples);
    }
    return r;
}

uint32_t samples_table_records(struct samples_table *t, struct samples_record record[SAMPLES_RECORDS])
{
    uint32_t n = 0;
    LOCK_SCOPE(&t->lock);
    for (size_t i = 0; i < t->count && n < SAMPLES_RECORDS; i++)
        if (t->list[i].version > 0)
            record[n++] = record_of(&t->list[i]);
    return n;
}

static bool record_is_sound(const struct samples_table *t, const struct samples_record *r)
{
    static const struct digest none;
    return memchr(r->name, 0, sizeof r->name) && check_name(r->name) == 0 && r->version > 0 &&
           r->version < UINT64_MAX / 2 && (r->count <= samples_table_most(t) || r->count <= SAMPLES_RECORDS_MOST) &&
           (r->count > 0 || digest_equal(&r->digest, &none));
}

int samples_record_compare(const struct samples_record *a, const struct samples_record *b)
{
    if (a->version != b->version)
        return a->version < b->version ? -1 : 1;
    return memcmp(&a->digest, &b->digest, sizeof a->digest);
}

bool samples_table_wants(struct samples_table *t, const struct samples_record *record)
{
    if (!record_is_sound(t, record))
        return false;
    LOCK_SCOPE(&t->lock);
    const struct named_list *named = named_find(t, record->name);
    const struct samples_record own = named ? record_of(named) : (struct samples_record){0};
    return samples_record_compare(record, &own) > 0;
}

static int take_list(struct samples_table *t, const struct samples_record *record, int fd)
{
    CLEANUP_SAMPLES struct samples *s = NULL;
    uint64_t version;
    int error = samples_load_fd(t->catalog, fd, &s, &version);
    if (error)
        return error;
    if (samples_count(s) != record->count || !digest_equal(samples_digest(s), &record->digest))
        return -EBADMSG;
    return write_list(t, record->name, record->version, s);
}

int samples_table_take(struct samples_table *t, const struct samples_record *record, int fd)
{
    int error = 0;
    LOCK_SCOPE(&t->writing);
    if (samples_table_wants(t, record))
        error = record->count > 0 ? take_list(t, record, fd) : write_removal(t, record->name, record->version);
    return error;
}

ssize_t samples_table_bytes(struct samples_table *t, uint64_t key, uint64_t offset, void *to, size_t n,
                            uint64_t *length)
{
    struct samples *s = NULL;
    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->count && !s; i++)
        if (t->list[i].version > 0 && t->list[i].samples && digest_head(samples_digest(t->list[i].samples)) == key)
            s = samples_get(t->list[i].samples);
    pthread_mutex_unlock(&t->lock);
    if (!s || offset >= s->map_length) {
        samples_put(s);
        return -ENOENT;
    }
    *length = s->map_length;
    n = n < s->map_length - offset ? n : s->map_length - offset;
    memcpy(to, (const char *)s->map + offset, n);
    samples_put(s);
    return (ssize_t)n;
}
