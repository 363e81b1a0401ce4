/* The table of formats, and containers that are compressed. */
#include "fs/records/container.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* In the order in which content is compared: the most reliable signs first. */
static const struct container_format *const table[] = {
    &container_npy, &container_tar, &container_tfrecord, &container_lines, &container_fixed,
};
enum { FORMATS = sizeof table / sizeof *table };

const struct container_format *container_format_find(const char *name)
{
    for (int i = 0; i < FORMATS; i++)
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    return NULL;
}

static const char *find_compression(const unsigned char *head, size_t n)
{
    static const struct {
        const char *name, *magic;
        size_t at, length;
    } known[] = {
        {"gzip", "\x1f\x8b\x08", 0, 3},
        {"zstd", "\x28\xb5\x2f\xfd", 0, 4},
        {"xz", "\xfd\x37zXZ\0", 0, 6},
        {"zip", "PK\x03\x04", 0, 4},
        {"bzip2", "\x31\x41\x59\x26\x53\x59", 4, 6},
        {"lz4", "\x04\x22\x4d\x18", 0, 4},
        {"empty zip", "PK\x05\x06", 0, 4},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (n >= known[i].at + known[i].length && memcmp(head + known[i].at, known[i].magic, known[i].length) == 0)
            return known[i].name;
    return NULL;
}

static int recognise(struct record_scan *s)
{
    size_t n = s->size < CONTAINER_HEAD ? (size_t)s->size : CONTAINER_HEAD;
    const unsigned char *head = scan_look(s, 0, n);
    const char *compression = head && s->format != &container_fixed ? find_compression(head, n) : NULL;
    if (!head)
        return s->error;
    if (compression)
        return str_fail(s->why, -ENOTSUP,
                        "compressed (%s): a record must be a range of the file's bytes; store it uncompressed",
                        compression);
    for (int i = 0; !s->format && i < FORMATS; i++)
        if (table[i]->recognise && table[i]->recognise(head, n, s->size))
            s->format = table[i];
    if (!s->format)
        str_adds(s->why, "neither tar, TFRecord, .npy nor lines of text");
    return s->format ? 0 : -ENOTSUP;
}

int container_scan(struct record_scan *s)
{
    if (s->size == 0)
        return 0;
    s->begin = s->filled = s->count = 0;
    s->window = malloc(s->size < SCAN_WINDOW ? (size_t)s->size : SCAN_WINDOW);
    int error = s->window ? recognise(s) : str_no_memory(s->why);
    if (!error)
        error = s->format->scan(s);
    free(s->window);
    s->window = NULL;
    return error;
}
