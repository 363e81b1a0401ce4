/* rocks-write.c finds where each value is in the file; the index record stores that. */
#include "fs/store/writer.h"

int writer_begin(const struct stock *k, uint32_t number, struct segment_writer *w)
{
    *w = (struct segment_writer){.stock = k, .number = number};
    w->index.versions = *catalog_versions(k->map->catalog);
    return rocks_write_begin(k->rocks, number, &w->rocks);
}

int writer_put(struct segment_writer *w, uint32_t place, const struct value_place *value, const void *bytes)
{
    struct value_place stored = *value;
    int error = rocks_write_put(w->rocks, place, bytes, value->length, &stored.at);
    return error ? error : index_add(&w->index, w->stock->map->catalog, place, &stored);
}

/* The file is already ingested: if its values cannot be found, it is dropped. */
static int open_written(const struct segment_writer *w, const struct rocks_file *written, struct segment_file **file)
{
    int error = segment_file_open(w->stock->rocks, written, w->stock->name == TIER_RAM, file);
    if (!error && (error = segment_file_learn(*file, &w->index)))
        segment_file_close(*file);
    if (error)
        rocks_drop(w->stock->rocks, w->number);
    return error;
}

int writer_end(struct segment_writer *w, struct segment_file **file)
{
    CLEANUP_STR struct str record = STR_INIT;
    struct rocks_file written;
    uint32_t at;
    int error = index_encode(&w->index, w->number, &record);
    if (!error)
        error = rocks_write_put(w->rocks, INDEX_PLACE, record.data, record.length, &at);
    if (error)
        return error;
    error = rocks_write_end(w->rocks, &written);
    w->rocks = NULL;
    return error ? error : open_written(w, &written, file);
}

void writer_fini(struct segment_writer *w)
{
    rocks_write_cancel(w->rocks);
    index_fini(&w->index);
}
