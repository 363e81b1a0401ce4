/* Writing and reading of index records. Nothing in a record is believed before its checksum and its bounds are right:
 * the segments may have been damaged on the disk. */
#include "fs/store/index.h"

#include "fs/store/span.h"
#include "fs/store/value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct index_header {
    char magic[8];
    uint32_t version, segment, runs, values, replaced, zero;
    struct digest catalog;
    uint64_t checksum; /* of the record with this field zero */
};
_Static_assert(sizeof(struct index_header) == 56, "the header has no holes");
_Static_assert(sizeof(struct index_run) == 32, "a run has no holes");
_Static_assert(sizeof(struct index_value) == 8, "a value has no holes");

static const char magic[8] = "dealfsIX";
enum { INDEX_VERSION = 2 };

static int grow(void *array, uint32_t *room, uint32_t used, size_t size)
{
    if (used < *room)
        return 0;
    uint32_t wanted = *room ? 2 * *room : 256;
    void *grown = realloc(*(void **)array, wanted * size);
    if (!grown)
        return -ENOMEM;
    *(void **)array = grown;
    *room = wanted;
    return 0;
}

bool index_continues(const struct index *index, uint32_t file, uint32_t value, uint32_t place)
{
    if (!index->runs)
        return false;
    const struct index_run *last = &index->run[index->runs - 1];
    return last->file == file && last->value + last->count == value && last->place + last->count == place;
}

int index_add(struct index *index, uint32_t file, uint32_t value, uint32_t place, struct index_value stored,
              const struct digest *identity)
{
    if (grow(&index->value, &index->room_values, index->values, sizeof *index->value))
        return -ENOMEM;
    if (index_continues(index, file, value, place)) {
        index->run[index->runs - 1].count++;
    } else {
        if (grow(&index->run, &index->room_runs, index->runs, sizeof *index->run))
            return -ENOMEM;
        index->run[index->runs++] = (struct index_run){*identity, file, value, place, 1};
    }
    index->value[index->values++] = stored;
    return 0;
}

int index_replace(struct index *index, uint32_t segment)
{
    if (grow(&index->replaces, &index->room_replaced, index->replaced, sizeof *index->replaces))
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
                             .catalog = index->catalog};
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

/* How long the record is that begins with these bytes; 0: none does. */
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

static bool header_is_right(const void *bytes, size_t n, uint32_t segment, struct index_header *h)
{
    return n >= sizeof *h && record_length(bytes, segment, h) == n;
}

size_t index_look(const void *file, size_t n, uint32_t segment, size_t *at)
{
    struct index_header h;
    const char *bytes = file;
    for (size_t left = n >= sizeof h ? n - sizeof h + 1 : 0; left; left--) { /* it is the last of the values */
        size_t length = bytes[left - 1] == magic[0] ? record_length(bytes + left - 1, segment, &h) : 0;
        if (length && length <= n - (left - 1)) {
            *at = left - 1;
            return length;
        }
    }
    return 0;
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
    for (uint32_t i = 0; i < index->values; i++)
        if (index->value[i].length <= VALUE_HEADER || index->value[i].length > VALUE_MOST)
            return false;
    for (uint32_t i = 0; i < index->replaced; i++)
        if (index->replaces[i] >= segment)
            return false;
    return values == index->values;
}

static void *take(const char **bytes, size_t n)
{
    void *copy = malloc(n + !n);
    if (copy)
        memcpy(copy, *bytes, n);
    *bytes += n;
    return copy;
}

static int copy_contents(struct index *index, const struct index_header *h, const char *bytes)
{
    index->catalog = h->catalog;
    index->runs = h->runs;
    index->values = h->values;
    index->replaced = h->replaced;
    index->run = take(&bytes, h->runs * sizeof *index->run);
    index->value = take(&bytes, h->values * sizeof *index->value);
    index->replaces = take(&bytes, h->replaced * sizeof *index->replaces);
    return index->run && index->value && index->replaces ? 0 : -ENOMEM;
}

int index_decode(struct index *index, uint32_t segment, const void *bytes, size_t n)
{
    struct index_header h;
    *index = (struct index){0};
    if (!header_is_right(bytes, n, segment, &h))
        return -EBADMSG;
    CLEANUP_STR struct str copy = STR_INIT;
    str_add(&copy, bytes, n);
    if (copy.failed)
        return -ENOMEM;
    memset(copy.data + offsetof(struct index_header, checksum), 0, sizeof h.checksum);
    if (hash64(copy.data, n, segment) != h.checksum)
        return -EBADMSG;
    int error = copy_contents(index, &h, copy.data + sizeof h);
    if (!error && !contents_are_right(index, segment))
        error = -EBADMSG;
    if (error)
        index_fini(index);
    return error;
}

void index_fini(struct index *index)
{
    free(index->run);
    free(index->value);
    free(index->replaces);
    *index = (struct index){0};
}
