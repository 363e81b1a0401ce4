/* Segments are read from the newest to the oldest, because a newer segment may replace older ones. */
#include "fs/store/restore.h"

#include "fs/base/log.h"
#include "fs/store/contents.h"
#include "fs/store/distrust.h"

#include <stdlib.h>
#include <string.h>

struct restoring {
    struct stock *stock;
    struct match *match;
    struct distrust distrust;
    struct rocks_file *file; /* the newest first */
    size_t files;
    bool *replaced; /* per file */
};

static int newest_first(const void *a, const void *b)
{
    uint32_t x = ((const struct rocks_file *)a)->segment, y = ((const struct rocks_file *)b)->segment;
    return x < y ? 1 : x > y ? -1 : 0;
}

static void note_replaced(const struct restoring *r, const struct index *index)
{
    for (uint32_t i = 0; i < index->replaced; i++) {
        struct rocks_file key = {.segment = index->replaces[i]};
        const struct rocks_file *f = bsearch(&key, r->file, r->files, sizeof key, newest_first);
        if (f)
            r->replaced[f - r->file] = true;
    }
}

/* How many values of a segment the map takes, or would take (`look`). A newer segment or the other tier may already
 * have them. */
static uint32_t adopt_parts(struct stock *k, uint32_t segment, const struct index *index, bool look)
{
    struct contents_walk walk = {.map = k->map, .tier = k->name, .segment = segment, .index = index};
    struct stored_part p;
    uint32_t adopted = 0;
    while (contents_next(&walk, &p)) {
        if (look ? map_get(k->map, p.part) != 0 : !map_change(k->map, p.part, 0, p.entry))
            continue;
        atomic_fetch_add(&k->parts, look ? 0 : 1);
        adopted += p.values;
    }
    return adopted;
}

static void forget_distrusted(const struct restoring *r, struct index *index)
{
    uint64_t scanned = catalog_scanned(r->stock->map->catalog);
    for (uint32_t i = 0; i < index->runs; i++)
        if (r->distrust.count && distrust_has(&r->distrust, &index->run[i].identity, scanned))
            index->run[i].file = NO_FILE;
}

/* The segment is put into the table before its parts are put into the map. Owns `file` if it returns 0 and `wanted`. */
static int adopt_contents(struct stock *k, struct segment_file *file, const struct index *index, bool *wanted)
{
    const struct rocks_file *which = segment_file_which(file);
    /* false: its values were moved, or their files are gone */
    *wanted = adopt_parts(k, which->segment, index, true) > 0;
    int error = *wanted ? segment_file_learn(file, index) : 0;
    if (!*wanted || error)
        return error;
    pthread_mutex_lock(&k->lock);
    *wanted = k->held + which->bytes <= k->capacity;
    struct segment *s = *wanted ? stock_add(k, file) : NULL;
    pthread_mutex_unlock(&k->lock);
    if (!*wanted)
        log_warning("%s tier: the budget has no room for segment %u: its values are dropped", tier_names[k->name],
                    which->segment);
    if (s && adopt_parts(k, which->segment, index, false) < index->values)
        stock_wear(k, s);
    return *wanted && !s ? -ENOMEM : 0;
}

/* The segment's file stays and counts as used, though nothing of it is read. A disk that fails gets no more writes. */
static void leave_segment(struct stock *k, const struct rocks_file *file, int error)
{
    pthread_mutex_lock(&k->lock);
    k->held += file->bytes;
    pthread_mutex_unlock(&k->lock);
    if (!stock_may_recover(error))
        stock_close(k, error);
}

/* True: the segment is in the tier, or stays unused; false: its file may be dropped. */
static bool adopt_segment(struct restoring *r, const struct rocks_file *which)
{
    struct stock *k = r->stock;
    struct index index = {.runs = 0};
    struct segment_file *file = NULL;
    bool wanted = false;
    int error = which->whole ? segment_file_open(k->rocks, which, k->name == TIER_RAM, &file) : -EBADMSG;
    if (!error)
        error = contents_read(file, k->map->catalog, &r->match, &index);
    if (!error) {
        note_replaced(r, &index);
        forget_distrusted(r, &index);
        error = adopt_contents(k, file, &index, &wanted);
    }
    index_fini(&index);
    if (!error && wanted)
        return true;
    segment_file_close(file);
    if (!error)
        return false;
    bool damage = rocks_is_damage(error);
    log_warning("%s tier: the index of segment %u: %s: the segment is %s", tier_names[k->name], which->segment,
                strerror(-error), damage ? "dropped" : "not used by this mount");
    if (!damage)
        leave_segment(k, which, error);
    return !damage;
}

static int adopt_segments(struct restoring *r)
{
    struct stock *k = r->stock;
    int error = rocks_list(k->rocks, &r->file, &r->files);
    r->replaced = error ? NULL : calloc(r->files + 1, sizeof *r->replaced);
    if (!error && !r->replaced)
        error = -ENOMEM;
    if (!error && r->files) {
        qsort(r->file, r->files, sizeof *r->file, newest_first);
        uint32_t newest = r->file[0].segment;
        k->next_segment = newest == UINT32_MAX ? newest : newest + 1;
    }
    for (size_t i = 0; i < r->files && !error; i++)
        if ((r->replaced[i] || !adopt_segment(r, &r->file[i])) && !atomic_load(&k->failing))
            rocks_drop(k->rocks, r->file[i].segment);
    return error;
}

static int adopt_all(struct stock *k, const struct tier_folder *folder)
{
    struct restoring *r = calloc(1, sizeof *r);
    if (!r)
        return -ENOMEM;
    r->stock = k;
    int error = distrust_read(folder->path, &r->distrust);
    if (!error)
        error = adopt_segments(r);
    if (!error && r->distrust.count == DISTRUST_MOST && !atomic_load(&k->failing))
        distrust_clear(folder->path);
    match_destroy(r->match);
    free(r->replaced);
    free(r->file);
    free(r);
    return error;
}

int restore_stock(struct stock *k, const struct tier_folder *folder)
{
    struct rocks_config config = {
        .directory = folder->path,
        .ram = k->name == TIER_RAM,
        .segments = k->segment_bytes ? k->capacity / k->segment_bytes : 0,
        .note = folder->lock,
    };
    CLEANUP_STR struct str why = STR_INIT;
    int error = rocks_open(&config, &k->rocks, &why);
    if (error && error != -EBUSY && why.length)
        log_limited(LOG_LEVEL_WARNING, 5, "%s tier %s: %s", tier_names[k->name], k->directory, why.data);
    if (!error)
        error = adopt_all(k, folder);
    if (stock_may_recover(error)) { /* nothing was adopted */
        rocks_close(k->rocks);
        k->rocks = NULL;
    }
    return error;
}
