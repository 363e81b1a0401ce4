/* Index records name files by their versions, so that a shard can be used under a later catalog. */
#include "fs/store/contents.h"

#include <string.h>

static bool run_is_whole(const struct catalog *c, const struct index_run *run, uint32_t file)
{
    if (file >= catalog_files(c))
        return false;
    uint64_t values = file_values(c, file);
    if ((uint64_t)run->value + run->count > values)
        return false;
    return file_in_blocks(c, file) || (run->value == 0 && run->count == values);
}

int contents_read(const struct segment_file *file, const struct catalog *c, struct match **match, struct index *index)
{
    int error = segment_file_index(file, index);
    bool ours = !error && memcmp(&index->versions, catalog_versions(c), sizeof index->versions) == 0;
    if (!error && !ours && !*match && (error = match_create(c, match)))
        index_fini(index);
    for (uint32_t i = 0; !error && i < index->runs; i++) {
        struct index_run *run = &index->run[i];
        if ((!ours && !match_find(*match, &run->identity, &run->file)) || !run_is_whole(c, run, run->file))
            run->file = NO_FILE;
    }
    return error;
}

bool contents_next(struct contents_walk *w, struct stored_part *p)
{
    const struct index_run *run = &w->index->run[w->run];
    for (; w->run < w->index->runs && (run->file == NO_FILE || w->at == run->count); w->run++, run++) {
        w->before += run->count;
        w->at = 0;
    }
    if (w->run == w->index->runs)
        return false;
    *p = (struct stored_part){
        .file = run->file,
        .value = run->value + w->at,
        .place = run->place + w->at,
        .values = part_values(w->map->catalog, run->file),
        .part = map_part(w->map, run->file, (uint64_t)run->value + w->at),
        .entry = entry_make(w->tier, w->segment, run->place + w->at),
        .stored = w->index->value + w->before + w->at,
    };
    w->at += p->values;
    return true;
}
