/* Writes and reads index records. Segments may have been damaged on disk, so nothing in a record is used before its
 * checksum and its bounds were checked. */
#include "fs/store/index.h"

#include "fs/base/array.h"
#include "fs/store/answer.h"
#include "fs/store/value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct index_header {
    char magic[8];
    uint32_t version, segment, runs, values, replaced, zero;
    struct digest versions;
    uint64_t checksum; /* of the record with this field set to 0 */
};
_Static_assert(sizeof(struct index_header) == 56, "the header has no holes");
_Static_assert(sizeof(struct index_run) == 32, "a run has no holes");
_Static_assert(sizeof(struct index_value) == 8, "a value has no holes");

static const char magic[8] = "dealfsIX";
enum { INDEX_VERSION = 3 };

static bool continues_run(const struct index *index, uint32_t place, const struct value_place *v)
{
    if (!index->runs)
        return false;
    const struct index_run *last = &index->run[index->runs - 1];
    return last->file == v->file && last->value + last->count == v->value && last->place + last->count == place;
}

int index_add(struct index *index, const struct catalog *c, uint32_t place, const struct value_place *v)
{
    if (array_reserve(index->value, index->room_values, index->values + 1) ||
        array_reserve(index->run, index->room_runs, index->runs + 1))
        return -ENOMEM;
    if (continues_run(index, place, v))
        index->run[index->runs - 1].count++;
    else
        index->run[index->runs++] = (struct index_run){catalog_file_version(c, v->file), v->file, v->value, place, 1};
    index->value[index->values++] = (struct index_value){v->length, v->at};
    return 0;
}

int index_replace(struct index *index, uint32_t segment)
{
    if (array_reserve(index->replaces, index->room_replaced, index->replaced + 1))
        return -ENOMEM;
    index->replaces[index->replaced++] = segment;
    return 0;
}

int index_encode(const struct index *index, uint32_t segment, struct str *out)
{
    struct index_header h = {.version = INDEX_VERSION,
                             .segment = segment,
                             .runs = index->runs,
                             .values = index->values,
                             .replaced = index->replaced,
                             .versions = index->versions};
    memcpy(h.magic, magic, sizeof magic);
    size_t at = out->length;
    str_add(out, &h, sizeof h);
    if (index->runs) {
        str_add(out, index->run, index->runs * sizeof *index->run);
        str_add(out, index->value, index->values * sizeof *index->value);
    }
    if (index->replaced)
        str_add(out, index->replaces, index->replaced * sizeof *index->replaces);
    if (out->failed)
        return -ENOMEM;
    h.checksum = hash64(out->data + at, out->length - at, segment);
    memcpy(out->data + at, &h, sizeof h);
    return 0;
}

/* Length of the record that begins with these bytes; 0: no record. */
static size_t record_length(const void *bytes, uint32_t segment, struct index_header *h)
{
    memcpy(h, bytes, sizeof *h);
    if (memcmp(h->magic, magic, sizeof magic) != 0 || h->version != INDEX_VERSION || h->segment != segment)
        return 0;
    if (h->runs > SEGMENT_PLACES || h->values > SEGMENT_PLACES || h->runs > h->values)
        return 0;
    return sizeof *h + h->runs * sizeof(struct index_run) + h->values * sizeof(struct index_value) +
           (size_t)h->replaced * sizeof(uint32_t);
}

static bool contents_are_right(const struct index *index, uint32_t segment)
{
    uint64_t values = 0, place = 0;
    for (uint32_t i = 0; i < index->runs; i++) {
        const struct index_run *run = &index->run[i];
        if (!run->count || run->place < place || run->count > SEGMENT_PLACES ||
            (uint64_t)run->value + run->count > UINT32_MAX)
            return false;
        place = (uint64_t)run->place + run->count;
        values += run->count;
        if (place > SEGMENT_PLACES)
            return false;
    }
    uint64_t end = 1; /* no value begins at 0 */
    for (uint32_t i = 0; i < index->values; i++) {
        const struct index_value *value = &index->value[i];
        if (value->at < end || value->length <= VALUE_HEADER || value->length > VALUE_MOST)
            return false;
        end = (uint64_t)value->at + value->length;
    }
    for (uint32_t i = 0; i < index->replaced; i++)
        if (index->replaces[i] >= segment)
            return false;
    return values == index->values;
}

static int decode_record(struct index *index, const struct index_header *h, const char *bytes, size_t n)
{
    struct str record = STR_INIT;
    str_add(&record, bytes, n);
    if (record.failed)
        return -ENOMEM;
    memset(record.data + offsetof(struct index_header, checksum), 0, sizeof h->checksum);
    char *runs = record.data + sizeof *h, *values = runs + h->runs * sizeof *index->run;
    *index = (struct index){
        .versions = h->versions,
        .runs = h->runs,
        .values = h->values,
        .replaced = h->replaced,
        .run = (struct index_run *)runs,
        .value = (struct index_value *)values,
        .replaces = (uint32_t *)(values + h->values * sizeof *index->value),
        .record = record,
    };
    if (hash64(record.data, n, h->segment) == h->checksum && contents_are_right(index, h->segment))
        return 0;
    index_fini(index);
    return -EBADMSG;
}

int index_find(struct index *index, uint32_t segment, const void *file, size_t n)
{
    struct index_header h;
    const char *bytes = file;
    *index = (struct index){0};
    for (size_t at = n >= sizeof h ? n - sizeof h + 1 : 0; at--;) {
        size_t length = bytes[at] == magic[0] ? record_length(bytes + at, segment, &h) : 0;
        if (length && length <= n - at)
            return decode_record(index, &h, bytes + at, length);
    }
    return -ENOENT;
}

void index_fini(struct index *index)
{
    if (!index->record.data) {
        free(index->run);
        free(index->value);
        free(index->replaces);
    }
    str_fini(&index->record);
    *index = (struct index){0};
}
