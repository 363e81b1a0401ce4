/* Positions before the keys of a record: each length of a name, and any part of the record. */
#include "fs/records/tar-header.h"
#include "fs/records/tar-rename.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { BLOCKS = 12, BYTES = BLOCKS * TAR_BLOCK };

struct made_record {
    char bytes[BYTES];
    size_t n;
};

static int read_made(void *user, void *to, size_t n, uint64_t offset)
{
    const struct made_record *made = user;
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
    const struct tar_record record = {made->n, read_made, made};
    memcpy(bytes, made->bytes + from, to - from);
    return tar_rename(&record, position, from, to, bytes);
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

/* A pax header without room for longer names. One of them is short, in either order. */
static void test_full_header(bool short_last)
{
    enum { SHORT = 23, PATH = TAR_BLOCK - SHORT };
    struct made_record made = {.n = 0};
    char words[TAR_BLOCK], bytes[BYTES], *path = words + (short_last ? 0 : SHORT), head[16];
    memset(words, 'p', sizeof words);
    memcpy(path, head, (size_t)snprintf(head, sizeof head, "%d path=", PATH));
    memcpy(path + PATH - 3, ".x\n", 3);
    memcpy(words + (short_last ? PATH : 0), "23 GNU.sparse.name=s.x\n", SHORT);
    add_header(&made, "x", 'x', TAR_BLOCK);
    add_data(&made, words, TAR_BLOCK);
    add_header(&made, "short", '0', 1);
    add_data(&made, "!", 1);
    int error = rename_made(&made, 77, 0, made.n, bytes);
    const struct tar_header *h = (const void *)bytes;
    uint64_t size = 0;
    ok(error == (short_last ? -ENAMETOOLONG : 0), "a full header, its short name %s", short_last ? "last" : "first");
    ok(error ||
           (tar_checksum_fits((const unsigned char *)bytes) && tar_number(h->size, 12, &size) && size <= TAR_BLOCK &&
            strstr(bytes + TAR_BLOCK, "sparse.name=77-s.x\n") && strstr(bytes + TAR_BLOCK, "path=77-ppp")),
       "both are renamed in it, or neither");
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

int main(void)
{
    test_lengths();
    test_extensions();
    test_full_header(true);
    test_full_header(false);
    test_refused();
    return done_testing();
}
