/* Derived catalogs: other sizes for some files, and what is known of them from mount to mount. */
#include "fs/catalog/derived.h"
#include "tests/fs/catalog/source.h"

enum { FILES = 8 };

static const struct derived_terms terms = {.side = 256, .quality = 90, .library = "a library"};

static struct derived *create(const struct derived_terms *with)
{
    CLEANUP_CLOSE int fd = open(test_path("catalog"), O_RDONLY);
    struct derived *d = NULL;
    is_int(derived_create(fd, with, &d), 0, "of a catalog");
    return d;
}

static struct derived *reopen(int expected)
{
    CLEANUP_CLOSE int fd = open(test_path("resized"), O_RDONLY);
    struct derived *d = NULL;
    is_int(derived_open(fd, &d), expected, "opened again: %d", expected);
    return d;
}

static struct catalog *catalog_of(const struct derived *d, void **bytes)
{
    struct catalog *c = NULL;
    size_t length;
    if (derived_catalog(d, bytes, &length) || catalog_open_memory(*bytes, length, &c))
        bail_out("no derived catalog");
    return c;
}

static void test_catalog(struct derived *d)
{
    void *bytes, *more;
    struct catalog *c = catalog_of(d, &bytes), *other;
    is_uint(catalog_file(c, 0).size, 0, "what is not known has no bytes");
    d->record[0] = (struct derived_record){d->record[0].key, 77, 1234, DERIVED_MADE};
    d->record[1].outcome = DERIVED_MADE + 3;
    derived_put(d, 0, bytes);
    is_uint(catalog_file(c, 0).size, 1234, "put while it is open");
    other = catalog_of(d, &more);
    is_uint(catalog_file(other, 0).size, 1234, "and in the whole");
    is_uint(catalog_file(other, 1).size, catalog_file(d->original, 1).size, "what passes is as it was");
    is_uint(catalog_bytes(other), 1234 + catalog_file(d->original, 1).size, "the sum is of these");
    is_uint(catalog_file(other, 0).mtime, catalog_file(d->original, 0).mtime, "times are the source's");
    struct digest a = catalog_file_version(other, 0), b = catalog_file_version(d->original, 0);
    ok(memcmp(&a, &b, sizeof a) != 0, "it is of another version than the original");
    d->record[0].hash++;
    derived_put(d, 0, more);
    b = catalog_file_version(other, 0);
    ok(memcmp(&a, &b, sizeof a) != 0, "and than other bytes of the same length");
    d->record[0].hash--;
    catalog_close(c);
    catalog_close(other);
    free(bytes);
    free(more);
}

static void test_file(struct derived *d)
{
    CLEANUP_STR struct str file = STR_INIT;
    struct derived *old, *other;
    struct derived_terms terms_other = terms;
    is_int(derived_write(d, AT_FDCWD, test_path("resized")), 0, "written");
    old = reopen(0);
    ok(old && memcmp(old->record, d->record, FILES * sizeof *d->record) == 0 && old->terms.side == 256,
       "all of it is there");
    other = create(&terms);
    is_uint(derived_adopt(other, old, DERIVED_MADE + 2), FILES - 1, "what was made is taken over");
    is_uint(other->record[0].size, 1234, "by its file");
    is_uint(other->record[1].outcome, DERIVED_UNKNOWN, "what passed for a reason that may pass is not");
    is_uint(derived_adopt(other, old, DERIVED_MADE + 3), FILES - 2, "for a lasting one it is");
    struct digest a = derived_digest(other), b = derived_digest(d);
    ok(memcmp(&a, &b, sizeof a) == 0, "they have the same digest");
    derived_close(other);
    terms_other.quality = 89;
    other = create(&terms_other);
    is_uint(derived_adopt(other, old, DERIVED_MADE + 3), FILES, "nothing that was made on other terms");
    is_uint(derived_adopt(other, NULL, DERIVED_MADE), FILES, "nor of nothing");
    derived_close(other);
    derived_close(old);

    if (file_read(AT_FDCWD, test_path("resized"), 1 << 20, &file))
        bail_out("no file");
    for (size_t at = 0; at < file.length; at += 97) {
        file.data[at] ^= 1;
        int fd = open(test_path("damaged"), O_CREAT | O_TRUNC | O_RDWR, 0600);
        file_write_all(fd, file.data, file.length);
        file.data[at] ^= 1;
        if (derived_open(fd, &old) != -EBADMSG)
            fail("byte %zu is another, and it opens", at);
        close(fd);
    }
    for (size_t length = 0; length < file.length; length += 53) {
        if (truncate(test_path("resized"), (off_t)(file.length - 1 - length)))
            bail_out("truncate");
        CLEANUP_CLOSE int fd = open(test_path("resized"), O_RDONLY);
        if (derived_open(fd, &old) != -EBADMSG)
            fail("%zu bytes are lacking, and it opens", length + 1);
    }
    pass("nothing that is damaged or cut opens");
}

int main(void)
{
    source_add_many(test_path("source"), FILES, 1000);
    catalog_close(source_catalog(test_path("source"), test_path("catalog")));
    struct derived *d = create(&terms);
    is_uint(d->files, FILES, "with its files");
    test_catalog(d);
    test_file(d);
    derived_close(d);
    return done_testing();
}
