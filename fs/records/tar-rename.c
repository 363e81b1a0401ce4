/* Headers are rewritten where they lie. A member's headers are read as a whole:
 *
 *   [x: path=NAME] [L: NAME] header      data
 *   '----- its area ---------------'
 *
 * The name stands in each extension header that gives one, else in the header itself. These are its places. How much of
 * the key can stay follows from the place with the least room, of all members of the record; so members are looked at
 * twice. */
#include "fs/records/tar-rename.h"

#include "fs/records/tar-header.h"

#include "fs/base/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PLACES = 4,
    AREA_MOST = 1 << 20,
    NAME_LONGEST = 8192,
    SPARSE_MORE = 482,
    SPARSE_MORE_NEXT = 504,
    NAME_FIELD = 100
};

enum place_kind { PLACE_HEADER, PLACE_LONG_NAME, PLACE_KEYWORD };
struct name_place {
    enum place_kind kind;
    size_t block; /* of the header whose size changes with the name */
    size_t begin; /* of a keyword: its length; else as value */
    size_t value, length;
    size_t word; /* bytes of the keyword's name, */
    size_t all;  /* and of all of it */
    size_t directory, stem;
};

struct tar_member {
    uint64_t begin, next; /* in the record */
    char *area;
    size_t n;
    bool file;
    bool sized;
    uint64_t size;
    struct name_place place[PLACES];
    unsigned places;
};

struct renaming {
    const struct tar_record *record;
    char prefix[24]; /* POSITION- */
    size_t kept;     /* bytes of a key's last part that stay */
};

/* --- reading --- */

static int area_add(const struct renaming *r, struct tar_member *m, uint64_t n)
{
    uint64_t at = m->begin + m->n;
    if (n > r->record->length - at || m->n + n > AREA_MOST)
        return -EBADMSG;
    char *grown = realloc(m->area, m->n + n);
    if (!grown)
        return -ENOMEM;
    m->area = grown;
    int error = r->record->read(r->record->user, m->area + m->n, n, at);
    m->n += n;
    return error;
}

static int add_place(struct tar_member *m, const struct name_place *place)
{
    struct name_place p = *place;
    const char *name = m->area + p.value;
    const char *slash = memrchr(name, '/', p.length);
    if (m->places == PLACES || p.length > NAME_LONGEST)
        return -ENAMETOOLONG;
    p.directory = slash ? (size_t)(slash + 1 - name) : 0;
    p.stem = tar_key_length(name, p.length) - p.directory;
    m->place[m->places++] = p;
    return 0;
}

static int take_words(struct tar_member *m, size_t block, size_t n)
{
    const char *text = m->area + block + TAR_BLOCK;
    struct tar_keyword k;
    int turn, error = 0;
    while (!error && (turn = tar_keyword_next(&text, &n, &k)) > 0) {
        const struct name_place place = {.kind = PLACE_KEYWORD,
                                         .block = block,
                                         .begin = (size_t)(k.begin - m->area),
                                         .value = (size_t)(k.value - m->area),
                                         .length = k.value_length,
                                         .word = k.word_length,
                                         .all = (size_t)(k.end - k.begin)};
        if (tar_keyword_is(&k, "path") || tar_keyword_is(&k, "GNU.sparse.name"))
            error = add_place(m, &place);
        else if (tar_keyword_is(&k, "size") && k.value_length) {
            m->sized = true;
            error = tar_decimal(k.value, k.value_length, &m->size) ? 0 : -EBADMSG;
        }
    }
    return error ? error : turn;
}

static int take_extension_of(const struct renaming *r, struct tar_member *m, size_t block, char type, uint64_t size)
{
    int error = type == 'g' || size > AREA_MOST ? -EBADMSG : area_add(r, m, tar_padded(size));
    if (error || type == 'K')
        return error;
    if (type != 'L')
        return take_words(m, block, (size_t)size) ? -EBADMSG : 0;
    const struct name_place place = {.kind = PLACE_LONG_NAME,
                                     .block = block,
                                     .value = block + TAR_BLOCK,
                                     .length = strnlen(m->area + block + TAR_BLOCK, (size_t)size)};
    return add_place(m, &place);
}

/* The blocks of an old GNU sparse file's map belong to the area. */
static int take_map(const struct renaming *r, struct tar_member *m, size_t block)
{
    int error = 0;
    for (bool more = m->area[block + SPARSE_MORE]; more && !error;) {
        error = area_add(r, m, TAR_BLOCK);
        more = !error && m->area[m->n - TAR_BLOCK + SPARSE_MORE_NEXT];
    }
    return error;
}

static int take_main(const struct renaming *r, struct tar_member *m, size_t block, char type, uint64_t size)
{
    const struct tar_header *h = (const void *)(m->area + block);
    const struct name_place *last = m->places ? &m->place[m->places - 1] : NULL;
    const struct name_place own = {
        .kind = PLACE_HEADER, .block = block, .value = block, .length = strnlen(h->name, sizeof h->name)};
    m->file = last ? tar_is_file(type, m->area + last->value, last->length) : tar_is_file(type, h->name, own.length);
    uint64_t data = (type >= '1' && type <= '6') || (type == '\0' && !m->file) ? 0 : m->sized ? m->size : size;
    int error = m->places == 0 ? add_place(m, &own) : 0;
    if (!error && type == 'S')
        error = take_map(r, m, block);
    if (error)
        return error;
    uint64_t left = r->record->length - m->begin - m->n;
    if (data > left || tar_padded(data) > left)
        return -EBADMSG;
    m->next = m->begin + m->n + tar_padded(data);
    return 0;
}

static int member_read(const struct renaming *r, uint64_t begin, struct tar_member *m)
{
    *m = (struct tar_member){.begin = begin};
    for (;;) {
        size_t block = m->n;
        uint64_t size;
        int error = area_add(r, m, TAR_BLOCK);
        if (error)
            return error;
        const struct tar_header *h = (const void *)(m->area + block);
        if (!tar_checksum_fits((const unsigned char *)h) || !tar_number(h->size, sizeof h->size, &size))
            return -EBADMSG;
        char type = h->type;
        if (!tar_is_extension(type))
            return take_main(r, m, block, type, size);
        error = take_extension_of(r, m, block, type, size);
        if (error)
            return error;
    }
}

/* --- room --- */

static size_t new_length(const struct renaming *r, const struct name_place *p, size_t kept)
{
    return p->directory + strlen(r->prefix) + (kept < p->stem ? kept : p->stem) + (p->length - p->directory - p->stem);
}

/* Length of a pax record with `value` bytes of value. The length counts its own digits. */
static size_t keyword_length(const struct name_place *p, size_t value)
{
    size_t rest = 1 + p->word + 1 + value + 1, all = rest + 1;
    for (size_t digits = 1, power = 10; all >= power; power *= 10)
        all = rest + ++digits;
    return all;
}

static uint64_t block_size(const struct tar_member *m, size_t block)
{
    const struct tar_header *h = (const void *)(m->area + block);
    uint64_t size = 0;
    tar_number(h->size, sizeof h->size, &size);
    return size;
}

static bool member_fits(const struct renaming *r, const struct tar_member *m, size_t kept)
{
    for (unsigned i = 0; i < m->places; i++) {
        const struct name_place *p = &m->place[i];
        size_t n = new_length(r, p, kept);
        if (p->kind == PLACE_HEADER && n > NAME_FIELD)
            return false;
        if (p->kind == PLACE_HEADER)
            continue;
        uint64_t size = block_size(m, p->block), all = p->kind == PLACE_LONG_NAME ? n + 1 : size;
        for (unsigned j = 0; j < m->places && p->kind == PLACE_KEYWORD; j++)
            if (m->place[j].block == p->block)
                all += keyword_length(&m->place[j], new_length(r, &m->place[j], kept)) - m->place[j].all;
        if (all > tar_padded(size))
            return false;
    }
    return true;
}

/* Cuts at the start of a UTF-8 character. */
static int member_cut(struct renaming *r, const struct tar_member *m)
{
    const struct name_place *p = &m->place[m->places - 1];
    size_t longest = 0;
    for (unsigned i = 0; i < m->places; i++)
        longest = m->place[i].stem > longest ? m->place[i].stem : longest;
    size_t kept = r->kept < longest ? r->kept : longest;
    while (kept > 0 && !member_fits(r, m, kept))
        kept--;
    if (!member_fits(r, m, kept))
        return -ENAMETOOLONG;
    if (kept == longest)
        return 0;
    while (kept > 0 && kept < p->stem && ((unsigned char)m->area[p->value + p->directory + kept] & 0xc0) == 0x80)
        kept--;
    r->kept = kept;
    return 0;
}

/* --- writing --- */

static void write_checksum(struct tar_header *h)
{
    const unsigned char *byte = (const unsigned char *)h;
    unsigned sum = 0;
    memset(h->checksum, ' ', sizeof h->checksum);
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += byte[i];
    snprintf(h->checksum, sizeof h->checksum, "%06o", sum);
}

static void write_size(struct tar_member *m, size_t block, uint64_t size)
{
    struct tar_header *h = (void *)(m->area + block);
    snprintf(h->size, sizeof h->size, "%011" PRIo64, size);
    write_checksum(h);
}

/* Write a keyword of a pax header; what follows it moves. There may be no room while keywords before it are longer than
 * they will be. */
static int write_keyword(struct tar_member *m, const struct name_place *p, const char *name, size_t n)
{
    uint64_t size = block_size(m, p->block);
    size_t payload = p->block + TAR_BLOCK, before = p->all, after = keyword_length(p, n);
    size_t tail = payload + (size_t)size - p->begin - before;
    char head[32];
    const char *word = m->area + p->value - p->word - 1;
    int digits = snprintf(head, sizeof head, "%zu ", after);
    size_t end = p->begin + after + tail, room = payload + tar_padded(size);
    if (end > room)
        return -ENAMETOOLONG;
    memmove(m->area + p->begin + after, m->area + p->begin + before, tail);
    memmove(m->area + p->begin + digits, word, p->word + 1);
    memcpy(m->area + p->begin, head, (size_t)digits);
    memcpy(m->area + p->begin + (size_t)digits + p->word + 1, name, n);
    m->area[p->begin + after - 1] = '\n';
    memset(m->area + end, 0, room - end);
    write_size(m, p->block, size - before + after);
    return 0;
}

static int write_place(const struct renaming *r, struct tar_member *m, const struct name_place *p)
{
    const char *old = m->area + p->value, *rest = old + p->directory + p->stem;
    size_t kept = r->kept < p->stem ? r->kept : p->stem, n = 0, pre = strlen(r->prefix);
    CLEANUP_FREE char *name = malloc(new_length(r, p, kept) + 1);
    if (!name)
        return -ENOMEM;
    memcpy(name, old, p->directory);
    memcpy(name + (n = p->directory), r->prefix, pre);
    memcpy(name + (n += pre), old + p->directory, kept);
    memcpy(name + (n += kept), rest, p->length - p->directory - p->stem);
    n += p->length - p->directory - p->stem;
    if (p->kind == PLACE_KEYWORD)
        return write_keyword(m, p, name, n);
    size_t room = p->kind == PLACE_HEADER ? NAME_FIELD : tar_padded(block_size(m, p->block));
    memset(m->area + p->value, 0, room);
    memcpy(m->area + p->value, name, n);
    if (p->kind == PLACE_LONG_NAME)
        write_size(m, p->block, n + 1);
    else
        write_checksum((void *)(m->area + p->block));
    return 0;
}

/* From the last place to the first, so that earlier ones do not move. */
static int member_write(const struct renaming *r, struct tar_member *m, uint64_t from, uint64_t to, char *bytes)
{
    uint64_t begin = m->begin > from ? m->begin : from, end = m->begin + m->n < to ? m->begin + m->n : to;
    int error = 0;
    for (unsigned i = m->places; i > 0 && !error; i--)
        error = write_place(r, m, &m->place[i - 1]);
    if (!error && begin < end)
        memcpy(bytes + (begin - from), m->area + (begin - m->begin), end - begin);
    return error;
}

int tar_rename(const struct tar_record *record, uint64_t position, uint64_t from, uint64_t to, char *bytes)
{
    struct renaming r = {.record = record, .kept = SIZE_MAX};
    int error = 0;
    snprintf(r.prefix, sizeof r.prefix, "%" PRIu64 "-", position);
    for (int pass = 0; pass < 2; pass++)
        for (uint64_t at = 0, next = 0; at < (pass ? to : record->length) && !error; at = next) {
            struct tar_member m;
            error = member_read(&r, at, &m);
            next = m.next;
            if (!error && m.file && pass == 0)
                error = member_cut(&r, &m);
            else if (!error && m.file && m.begin + m.n > from)
                error = member_write(&r, &m, from, to, bytes);
            free(m.area);
        }
    return error;
}
