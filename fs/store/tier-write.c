/* A new segment's file, written by the tier's thread: values, the index record, and what is known of it for its
 * readers. */
#include "fs/store/tier.h"

#include "fs/base/log.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int tier_writer_begin(struct tier *t, uint32_t number, struct tier_writer *w)
{
    *w = (struct tier_writer){.tier = t, .number = number, .known = known_create()};
    w->index.catalog = *catalog_digest(t->common->catalog);
    return w->known ? rocks_write_begin(t->rocks, number, &w->rocks) : -ENOMEM;
}

int tier_writer_put(struct tier_writer *w, uint32_t place, uint32_t file, uint32_t value, const void *bytes, uint32_t n)
{
    struct digest identity = {{0}};
    uint64_t at;
    int error = rocks_write_put(w->rocks, place, bytes, n, &at);
    if (error)
        return error;
    if (!index_continues(&w->index, file, value, place))
        identity = catalog_file_identity(w->tier->common->catalog, file);
    struct index_value stored = {n, at <= UINT32_MAX ? (uint32_t)at : 0};
    error = index_add(&w->index, file, value, place, stored, &identity);
    return error ? error : known_note(w->known, place, at, n);
}

/* Without the file, or with its values elsewhere, RocksDB is asked. */
void tier_give_file(const struct tier *t, struct known *known, int fd, uint64_t bytes)
{
    if (fd < 0)
        return;
    if (t->name != TIER_RAM) {
        known_take(known, fd);
        return;
    }
    int error = known_map(known, fd, bytes);
    if (error)
        log_limited(LOG_LEVEL_WARNING, 1, "map a segment of %s: %s", t->directory, strerror(-error));
    close(fd);
}

int tier_writer_end(struct tier_writer *w, uint64_t *bytes, struct known **known)
{
    CLEANUP_STR struct str record = STR_INIT;
    uint64_t at;
    int fd = -1, error = index_encode(&w->index, w->number, &record);
    if (!error)
        error = rocks_write_put(w->rocks, INDEX_PLACE, record.data, record.length, &at);
    if (!error) {
        known_note(w->known, INDEX_PLACE, at, record.length);
        error = rocks_write_end(w->rocks, bytes, &fd);
        w->rocks = NULL;
    }
    if (!error) {
        tier_give_file(w->tier, w->known, fd, *bytes);
        *known = w->known;
        w->known = NULL;
    }
    return error;
}

void tier_writer_fini(struct tier_writer *w)
{
    rocks_write_cancel(w->rocks);
    index_fini(&w->index);
    known_destroy(w->known);
}
