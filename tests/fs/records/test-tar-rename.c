/* Positions before the keys of a record: each length of a name, and any part of the record. */
#include "fs/records/tar-header.h"
#include "fs/records/tar-rename.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 12, BYTES = BLOCKS * TAR_BLOCK };

struct made_record {
    char bytes[BYTES];
    size_t n, looked; /* looked: bytes that were read */
};

static int read_made(void *user, void *to, size_t n, uint64_t offset)
{
    struct made_record *made = user;
    made->looked += n;
    if (offset + n > made->n)
        return -EIO;
    memcpy(to, made->bytes + offset, n);
    return 0;
}

static void add_header(struct made_record *made, const char *name, char type, size_t size)
{
    struct tar_header *h = (void *)(made->bytes + made->n);
    unsigned sum = 0;
    memset(h, 0, sizeof *h);
    memcpy(h->name, name, strlen(name) < sizeof h->name ? strlen(name) : sizeof h->name);
    snprintf(h->size, sizeof h->size, "%011o", (unsigned)size);
    h->type = type;
    memcpy(h->magic, "ustar", 6);
    memset(h->checksum, ' ', sizeof h->checksum);
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += ((unsigned char *)h)[i];
    snprintf(h->checksum, sizeof h->checksum, "%06o", sum);
    made->n += TAR_BLOCK;
}

static void add_data(struct made_record *made, const char *data, size_t n)
{
    memset(made->bytes + made->n, 0, tar_padded(n));
    memcpy(made->bytes + made->n, data, n);
    made->n += tar_padded(n);
}

static int rename_made(struct made_record *made, uint64_t position, uint64_t from, uint64_t to, char *bytes)
{
    const struct tar_record record = {made->n, read_made, made, from, to, bytes};
    struct tar_cut *cut;
    memcpy(bytes, made->bytes + from, to - from);
    int error = tar_cut_make(&record, position, &cut);
    if (error)
        return error;
    error = tar_rename(&record, cut);
    free(cut);
    return error;
}

static const char *name_of(const char *block)
{
    static char name[101];
    const struct tar_header *h = (const void *)block;
    snprintf(name, sizeof name, "%.100s", h->name);
    return tar_checksum_fits((const unsigned char *)block) ? name : "a wrong checksum";
}

static void test_lengths(void)
{
    unsigned right = 0, parts = 0;
    for (size_t length = 1; length <= 94; length++) {
        struct made_record made = {.n = 0};
        char name[128], bytes[BYTES], part[BYTES], want[128];
        memset(name, 'k', length);
        snprintf(name + length, sizeof name - length, ".jpg");
        add_header(&made, name, '0', 3);
        add_data(&made, "abc", 3);
        snprintf(name + length, sizeof name - length, ".long");
        add_header(&made, name, '0', 0);
        size_t kept = length + strlen("123-.long") > 100 ? 100 - strlen("123-.long") : length;
        int error = rename_made(&made, 123, 0, made.n, bytes);
        snprintf(want, sizeof want, "123-%.*s.jpg", (int)kept, name);
        bool good = error == 0 && strcmp(name_of(bytes), want) == 0 && memcmp(bytes + TAR_BLOCK, "abc", 3) == 0;
        snprintf(want, sizeof want, "123-%.*s.long", (int)kept, name);
        right += good && strcmp(name_of(bytes + 2 * TAR_BLOCK), want) == 0;
        for (uint64_t from = 0, to = 700; to <= made.n; from += 130, to += 70)
            parts += rename_made(&made, 123, from, to, part) != 0 || memcmp(part, bytes + from, to - from) != 0;
    }
    is_uint(right, 94, "names of each length, cut where they are too long, both alike");
    is_uint(parts, 0, "any part of them is the same");
}

static void test_extensions(void)
{
    struct made_record made = {.n = 0};
    char bytes[BYTES];
    static const char words[] = "0020 mtime=12345678\n16 path=d/a.jpg\n25 GNU.sparse.name=d/a.j\n";
    add_header(&made, "@LongLink", 'L', 8);
    add_data(&made, "d/a.jpg", 8);
    add_header(&made, "x", 'x', sizeof words - 1);
    add_data(&made, words, sizeof words - 1);
    add_header(&made, "short", '0', 1);
    add_data(&made, "!", 1);
    is_int(rename_made(&made, 4000000000, 0, made.n, bytes), 0, "a member with all kinds of names");
    is_str(bytes + TAR_BLOCK, "d/4000000000-a.jpg", "the long name");
    const char *text = bytes + 3 * TAR_BLOCK;
    is_str(text, "0020 mtime=12345678\n27 path=d/4000000000-a.jpg\n36 GNU.sparse.name=d/4000000000-a.j\n",
           "the words of a pax header");
    uint64_t size = 0;
    ok(tar_number(((const struct tar_header *)(const void *)(text - TAR_BLOCK))->size, 12, &size) &&
           size == strlen(text),
       "its size");
    is_str(name_of(bytes + 4 * TAR_BLOCK), "short", "a header that another name goes before stays");
}

/* An extension header keeps its blocks: readers find the next header by its size. */
static void test_blocks(void)
{
    enum { LONG = TAR_BLOCK + 88 };
    struct made_record made = {.n = 0};
    char bytes[BYTES], text[LONG] = "d/a.jpg"; /* and zeros, which some writers leave behind a name */
    uint64_t size = 0;
    add_header(&made, "@LongLink", 'L', LONG);
    add_data(&made, text, LONG);
    add_header(&made, "short", '0', 1);
    add_data(&made, "!", 1);
    is_int(rename_made(&made, 5, 0, made.n, bytes), 0, "a short name in a long header");
    is_str(bytes + TAR_BLOCK, "d/5-a.jpg", "is changed");
    ok(tar_number(((const struct tar_header *)(const void *)bytes)->size, 12, &size) &&
           tar_padded(size) == tar_padded(LONG),
       "and the header has as many blocks as before");
}

/* Several names of one member, each too long. */
static void test_many_names(void)
{
    enum { NAMES = 5, ROOM = TAR_BLOCK };
    for (int names = 1; names <= NAMES; names++) {
        struct made_record made = {.n = 0};
        char words[ROOM + 1] = "", bytes[BYTES], *at = words;
        for (int i = 0, left = ROOM; i < names; i++) {
            int length = left / (names - i); /* of this record; all of them together fill the block */
            at += snprintf(at, (size_t)(words + sizeof words - at), "%d path=%0*d.x\n", length, length - 12, 0);
            left -= length;
        }
        add_header(&made, "x", 'x', strlen(words));
        add_data(&made, words, strlen(words));
        add_header(&made, "short", '0', 0);
        int error = rename_made(&made, 77, 0, made.n, bytes);
        is_int(error, 0, "%d names", names);
        char *name = strstr(bytes + TAR_BLOCK, " path=");
        for (int i = 0; !error && i < names; i++) {
            ok(name && strncmp(name, " path=77-000", 12) == 0, "name %d has the position", i);
            name = name ? strstr(name + 1, " path=") : NULL;
        }
    }
}

/* A pax header with little room for longer names. One of them is short, in either order. */
static void test_full_header(bool short_last, int room)
{
    enum { SHORT = 23 };
    const int path_length = TAR_BLOCK - SHORT - room;
    struct made_record made = {.n = 0};
    char words[TAR_BLOCK], bytes[BYTES], *path = words + (short_last ? 0 : SHORT), head[16];
    memset(words, 'p', sizeof words);
    memcpy(path, head, (size_t)snprintf(head, sizeof head, "%d path=", path_length));
    memcpy(path + path_length - 3, ".x\n", 3);
    memcpy(words + (short_last ? path_length : 0), "23 GNU.sparse.name=s.x\n", SHORT);
    add_header(&made, "x", 'x', (size_t)(SHORT + path_length));
    add_data(&made, words, (size_t)(SHORT + path_length));
    add_header(&made, "short", '0', 1);
    add_data(&made, "!", 1);
    int error = rename_made(&made, 77, 0, made.n, bytes);
    const struct tar_header *h = (const void *)bytes;
    uint64_t size = 0;
    is_int(error, 0, "a header with room for %d bytes, its short name %s", room, short_last ? "last" : "first");
    ok(tar_checksum_fits((const unsigned char *)bytes) && tar_number(h->size, 12, &size) && size <= TAR_BLOCK &&
           strstr(bytes + TAR_BLOCK, "sparse.name=77-s.x\n") && strstr(bytes + TAR_BLOCK, "path=77-ppp"),
       "both are renamed in it");
    is_str(name_of(bytes + 2 * TAR_BLOCK), "short", "what follows stays");
}

static void test_refused(void)
{
    struct made_record made = {.n = 0};
    char bytes[BYTES], name[101] = "k.";
    memset(name + 2, 'e', 98);
    add_header(&made, name, '0', 0);
    is_int(rename_made(&made, 5, 0, made.n, bytes), -ENAMETOOLONG, "no room behind the key");
    made.n = 0;
    add_header(&made, "g", 'g', 3);
    add_data(&made, "abc", 3);
    is_int(rename_made(&made, 5, 0, made.n, bytes), -EBADMSG, "a global header");
    made.n = 0;
    add_header(&made, "a", '0', 600);
    add_data(&made, "abc", 3);
    is_int(rename_made(&made, 5, 0, made.n, bytes), -EBADMSG, "data behind the end");
    made.bytes[0]++;
    is_int(rename_made(&made, 5, 0, made.n, bytes), -EBADMSG, "a wrong checksum");
    made.n = 100;
    is_int(rename_made(&made, 5, 0, made.n, bytes), -EBADMSG, "less than a header");
    made.n = 0;
    is_int(rename_made(&made, 5, 0, made.n, bytes), 0, "nothing");
}

/* --- a record of many members --- */

enum { MANY = 5000, MEMBER = 2 * TAR_BLOCK, PART = 256 << 10 };

struct many_record {
    char *bytes;
    size_t n, looked;
};

static int read_many(void *user, void *to, size_t n, uint64_t offset)
{
    struct many_record *many = user;
    many->looked += n;
    memcpy(to, many->bytes + offset, n);
    return 0;
}

static struct many_record make_many(size_t members)
{
    struct many_record many = {.bytes = malloc(members * MEMBER)};
    for (size_t i = 0; i < members; i++) {
        struct made_record one = {.n = 0};
        char name[32];
        snprintf(name, sizeof name, "d/key.%zu", i);
        add_header(&one, name, '0', 1);
        add_data(&one, "!", 1);
        memcpy(many.bytes + many.n, one.bytes, one.n);
        many.n += one.n;
    }
    return many;
}

/* How often is a record read, if it is renamed in parts? Once for its cut, and a little at the ends of each part. */
static void test_many_members(void)
{
    struct many_record many = make_many(MANY);
    struct tar_record record = {.length = many.n, .read = read_many, .user = &many};
    struct tar_cut *cut = NULL;
    unsigned right = 0;
    char *part = malloc(PART), want[32];
    is_int(tar_cut_make(&record, 17, &cut), 0, "the cut of a record of %d members", MANY);
    ok(many.looked <= 2 * many.n, "it reads each member once");
    many.looked = 0;
    for (size_t from = 0; from < many.n; from += PART) {
        record.from = from;
        record.to = from + PART < many.n ? from + PART : many.n;
        record.bytes = memcpy(part, many.bytes + from, record.to - from);
        if (tar_rename(&record, cut))
            break;
        for (size_t at = 0; at < record.to - from; at += MEMBER) {
            snprintf(want, sizeof want, "d/17-key.%zu", (from + at) / MEMBER);
            right += strcmp(name_of(part + at), want) == 0;
        }
    }
    is_uint(right, MANY, "each member of each part has its new name");
    ok(many.looked <= many.n, "the parts read no more than that again");
    free(cut);
    free(part);
    free(many.bytes);
}

static void test_too_many_members(void)
{
    struct many_record many = make_many(TAR_MEMBERS_MOST + 1);
    struct tar_record record = {.length = many.n - MEMBER, .read = read_many, .user = &many};
    struct tar_cut *cut = NULL;
    is_int(tar_cut_make(&record, 17, &cut), 0, "as many members as a record may have");
    free(cut);
    record.length = many.n;
    is_int(tar_cut_make(&record, 17, &cut), -EFBIG, "one more");
    free(many.bytes);
}

int main(void)
{
    test_lengths();
    test_extensions();
    test_blocks();
    test_many_names();
    test_full_header(true, 0);
    test_full_header(false, 0);
    test_full_header(true, 4); /* for three bytes more of the short name, not for as many of the long one */
    test_refused();
    test_many_members();
    test_too_many_members();
    return done_testing();
}
