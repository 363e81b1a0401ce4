/* Makes a record list from an upload, text or packed.
 *
 * Records are in scratch memory until the list is stored. Keys are not stored: they are in the headers of a tar. Only
 * here can it be found whether two records share a key, with a table of hashes of 96 bits in scratch memory. */
#include "fs/base/cleanup.h"
#include "fs/base/hash.h"
#include "fs/base/size.h"
#include "fs/catalog/path-search.h"
#include "fs/catalog/samples-inside.h"

#include <inttypes.h>
#include <string.h>

enum { SHOWN = 1024 };

bool record_lies_in(const struct catalog *c, const struct record *r)
{
    uint64_t size = r->file < catalog_files(c) ? catalog_file(c, r->file).size : 0;
    if (r->file >= catalog_files(c) || (record_offset(r) >= size && r->place != 0))
        return false; /* each record begins in an extent, also an empty one */
    return r->length <= size - record_offset(r);
}

struct key_slot {
    uint64_t hash;
    uint32_t check;
    uint32_t record; /* 1 + its number; 0: free */
};

struct record_reader {
    const struct catalog *catalog;
    struct path_search search;
    struct samples_content content;
    struct record *record; /* room for all lines */
    struct key_slot *slot;
    uint64_t slots;   /* a power of two */
    uint64_t number;  /* of the line */
    const char *path; /* of the previous line, as written */
    size_t path_length;
    char *plain; /* a path without its escapes */
    struct str *why;
};

static int refuse_line(struct record_reader *r, int error, const char *what)
{
    return str_fail(r->why, error, "line %" PRIu64 ": %s", r->number, what);
}

/* --- keys --- */

static void note_key(struct record_reader *r, const char *key, size_t n)
{
    struct record_traits *traits = &r->content.traits;
    struct digest digest = hash128(key, n, 0);
    struct key_slot made = {.hash = digest_head(&digest), .record = r->content.count + 1};
    memcpy(&made.check, digest.byte + sizeof made.hash, sizeof made.check);
    for (uint64_t at = made.hash & (r->slots - 1);; at = (at + 1) & (r->slots - 1)) {
        struct key_slot *slot = &r->slot[at];
        if (!slot->record) {
            *slot = made;
            return;
        }
        if (slot->hash != made.hash || slot->check != made.check)
            continue;
        if (traits->first == traits->second) {
            traits->first = slot->record - 1;
            traits->second = made.record - 1;
        }
        return;
    }
}

/* --- a line --- */

static int find_container(struct record_reader *r, const char *path, size_t n, uint32_t *file)
{
    if (r->path && n == r->path_length && memcmp(path, r->path, n) == 0) {
        *file = r->record[r->content.count - 1].file;
        return 0;
    }
    int error = -ENAMETOOLONG;
    if (!memchr(path, '%', n)) {
        error = path_search_find(&r->search, path, n, file);
    } else if (n < CATALOG_PATH_MAX) {
        memcpy(r->plain, path, n);
        r->plain[n] = '\0';
        long length = percent_decode(r->plain, n);
        error = length < 0 ? -EINVAL : path_search_find(&r->search, r->plain, (size_t)length, file);
        r->search.directory_ino = 0; /* its text is in a buffer that changes */
    }
    if (error) {
        str_addf(r->why, "line %" PRIu64 ": ", r->number);
        path_search_refuse(path, n, error, r->why);
    }
    r->path = path;
    r->path_length = n;
    return error;
}

static int refuse_range(struct record_reader *r, const char *unit, const struct record *record, uint64_t length)
{
    CLEANUP_FREE char *path = malloc(CATALOG_PATH_MAX);
    uint64_t size = catalog_file(r->catalog, record->file).size;
    long n = path ? catalog_path(r->catalog, catalog_file_ino(r->catalog, record->file), path, CATALOG_PATH_MAX) : -1;
    str_addf(r->why, "%s %" PRIu64 ": ", unit, r->number);
    str_add_printable(r->why, n < 0 ? "" : path, n < SHOWN ? (n < 0 ? 0 : (size_t)n) : SHOWN);
    if (length > UINT32_MAX)
        str_addf(r->why, ": a record of %" PRIu64 " bytes: records are shorter than 4 GiB", length);
    else
        str_addf(r->why,
                 ": %" PRIu64 " bytes at offset %" PRIu64 " end beyond the end of the file, which has %" PRIu64
                 " bytes",
                 length, record_offset(record), size);
    return -ERANGE;
}

/* After the path: TAB offset TAB length [+] [TAB label [TAB key]]. */
static int take_fields(struct record_reader *r, const char *at, const char *end, struct record *record)
{
    uint64_t offset, length, label = RECORD_NO_LABEL;
    bool fits = at < end && number_take((at++, &at), end, RECORD_NEWLINE - 1, &offset) && at < end && *at++ == '\t' &&
                number_take(&at, end, INT64_MAX, &length);
    bool newline = fits && at < end && *at == '+';
    at += newline;
    if (fits && at < end && *at == '\t' && at + 1 < end && at[1] != '\t')
        fits = number_take((at++, &at), end, UINT32_MAX, &label);
    else if (fits && at + 1 < end && *at == '\t')
        at++; /* an empty label */
    bool keyed = fits && at + 1 < end && *at == '\t';
    if (!fits || (at < end && !keyed))
        return refuse_line(r, -EINVAL, "not `path TAB offset TAB length [TAB label [TAB key]]`");
    if (r->content.count > 0 && keyed != (r->content.traits.keyed != 0))
        return refuse_line(r, -EINVAL, keyed ? "a key, unlike the lines before" : "no key, unlike the lines before");
    record->place = offset | (newline ? RECORD_NEWLINE : 0);
    record->label = (uint32_t)label;
    record->length = (uint32_t)length;
    r->content.traits.keyed = keyed;
    if (length > UINT32_MAX || !record_lies_in(r->catalog, record))
        return refuse_range(r, "line", record, length);
    if (keyed)
        note_key(r, at + 1, (size_t)(end - at - 1));
    return 0;
}

static int take_line(struct record_reader *r, const char *line, const char *end)
{
    const char *tab = memchr(line, '\t', (size_t)(end - line));
    struct record record;
    uint32_t file = 0;
    r->number++;
    if (!tab || tab == line)
        return refuse_line(r, -EINVAL, "not `path TAB offset TAB length [TAB label [TAB key]]`");
    int error = find_container(r, line, (size_t)(tab - line), &file);
    record.file = file;
    if (!error)
        error = take_fields(r, tab, end, &record);
    if (!error)
        r->record[r->content.count++] = record;
    return error;
}

/* --- all --- */

static int take_text(struct record_reader *r, const struct samples_upload *upload)
{
    const char *rest = upload->text, *line;
    size_t left = upload->length, n;
    int error = 0;
    while (!error && text_line(&rest, &left, '\n', &line, &n))
        error = take_line(r, line, line + n);
    return error;
}

static int take_packed(struct record_reader *r, const struct samples_upload *upload)
{
    uint64_t count = upload->length / sizeof(struct record);
    if (upload->length % sizeof(struct record))
        return str_fail(r->why, -EINVAL, "%zu bytes are not a whole number of packed records of %zu bytes",
                        upload->length, sizeof(struct record));
    memcpy(r->record, upload->text, upload->length);
    for (uint64_t i = 0; i < count; i++) {
        r->number = i + 1;
        if (r->record[i].file >= catalog_files(r->catalog))
            return str_fail(r->why, -ENOENT, "record %" PRIu64 ": there is no file %" PRIu32, r->number,
                            r->record[i].file);
        if (!record_lies_in(r->catalog, &r->record[i]))
            return refuse_range(r, "record", &r->record[i], r->record[i].length);
    }
    r->content.count = (uint32_t)count;
    return 0;
}

static int read_records(struct record_reader *r, const struct samples_upload *upload, const struct record_terms *terms,
                        struct scratch *memory)
{
    CLEANUP_FREE char *plain = r->plain = malloc(CATALOG_PATH_MAX);
    struct scratch slots = {0};
    uint64_t most =
        terms->packed ? upload->length / sizeof(struct record) : text_lines_most(upload->text, upload->length, '\n');
    int error = plain ? 0 : -ENOMEM;
    if (most > SAMPLES_RECORDS_MOST)
        error = -E2BIG;
    for (r->slots = 1; r->slots < most + most / 2;)
        r->slots *= 2;
    if (!error)
        error = scratch_make(terms->directory, most * sizeof *r->record, memory);
    if (!error && !terms->packed)
        error = scratch_make(terms->directory, r->slots * sizeof *r->slot, &slots);
    r->record = memory->bytes;
    r->slot = slots.bytes;
    if (!error)
        error = terms->packed ? take_packed(r, upload) : take_text(r, upload);
    if (error && !r->why->length)
        str_addf(r->why, "record list: %s", strerror(-error));
    scratch_fini(&slots);
    return error;
}

int samples_from_records(const struct catalog *c, const struct samples_upload *upload, const struct record_terms *terms,
                         struct samples **out, struct str *why)
{
    struct record_reader r = {.catalog = c, .search = {.catalog = c, .prefixes = upload->prefixes}, .why = why};
    struct scratch memory = {0};
    r.content.traits.format = terms->format;
    int error = read_records(&r, upload, terms, &memory);
    r.content.record = r.record;
    *out = error ? NULL : samples_make_scratch(c, &r.content, &memory);
    if (*out)
        return 0;
    scratch_fini(&memory);
    return error ? error : str_no_memory(why);
}
