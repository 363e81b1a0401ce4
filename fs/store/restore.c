/* Opening a tier: who else has it, what is left over, what is still good.
 *
 * The tier's own lock file is locked before anything is touched: a server that was killed may linger in the kernel
 * with its files open, and until it is gone nothing in the directory is ours. (A lock of fcntl and not of flock: it is
 * not inherited by a child that the server forks.) */
#include "fs/store/tier.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static int take_lock(struct tier *t)
{
    CLEANUP_STR struct str path = STR_INIT;
    str_addf(&path, "%s/lock", t->directory);
    if (path.failed)
        return -ENOMEM;
    CLEANUP_CLOSE int fd = open(path.data, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_SETLK, &whole) < 0)
        return errno == EACCES || errno == EAGAIN ? -EBUSY : -errno;
    t->lock_fd = steal_fd(fd);
    return 0;
}

/* Files that were never ingested. */
static void remove_leftovers(struct tier *t)
{
    CLEANUP_CLOSEDIR DIR *d = opendir(t->directory);
    struct dirent *e;
    while (d && (e = readdir(d)))
        if (strncmp(e->d_name, "new-", 4) == 0)
            unlinkat(dirfd(d), e->d_name, 0);
}

static bool worth_starting_anew(int error)
{
    return error == -EBADMSG || error == -EIO;
}

static int open_database(struct tier *t, struct rocks **rocks)
{
    struct rocks_config config = {t->directory, t->name == TIER_RAM,
                                  t->segment_bytes ? t->capacity / t->segment_bytes + STAGINGS : 0};
    CLEANUP_STR struct str why = STR_INIT;
    int error = rocks_open(&config, rocks, &why);
    if (!error || error == -EBUSY)
        return error;
    log_limited(LOG_LEVEL_WARNING, 5, "%s tier %s: %s%s", tier_names[t->name], t->directory,
                why.data ? why.data : strerror(-error), worth_starting_anew(error) ? ": started anew" : "");
    if (!worth_starting_anew(error))
        return error;
    int removed = rocks_remove(t->directory);
    return removed ? removed : rocks_open(&config, rocks, NULL);
}

static bool run_is_whole(const struct catalog *c, const struct index_run *run, uint32_t file)
{
    if (file >= catalog_files(c))
        return false;
    uint64_t values = file_values(c, file);
    if ((uint64_t)run->value + run->count > values)
        return false;
    return catalog_file(c, file).size > PIECE_BYTES || (run->value == 0 && run->count == values);
}

int tier_read_index(struct tier *t, const struct segment *s, struct index *index, struct match **match)
{
    const struct catalog *c = t->common->catalog;
    const void *bytes;
    size_t n;
    struct rocks_cursor *cursor = NULL;
    int error = tier_stored_value(t, s, INDEX_PLACE, &cursor, &bytes, &n);
    if (!error)
        error = index_decode(index, s->number, bytes, n);
    rocks_cursor_close(cursor);
    bool ours = !error && memcmp(&index->catalog, catalog_digest(c), sizeof index->catalog) == 0;
    if (!error && !ours && !*match && (error = match_create(c, match)))
        index_fini(index);
    for (uint32_t i = 0; !error && i < index->runs; i++) {
        struct index_run *run = &index->run[i];
        if ((!ours && !match_find(*match, &run->identity, &run->file)) || !run_is_whole(c, run, run->file))
            run->file = NO_FILE;
    }
    return error;
}

/* What the map takes of a run; `wanted` only looks. Returns the number of values. */
static uint32_t adopt_run(struct tier *t, uint32_t segment, const struct index_run *run, bool wanted)
{
    struct common *common = t->common;
    uint32_t adopted = 0, step;
    for (uint32_t at = 0; run->file != NO_FILE && at < run->count; at += step) {
        step = part_values(common->catalog, run->file);
        uint64_t offset = ((uint64_t)run->value + at) * VALUE_BYTES;
        uint64_t part = cut_at(common->parts, run->file, offset);
        if (map_get(&common->map, part)) /* a newer segment or the other tier has it */
            continue;
        if (wanted || map_change(&common->map, part, 0, entry_make(t->name, segment, run->place + at))) {
            atomic_fetch_add(&t->parts, wanted ? 0 : 1);
            adopted += step;
        }
    }
    return adopted;
}

static uint32_t adopt_runs(struct tier *t, uint32_t segment, const struct index *index, bool wanted)
{
    uint32_t adopted = 0;
    for (uint32_t i = 0; i < index->runs; i++)
        adopted += adopt_run(t, segment, &index->run[i], wanted);
    return adopted;
}

struct found {
    struct rocks_file file;
    bool replaced;
};

struct found_list {
    struct found *found;
    size_t count, room;
};

static int note_found(void *user, const struct rocks_file *file)
{
    struct found_list *list = user;
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 256;
        struct found *grown = realloc(list->found, room * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        list->found = grown;
        list->room = room;
    }
    list->found[list->count++] = (struct found){*file, false};
    return 0;
}

static int newest_first(const void *a, const void *b)
{
    uint32_t x = ((const struct found *)a)->file.segment, y = ((const struct found *)b)->file.segment;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* In a mapped file the record is looked for, too, so that RocksDB is never asked: its own index of such a file lies in
 * the same memory, and what is damaged there after it was opened it does not notice. */
static void find_record(struct known *known, const struct rocks_file *file)
{
    const void *bytes = known_bytes(known, 0);
    size_t at, n = bytes ? index_look(bytes, file->bytes, file->segment, &at) : 0;
    if (n)
        known_note(known, INDEX_PLACE, at, n);
}

/* What the record says of the file; without memory or descriptors RocksDB is asked for each value. */
static struct known *learn(const struct tier *t, const struct rocks_file *file, const struct index *index)
{
    struct known *known = known_create();
    const struct index_value *value = index->value;
    int fd = -1;
    for (uint32_t i = 0; i < index->runs && known; i++)
        for (uint32_t j = 0; j < index->run[i].count; j++, value++)
            known_note(known, index->run[i].place + j, value->at, value->length);
    if (known && rocks_open_file(t->rocks, file->name, &fd) == 0) {
        tier_give_file(t, known, fd, file->bytes);
        find_record(known, file);
    }
    return known;
}

/* A segment that is wanted by the map is in the table before its parts are in the map. */
static bool adopt_index(struct tier *t, const struct rocks_file *f, const struct index *index)
{
    if (!adopt_runs(t, f->segment, index, true))
        return false; /* its values were moved, or their files are gone */
    struct known *known = learn(t, f, index);
    pthread_mutex_lock(&t->lock);
    bool fits = t->held + f->bytes <= t->capacity;
    struct segment *s = fits ? tier_add_stored(t, f->segment, f->bytes, known) : NULL;
    pthread_mutex_unlock(&t->lock);
    if (!fits) {
        log_warning("%s tier: the budget has no room for segment %u: its values are dropped", tier_names[t->name],
                    f->segment);
        known_destroy(known);
    }
    if (s && adopt_runs(t, f->segment, index, false) < index->values) {
        atomic_store(&s->worn, true);
        pthread_mutex_lock(&t->lock);
        t->worn = true;
        pthread_mutex_unlock(&t->lock);
    }
    return s != NULL;
}

static void note_replaced(struct found_list *list, const struct index *index)
{
    for (uint32_t i = 0; i < index->replaced; i++) {
        struct found key = {.file.segment = index->replaces[i]};
        struct found *f = bsearch(&key, list->found, list->count, sizeof key, newest_first);
        if (f)
            f->replaced = true;
    }
}

/* True: the segment is in the tier; else its file is good for nothing. */
static bool adopt_segment(struct tier *t, const struct found *f, struct found_list *list, struct match **match)
{
    struct index index = {.runs = 0};
    struct segment unknown = {.number = f->file.segment};
    if (f->replaced)
        return false;
    int error = f->file.whole ? tier_read_index(t, &unknown, &index, match) : -EBADMSG;
    if (error) {
        bool passes = tier_will_pass(error);
        log_warning("%s tier: the index of segment %u: %s: the segment is %s", tier_names[t->name], f->file.segment,
                    strerror(-error), passes ? "not used this time" : "dropped");
        return passes;
    }
    note_replaced(list, &index);
    bool adopted = adopt_index(t, &f->file, &index);
    index_fini(&index);
    return adopted;
}

static int adopt_all(struct tier *t)
{
    struct found_list list = {.found = NULL};
    struct match *match = NULL;
    int error = rocks_list(t->rocks, note_found, &list);
    if (!error && list.count)
        qsort(list.found, list.count, sizeof *list.found, newest_first);
    for (size_t i = 0; i < list.count && !error; i++) {
        const struct found *f = &list.found[i];
        uint32_t number = f->file.segment;
        if (i == 0)
            t->next_segment = number == UINT32_MAX ? number : number + 1;
        if (!adopt_segment(t, f, &list, &match))
            rocks_drop(t->rocks, number);
    }
    match_destroy(match);
    free(list.found);
    return error;
}

static void set_state(struct tier *t, enum tier_state state, int error)
{
    pthread_mutex_lock(&t->lock);
    t->state = state;
    t->error = -error;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    if (state == TIER_FAILED)
        log_error("%s tier %s: %s: not used", tier_names[t->name], t->directory, strerror(-error));
}

void tier_open(struct tier *t)
{
    int error = dir_make(t->directory, 0700);
    if (!error && t->lock_fd < 0)
        error = take_lock(t);
    if (!error)
        error = open_database(t, &t->rocks);
    if (error == -EBUSY)
        return; /* still LOCKED */
    if (!error) {
        remove_leftovers(t);
        error = adopt_all(t);
    }
    if (tier_will_pass(error)) { /* nothing was adopted: still LOCKED */
        rocks_close(t->rocks);
        t->rocks = NULL;
        return;
    }
    set_state(t, error ? TIER_FAILED : TIER_OPEN, error);
}
