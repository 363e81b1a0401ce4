/* Record lists: fs/catalog/samples.h, record.h */
#include "fs/base/file.h"
#include "fs/catalog/samples-inside.h"
#include "tests/fs/catalog/source.h"

#include <stdlib.h>
#include <sys/mman.h>

static struct catalog *catalog;

static void make_catalog(void)
{
    char root[256];
    snprintf(root, sizeof root, "%s", test_path("source"));
    source_add(root, "a/one.tar", 1000);
    source_add(root, "a/two.tar", 2000);
    source_add(root, "b/empty", 0);
    source_add(root, "b/tab\tnew\nline%.txt", 100);
    source_add(root, "large", (off_t)5 << 30);
    catalog = source_catalog(root, test_path("catalog"));
}

static int upload(const char *text, size_t n, bool packed, struct samples **s, struct str *why)
{
    static const char *const prefixes[] = {"/mnt", NULL};
    const struct samples_upload given = {.text = text, .length = n, .separator = '\n', .prefixes = prefixes};
    const struct record_terms terms = {RECORDS_TAR, packed, test_path("source")};
    *s = NULL;
    return samples_from_records(catalog, &given, &terms, s, why);
}

static struct samples *list_of(const char *text)
{
    struct samples *s;
    struct str why = STR_INIT;
    if (upload(text, strlen(text), false, &s, &why))
        bail_out("%s", why.data);
    return s;
}

static void accepts(const char *text, const char *expected, const char *what)
{
    struct samples *s = list_of(text);
    source_list_is(s, expected, what);
    samples_put(s);
}

static void refuses(const char *text, int error, const char *reason)
{
    struct samples *s;
    CLEANUP_STR struct str why = STR_INIT;
    is_int(upload(text, strlen(text), false, &s, &why), error, "refused");
    is_str(why.data ? why.data : "", reason, "with the reason");
}

static void test_text(void)
{
    static const char form[] = "line 1: not `path TAB offset TAB length [TAB label [TAB key]]`";
    accepts("a/one.tar\t0\t1000\n", "a/one.tar\t0\t1000\n", "a record");
    accepts("a/one.tar\t0\t10\t7\r\na/one.tar\t10\t990\t4294967294\r\n/mnt/large\t5368709119\t1",
            "a/one.tar\t0\t10\t7\na/one.tar\t10\t990\t4294967294\nlarge\t5368709119\t1\n", "labels, CRLF, no end");
    accepts("b/tab%09new%0Aline%25.txt\t5\t5+\t3\n", "b/tab%09new%0Aline%25.txt\t5\t5+\t3\n",
            "escapes, a newline added");
    accepts("b/empty\t0\t0\n", "b/empty\t0\t0\n", "an empty file");
    accepts("a/one.tar\t0\t10\t\tk1\na/one.tar\t10\t10\t2\tk2\n", "a/one.tar\t0\t10\na/one.tar\t10\t10\t2\n",
            "keys are not shown");
    refuses("a/one.tar\t0\t1000\na/one.tar\t1\t1000\n", -ERANGE,
            "line 2: a/one.tar: 1000 bytes at offset 1 end beyond the end of the file, which has 1000 bytes");
    refuses("large\t0\t4294967296\n", -ERANGE,
            "line 1: large: a record of 4294967296 bytes: records are shorter than 4 GiB");
    refuses("none\t0\t1\n", -ENOENT, "line 1: none: No such file or directory");
    refuses("a\t0\t1\n", -EISDIR, "line 1: a: Is a directory");
    refuses("a/one.tar\n", -EINVAL, form);
    refuses("\t0\t1\n", -EINVAL, form);
    refuses("\n", -EINVAL, form);
    refuses("a/one.tar\t0\n", -EINVAL, form);
    refuses("a/one.tar\t\t1\n", -EINVAL, form);
    refuses("a/one.tar\t-1\t1\n", -EINVAL, form);
    refuses("a/one.tar\t0\t1 \n", -EINVAL, form);
    refuses("a/one.tar\t0\t1\t4294967296\n", -EINVAL, form);
    refuses("a/one.tar\t18446744073709551616\t1\n", -EINVAL, form);
    refuses("a/one.tar\t0\t1\t2\tk\na/one.tar\t0\t1\t2\n", -EINVAL, "line 2: no key, unlike the lines before");
    refuses("a/one.tar\t0\t1\na/one.tar\t0\t1\t2\tk\n", -EINVAL, "line 2: a key, unlike the lines before");
}

static void test_keys(void)
{
    struct samples *s = list_of("a/one.tar\t0\t1\t\tx\na/one.tar\t1\t1\t\ty\na/one.tar\t2\t1\t\tx\n");
    const struct record_traits *traits = samples_traits(s);
    ok(traits->keyed && traits->first == 0 && traits->second == 2, "two records that share a key are found");
    samples_put(s);
    s = list_of("a/one.tar\t0\t1\t\tx\na/one.tar\t1\t1\t\ty\n");
    ok(samples_traits(s)->keyed && samples_traits(s)->first == samples_traits(s)->second, "none");
    samples_put(s);
    s = list_of("a/one.tar\t0\t1\n");
    ok(!samples_traits(s)->keyed, "nor a key");
    is_uint(samples_traits(s)->format, RECORDS_TAR, "the format");
    samples_put(s);
}

static void test_packed(void)
{
    struct samples *text = list_of("a/two.tar\t0\t512\t7\nlarge\t5368709119\t1\nb/tab%09new%0Aline%25.txt\t5\t5+\t3\n");
    size_t n = samples_count(text) * sizeof(struct record);
    struct samples *s;
    CLEANUP_STR struct str why = STR_INIT;
    is_int(upload((const char *)samples_records(text), n, true, &s, &why), 0, "packed");
    is_mem(samples_digest(s), samples_digest(text), sizeof(struct digest), "is the same list");
    samples_put(s);
    is_int(upload((const char *)samples_records(text), n - 1, true, &s, &why), -EINVAL, "cut");
    is_str(why.data, "59 bytes are not a whole number of packed records of 20 bytes", "is said");
    str_clear(&why);
    const struct record beyond[] = {samples_records(text)[0], {.file = 1, .length = 1, .place = 2000}};
    is_int(upload((const char *)beyond, sizeof beyond, true, &s, &why), -ERANGE, "a range behind its file");
    is_str(why.data,
           "record 2: a/two.tar: 1 bytes at offset 2000 end beyond the end of the file, "
           "which has 2000 bytes",
           "is said");
    str_clear(&why);
    const struct record nowhere = {.file = 5};
    is_int(upload((const char *)&nowhere, sizeof nowhere, true, &s, &why), -ENOENT, "a file that is not there");
    is_str(why.data, "record 1: there is no file 5", "is said");
    samples_put(text);
    text = list_of("a/one.tar\t0\t1\t7\n");
    s = list_of("a/one.tar\t0\t1\t8\n");
    ok(memcmp(samples_digest(s), samples_digest(text), sizeof(struct digest)) != 0, "the digest covers labels");
    samples_put(s);
    samples_put(text);
}

static void test_select(void)
{
    struct samples *s = list_of("a/one.tar\t0\t1\t1\nlarge\t1\t1\na/two.tar\t2\t1\t3\n"), *some;
    CLEANUP_STR struct str why = STR_INIT;
    is_int(samples_select(s, "a", "t*", &some, &why), 0, "select");
    source_list_is(some, "a/two.tar\t2\t1\t3\n", "records of the files that are asked for");
    is_uint(samples_offset(some, 0), 2, "with their offset");
    samples_put(some);
    samples_put(s);
}

static void test_save(void)
{
    struct samples *s = list_of("a/one.tar\t0\t10\t7\tk\na/two.tar\t10\t20\t\tk\n"), *loaded;
    char path[256];
    uint64_t version = 0;
    snprintf(path, sizeof path, "%s", test_path("list"));
    is_int(samples_save(s, 7, path), 0, "saved");
    is_int(samples_load(catalog, path, &loaded, &version), 0, "and loaded");
    source_list_is(loaded, "a/one.tar\t0\t10\t7\na/two.tar\t10\t20\n", "is the same");
    is_mem(samples_digest(loaded), samples_digest(s), sizeof(struct digest), "with the same digest");
    is_uint(samples_traits(loaded)->second, 1, "and the same shared keys");
    samples_put(loaded);
    CLEANUP_STR struct str image = STR_INIT;
    source_list_damage(catalog, path, &image);
    is_uint(image.length, SAMPLES_HEADER + 2 * 20, "20 bytes per record");
    image.data[8] = 1;
    file_write_atomic(AT_FDCWD, path, image.data, image.length, 0600);
    is_int(samples_load(catalog, path, &loaded, &version), -EPROTO, "and so is the format before this one");
    samples_put(s);
}

static void test_table(void)
{
    struct samples_table *t;
    struct samples_record record[SAMPLES_RECORDS];
    char bytes[256];
    uint64_t length;
    samples_table_create(catalog, test_path("lists"), &t);
    is_int(samples_table_put(t, "r", 0, list_of("a/one.tar\t0\t10\t7\n")), 0, "kept by name");
    samples_table_destroy(t);
    samples_table_create(catalog, test_path("lists"), &t);
    struct samples *s = samples_table_find(t, "r");
    source_list_is(s, "a/one.tar\t0\t10\t7\n", "and by who opens the table again");
    samples_put(s);
    is_uint(samples_table_records(t, record), 1, "it is told to other nodes");
    samples_table_bytes(t, digest_head(&record[0].digest), 0, bytes, sizeof bytes, &length);
    CLEANUP_CLOSE int fd = memfd_create("list", MFD_CLOEXEC);
    file_write_all(fd, bytes, length);
    samples_table_destroy(t);
    samples_table_create(catalog, NULL, &t);
    is_int(samples_table_take(t, &record[0], fd), 0, "who take it");
    s = samples_table_find(t, "r");
    source_list_is(s, "a/one.tar\t0\t10\t7\n", "as it is");
    samples_put(s);
    samples_table_destroy(t);
}

/* Whatever is uploaded, what is accepted lies in its files. */
static void test_damaged(void)
{
    static const char good[] =
        "a/one.tar\t0\t10\t7\tk1\na/two.tar\t10\t20\t8\tk2\nb/tab%09new%0Aline%25.txt\t5\t5+\t3\tk3\n";
    static const char bits[] = "\t\n\r%+09a/\xff";
    unsigned odd = 0, refused = 0;
    srandom(1);
    for (int i = 0; i < 4000; i++) {
        char text[sizeof good];
        size_t n = sizeof good - 1;
        bool packed = i % 2;
        struct samples *s;
        CLEANUP_STR struct str why = STR_INIT;
        memcpy(text, good, sizeof good);
        for (long k = random() % 4; k >= 0; k--)
            text[(size_t)random() % n] = packed ? (char)(random() % 4) : bits[(size_t)random() % (sizeof bits - 1)];
        if (packed) /* small numbers, so that some are accepted */
            for (size_t at = 0; at < n; at++)
                text[at] = (char)(at % 4 == 0 || random() % 64 == 0 ? random() % 5 : 0);
        n = packed ? n / 20 * 20 : (size_t)random() % (n + 1);
        int error = upload(text, n, packed, &s, &why);
        odd += error ? !why.length || s : !s;
        refused += error != 0;
        for (uint32_t k = 0; s && k < samples_count(s); k++)
            odd += samples_offset(s, k) + samples_length(s, k) > catalog_file(catalog, samples_file(s, k)).size;
        samples_put(s);
    }
    is_uint(odd, 0, "damaged uploads are refused with a reason, or lie in their files");
    ok(refused > 1000 && refused < 3900, "both happened");
}

int main(void)
{
    make_catalog();
    test_text();
    test_keys();
    test_packed();
    test_select();
    test_save();
    test_table();
    test_damaged();
    catalog_close(catalog);
    done_testing();
}
