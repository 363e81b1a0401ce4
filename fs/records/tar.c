/* Tar: v7, ustar, pax and GNU. A record is all neighbouring members with one key, with their headers and padding.
 *
 *   [x: path, size] [L: name] header  data, padded   [L: name] header  data, padded  …  two blocks of zeros
 *   '------ the member a/1.jpg ----------------' '-- the member a/1.txt ----'
 *   '---------------- the record a/1 ----------------------------------------'
 *
 * The key is WebDataset's: the name up to the first dot after the last slash. A name that begins with that dot, or has
 * none, is its own key. Members that are no files end no record and make none. What a member of each type has of data
 * follows Python's tarfile. */
#include "fs/records/container.h"
#include "fs/records/tar-header.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { END_LOOK = 64 << 10 };
_Static_assert((int)TAR_AREA_MOST <= (int)SCAN_WINDOW, "an extension header can be looked at");

enum { SPARSE_MORE = 482, SPARSE_MORE_NEXT = 504 }; /* old GNU sparse files: "another block of the map follows" */

struct tar_walk {
    struct record_scan *scan;
    uint64_t at; /* of the next header */

    /* Contents of extension headers for the next member; `begin`: offset of the first of them. */
    bool extended, sized;
    uint64_t begin, size;
    struct str name, sparse_name;

    /* The current record. */
    bool open;
    uint64_t record, record_end, members;
    struct str key;
};

static bool tar_recognise(const unsigned char *head, size_t n, uint64_t size)
{
    (void)size;
    return n >= TAR_BLOCK && !tar_is_zero(head, TAR_BLOCK) && tar_checksum_fits(head);
}

/* --- extension headers --- */

static bool take_keyword(struct tar_walk *w, const struct tar_keyword *k)
{
    if (tar_keyword_is(k, "path")) {
        str_clear(&w->name);
        str_add(&w->name, k->value, k->value_length);
    } else if (tar_keyword_is(k, "GNU.sparse.name")) {
        str_clear(&w->sparse_name);
        str_add(&w->sparse_name, k->value, k->value_length);
    } else if (tar_keyword_is(k, "size")) {
        w->sized = k->value_length > 0;
        return k->value_length == 0 || tar_decimal(k->value, k->value_length, &w->size);
    }
    return true;
}

static bool take_keywords(struct tar_walk *w, const char *text, size_t n)
{
    struct tar_keyword keyword;
    int turn;
    while ((turn = tar_keyword_next(&text, &n, &keyword)) > 0)
        if (!take_keyword(w, &keyword))
            return false;
    return turn == 0;
}

static int take_extension(struct tar_walk *w, char type, uint64_t size)
{
    struct record_scan *s = w->scan;
    if (type == 'g')
        return scan_broken(s, w->at,
                           "a pax global header, which applies to all later members: write the archive without one");
    uint64_t before = w->at - (w->extended ? w->begin : w->at);
    if (size > TAR_AREA_MOST || before + TAR_BLOCK + tar_padded(size) > TAR_AREA_MOST - TAR_BLOCK)
        return scan_broken(s, w->at, "extension headers of more than %d bytes", TAR_AREA_MOST);
    if (tar_padded(size) > s->size - w->at - TAR_BLOCK)
        return scan_broken(s, w->at, "an extension header of %" PRIu64 " bytes", size);
    const char *text = size > 0 ? (const char *)scan_look(s, w->at + TAR_BLOCK, (size_t)size) : "";
    if (!text)
        return s->error;
    if (!w->extended)
        w->begin = w->at;
    w->extended = true;
    if (type == 'L') {
        str_clear(&w->name);
        str_add(&w->name, text, strnlen(text, (size_t)size));
    } else if (type != 'K' && !take_keywords(w, text, (size_t)size)) {
        return scan_broken(s, w->at + TAR_BLOCK, "a pax header that cannot be read");
    }
    w->at += TAR_BLOCK + tar_padded(size);
    if (w->name.length > TAR_NAME_MOST || w->sparse_name.length > TAR_NAME_MOST)
        return scan_broken(s, w->begin, "a name of more than %d bytes", TAR_NAME_MOST);
    return w->name.failed || w->sparse_name.failed ? str_no_memory(s->why) : 0;
}

/* --- members --- */

static int close_record(struct tar_walk *w)
{
    if (!w->open)
        return 0;
    w->open = false;
    return scan_found(w->scan, w->record, w->record_end - w->record, w->key.data ? w->key.data : "", w->key.length);
}

static void add_name(const struct tar_walk *w, const struct tar_header *h, struct str *name)
{
    const struct str *given = w->sparse_name.length ? &w->sparse_name : &w->name;
    if (given->length) {
        str_add(name, given->data, given->length);
        return;
    }
    if (memcmp(h->magic, "ustar", 6) == 0 && h->prefix[0]) {
        str_add(name, h->prefix, strnlen(h->prefix, sizeof h->prefix));
        str_adds(name, "/");
    }
    str_add(name, h->name, strnlen(h->name, sizeof h->name));
}

static int refuse_members(const struct tar_walk *w)
{
    struct str *why = w->scan->why;
    str_addf(why, "offset %" PRIu64 ": the record ", w->record);
    str_add_printable(why, w->key.data ? w->key.data : "", w->key.length);
    return str_fail(why, -EFBIG, " has more than %d members", TAR_MEMBERS_MOST);
}

static int add_member(struct tar_walk *w, const struct str *name, uint64_t begin, uint64_t end)
{
    size_t n = tar_key_length(name->data ? name->data : "", name->length);
    if (name->failed)
        return str_no_memory(w->scan->why);
    if (!w->open || w->key.length != n || memcmp(w->key.data, name->data, n) != 0) {
        int error = close_record(w);
        if (error)
            return error;
        str_clear(&w->key);
        str_add(&w->key, name->data ? name->data : "", n);
        w->open = true;
        w->record = begin;
        w->members = 0;
    }
    if (++w->members > TAR_MEMBERS_MOST)
        return refuse_members(w);
    w->record_end = end;
    return w->key.failed ? str_no_memory(w->scan->why) : 0;
}

/* The blocks of an old GNU sparse file's map, of which each says whether another one follows; -errno. */
static int64_t sparse_blocks(struct tar_walk *w, const unsigned char *header)
{
    uint64_t at = w->at + TAR_BLOCK, begin = w->extended ? w->begin : w->at;
    for (bool more = header[SPARSE_MORE]; more; at += TAR_BLOCK) {
        const unsigned char *block = w->scan->size - at >= TAR_BLOCK ? scan_look(w->scan, at, TAR_BLOCK) : NULL;
        if (!block)
            return w->scan->size - at < TAR_BLOCK ? scan_broken(w->scan, at, "the map of a sparse file is cut off")
                                                  : w->scan->error;
        more = block[SPARSE_MORE_NEXT];
        if (at + TAR_BLOCK - begin > TAR_AREA_MOST)
            return scan_broken(w->scan, at, "a map of a sparse file of more than %d bytes", TAR_AREA_MOST);
    }
    return (int64_t)(at - w->at - TAR_BLOCK);
}

static int take_member(struct tar_walk *w, const struct tar_header *h, uint64_t size)
{
    CLEANUP_STR struct str name = STR_INIT;
    struct record_scan *s = w->scan;
    char type = h->type;
    add_name(w, h, &name);
    bool file = tar_is_file(type, name.data, name.length);
    uint64_t data = (type >= '1' && type <= '6') || (type == '\0' && !file) ? 0 : w->sized ? w->size : size;
    int64_t map = type == 'S' ? sparse_blocks(w, (const unsigned char *)h) : 0;
    if (map < 0)
        return (int)map;
    uint64_t begin = w->extended ? w->begin : w->at, from = w->at + TAR_BLOCK + (uint64_t)map;
    if (data > s->size - from || tar_padded(data) > s->size - from)
        return scan_broken(s, w->at, "the data of a member end beyond the end of the file");
    w->at = from + tar_padded(data);
    w->extended = w->sized = false;
    str_clear(&w->name);
    str_clear(&w->sparse_name);
    return file ? add_member(w, &name, begin, w->at) : 0;
}

/* --- the archive --- */

/* At a block of zeros. No reader would see another archive after this one. */
static int check_end(struct tar_walk *w)
{
    struct record_scan *s = w->scan;
    size_t n = s->size - w->at < END_LOOK ? (size_t)(s->size - w->at) : END_LOOK;
    const unsigned char *rest = scan_look(s, w->at, n);
    if (!rest)
        return s->error;
    for (size_t i = 0; i < n; i++)
        if (rest[i])
            return scan_broken(s, w->at + i, "data after the end of the archive: is this file several archives?");
    return 0;
}

/* 1: the end. */
static int take_header(struct tar_walk *w)
{
    struct record_scan *s = w->scan;
    struct tar_header header;
    uint64_t size;
    if (w->at == s->size)
        return w->extended ? scan_broken(s, w->begin, "the member of an extension header is cut off") : 1;
    if (s->size - w->at < TAR_BLOCK)
        return scan_broken(s, w->at, "a header is cut off");
    const unsigned char *block = scan_look(s, w->at, TAR_BLOCK);
    if (!block)
        return s->error;
    if (tar_is_zero(block, TAR_BLOCK)) {
        int error = check_end(w);
        return error ? error : 1;
    }
    memcpy(&header, block, sizeof header);
    if (!tar_checksum_fits(block))
        return scan_broken(s, w->at, "the checksum of a header does not match");
    if (!tar_number(header.size, sizeof header.size, &size))
        return scan_broken(s, w->at, "the size of a member cannot be read");
    return tar_is_extension(header.type) ? take_extension(w, header.type, size) : take_member(w, &header, size);
}

static int tar_scan(struct record_scan *s)
{
    struct tar_walk walk = {.scan = s};
    int result;
    do
        result = take_header(&walk);
    while (result == 0);
    if (result == 1)
        result = close_record(&walk);
    str_fini(&walk.name);
    str_fini(&walk.sparse_name);
    str_fini(&walk.key);
    return result;
}

const struct container_format container_tar = {"tar", "tar", tar_recognise, tar_scan};
