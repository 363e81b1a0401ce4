/* Writes records in the form in which they are uploaded. */
#include "fs/catalog/record.h"

#include "fs/base/str.h"

#include <endian.h>
#include <inttypes.h>
#include <string.h>

void record_add_packed(const struct record *record, struct str *out)
{
    const struct record packed = {
        .file = htole32(record->file),
        .length = htole32(record->length),
        .place = htole64(record->place),
        .label = htole32(record->label),
    };
    str_add(out, &packed, sizeof packed);
}

void record_add_text(const struct record *record, const char *path, const char *key, size_t n, struct str *out)
{
    str_add_percent(out, path, strlen(path));
    str_addf(out, "\t%" PRIu64 "\t%" PRIu32 "%s", record_offset(record), record->length,
             record->place & RECORD_NEWLINE ? "+" : "");
    if (key) {
        str_adds(out, "\t\t");
        str_add_percent(out, key, n);
    }
    str_adds(out, "\n");
}
