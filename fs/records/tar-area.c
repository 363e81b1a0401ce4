/* A renamed area is written header by header, by a writer that knows how much room each of them has. It is the only
 * place that compares a length with a room: whether names fit is found out by writing them. */
#include "fs/records/tar-area.h"

#include "fs/records/tar-header.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SPARSE_MORE = 482, SPARSE_MORE_NEXT = 504 };

/* --- reading --- */

static size_t directory_length(const char *name, size_t n)
{
    const char *slash = memrchr(name, '/', n);
    return slash ? (size_t)(slash + 1 - name) : 0;
}

static bool keyword_is_name(const struct tar_keyword *k)
{
    return tar_keyword_is(k, "path") || tar_keyword_is(k, "GNU.sparse.name");
}

static int take_name(struct tar_area *a, const char *bytes, const char *name, size_t n)
{
    size_t stem = tar_key_length(name, n) - directory_length(name, n);
    if (n > TAR_NAME_MOST)
        return -ENAMETOOLONG;
    a->name = (size_t)(name - bytes);
    a->length = n;
    a->stem = stem > a->stem ? stem : a->stem;
    return 0;
}

static int take_words(struct tar_area *a, const char *bytes, const char *text, size_t n)
{
    struct tar_keyword k;
    int turn, error = 0;
    while (!error && (turn = tar_keyword_next(&text, &n, &k)) > 0) {
        if (keyword_is_name(&k)) {
            a->named = true;
            error = take_name(a, bytes, k.value, k.value_length);
        } else if (tar_keyword_is(&k, "size") && k.value_length) {
            a->sized = true;
            error = tar_decimal(k.value, k.value_length, &a->size) ? 0 : -EBADMSG;
        }
    }
    return error ? error : turn < 0 ? -EBADMSG : 0;
}

/* The size of a header whose area fits. */
static size_t extension_size(const char *header)
{
    const struct tar_header *h = (const void *)header;
    uint64_t size = 0;
    tar_number(h->size, sizeof h->size, &size);
    return (size_t)size;
}

static int take_extension(struct tar_area *a, const char *bytes)
{
    const char *header = bytes + a->main, *text = header + TAR_BLOCK;
    size_t size = extension_size(header);
    char type = ((const struct tar_header *)(const void *)header)->type;
    a->extension = false;
    a->main += TAR_BLOCK + (size_t)tar_padded(size);
    if (type == 'K')
        return 0;
    if (type != 'L')
        return take_words(a, bytes, text, size);
    a->named = true;
    return take_name(a, bytes, text, strnlen(text, size));
}

static int take_main(struct tar_area *a, const char *bytes, const struct tar_header *h, uint64_t size)
{
    int error = a->named ? 0 : take_name(a, bytes, h->name, strnlen(h->name, sizeof h->name));
    if (error)
        return error;
    a->file = tar_is_file(h->type, bytes + a->name, a->length);
    bool empty = (h->type >= '1' && h->type <= '6') || (h->type == '\0' && !a->file);
    uint64_t data = empty ? 0 : a->sized ? a->size : size;
    a->data = tar_padded(data);
    a->map = h->type == 'S' && ((const char *)h)[SPARSE_MORE];
    return data > INT64_MAX ? -EBADMSG : 0;
}

static int take_header(struct tar_area *a, const char *bytes)
{
    const char *block = bytes + a->main;
    const struct tar_header *h = (const void *)block;
    uint64_t size;
    if (!tar_checksum_fits((const unsigned char *)block) || !tar_number(h->size, sizeof h->size, &size))
        return -EBADMSG;
    if (!tar_is_extension(h->type))
        return take_main(a, bytes, h, size);
    if (h->type == 'g' || size > TAR_AREA_MOST)
        return -EBADMSG;
    a->extension = true;
    return 0;
}

void tar_area_init(struct tar_area *a)
{
    *a = (struct tar_area){.n = TAR_BLOCK};
}

/* The blocks of an old GNU sparse file's map belong to the area; each says whether another one follows. */
int tar_area_take(struct tar_area *a, const char *bytes)
{
    int error = 0;
    if (a->map) {
        a->map = bytes[a->n - TAR_BLOCK + SPARSE_MORE_NEXT];
    } else {
        error = a->extension ? take_extension(a, bytes) : 0;
        error = error ? error : take_header(a, bytes);
    }
    if (error || !(a->extension || a->map))
        return error;
    a->n += TAR_BLOCK + (a->extension ? (size_t)tar_padded(extension_size(bytes + a->main)) : 0);
    return a->n > TAR_AREA_MOST ? -EBADMSG : 1;
}

/* --- writing --- */

struct tar_writer {
    char *to; /* NULL: only count */
    size_t n, room;
    bool full; /* it did not fit */
};

static void put(struct tar_writer *w, const char *bytes, size_t n)
{
    w->full |= n > w->room - w->n;
    if (w->full)
        return;
    if (w->to)
        memcpy(w->to + w->n, bytes, n);
    w->n += n;
}

static void put_name(struct tar_writer *w, const char *name, size_t n, const struct tar_naming *naming)
{
    size_t directory = directory_length(name, n), key = tar_key_length(name, n), stem = key - directory;
    put(w, name, directory);
    put(w, naming->prefix, strlen(naming->prefix));
    put(w, name + directory, stem < naming->kept ? stem : naming->kept);
    put(w, name + key, n - key);
}

/* Length of a pax record with `rest` bytes after its own number, which counts its digits as well. */
static size_t keyword_length(size_t rest)
{
    size_t all = rest + 1;
    for (size_t digits = 1, power = 10; all >= power; power *= 10)
        all = rest + ++digits;
    return all;
}

static void put_keyword(struct tar_writer *w, const struct tar_keyword *k, const struct tar_naming *naming)
{
    struct tar_writer value = {.room = SIZE_MAX};
    char number[24];
    put_name(&value, k->value, k->value_length, naming);
    int digits = snprintf(number, sizeof number, "%zu", keyword_length(1 + k->word_length + 1 + value.n + 1));
    put(w, number, (size_t)digits);
    put(w, k->word - 1, 1 + k->word_length + 1);
    put_name(w, k->value, k->value_length, naming);
    put(w, "\n", 1);
}

static void put_words(struct tar_writer *w, const char *text, size_t n, const struct tar_naming *naming)
{
    struct tar_keyword k;
    while (tar_keyword_next(&text, &n, &k) > 0)
        if (keyword_is_name(&k))
            put_keyword(w, &k, naming);
        else
            put(w, k.begin, (size_t)(k.end - k.begin));
    put(w, text, n);
}

static void write_checksum(struct tar_header *h)
{
    const unsigned char *byte = (const unsigned char *)h;
    unsigned sum = 0;
    memset(h->checksum, ' ', sizeof h->checksum);
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += byte[i];
    snprintf(h->checksum, sizeof h->checksum, "%06o", sum);
}

/* An extension header, with as many blocks as before. Zeros end its text, so they fill up what is shorter. */
static int rename_extension(const char *header, size_t size, const struct tar_naming *naming, char *out)
{
    struct tar_writer w = {.to = out ? out + TAR_BLOCK : NULL, .room = (size_t)tar_padded(size)};
    const struct tar_header *h = (const void *)header;
    if (out)
        memset(w.to, 0, w.room);
    if (h->type == 'L') {
        put_name(&w, header + TAR_BLOCK, strnlen(header + TAR_BLOCK, size), naming);
        put(&w, "", 1);
    } else {
        put_words(&w, header + TAR_BLOCK, size, naming);
    }
    if (w.full)
        return -ENAMETOOLONG;
    size_t least = w.room > 0 ? w.room - TAR_BLOCK + 1 : 0, n = w.n < least ? least : w.n;
    if (out && n != size) {
        struct tar_header *changed = (void *)out;
        snprintf(changed->size, sizeof changed->size, "%011zo", n);
        write_checksum(changed);
    }
    return 0;
}

static int rename_main(const struct tar_header *h, const struct tar_naming *naming, struct tar_header *out)
{
    struct tar_writer w = {.to = out ? out->name : NULL, .room = sizeof h->name};
    if (out)
        memset(out->name, 0, sizeof out->name);
    put_name(&w, h->name, strnlen(h->name, sizeof h->name), naming);
    if (out)
        write_checksum(out);
    return w.full ? -ENAMETOOLONG : 0;
}

int tar_area_rename(const struct tar_area *a, const char *bytes, const struct tar_naming *naming, char *out)
{
    int error = 0;
    if (out)
        memcpy(out, bytes, a->n);
    for (size_t at = 0, next; at < a->main && !error; at = next) {
        size_t size = extension_size(bytes + at);
        next = at + TAR_BLOCK + (size_t)tar_padded(size);
        if (((const struct tar_header *)(const void *)(bytes + at))->type != 'K')
            error = rename_extension(bytes + at, size, naming, out ? out + at : NULL);
    }
    if (error || a->named)
        return error;
    return rename_main((const void *)(bytes + a->main), naming, out ? (void *)(out + a->main) : NULL);
}
