/* Implements originals.h. */
#include "fs/resize/originals.h"

#include <errno.h>

const char *outcome_name(uint32_t outcome)
{
    if (outcome == DERIVED_UNKNOWN)
        return "unknown";
    if (outcome == DERIVED_MADE)
        return "resized";
    return outcome == OUTCOME_UNREADABLE ? "unreadable"
                                         : image_verdict_name((enum image_verdict)(outcome - OUTCOME_PASSES));
}

void outcomes_count(const struct derived *derived, struct outcome_counts *counts)
{
    *counts = (struct outcome_counts){.digest = derived_digest(derived)};
    for (uint32_t file = 0; file < derived->files; file++) {
        const struct derived_record *r = &derived->record[file];
        counts->files[r->outcome < OUTCOMES ? r->outcome : DERIVED_UNKNOWN]++;
        counts->before += r->outcome == DERIVED_MADE ? catalog_file(derived->original, file).size : 0;
        counts->after += r->outcome == DERIVED_MADE ? r->size : 0;
    }
}

static int read_on(struct layer *source, uint32_t file, uint64_t to, struct str *out)
{
    int error = 0;
    while (!error && out->length < to) {
        uint64_t left = to - out->length;
        const struct span span = {
            .file = file, .offset = out->length, .length = left < PIECE_BYTES ? (uint32_t)left : PIECE_BYTES};
        char *room = str_reserve(out, span.length);
        error = room ? source->ops->read(source, &span, &(struct iovec){room, span.length}, 1) : -ENOMEM;
        out->length += error ? 0 : span.length;
    }
    return error;
}

int original_read(struct layer *source, const struct catalog *catalog, uint32_t file, struct str *out)
{
    return read_on(source, file, catalog_file(catalog, file).size, out);
}

int original_read_picture(struct layer *source, const struct catalog *catalog, uint32_t file, struct str *out)
{
    uint64_t size = catalog_file(catalog, file).size;
    int error = read_on(source, file, size < VALUE_BYTES ? size : VALUE_BYTES, out);
    if (error || size > ORIGINALS_MOST || !image_is_jpeg(out->data, out->length))
        return error;
    return read_on(source, file, size, out);
}
