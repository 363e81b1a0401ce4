/* fs/catalog/samples.h */
#include "fs/base/file.h"
#include "fs/catalog/samples-inside.h"
#include "tests/fs/catalog/source.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

static struct catalog *catalog; /* of everything below but the large list */
static char root[256];

static const char *const files[] = {
    "a/b/1.JPG",       "a/b/2.txt", "a/1.png", "a-b/x.jpeg", "b/deep/er/y.webp", "b/back\\slash.jpg",
    "b/new\nline.jpg", "b/cr\r",    "b/\\n",   "top.jpg",    "c/plain",
};
enum { FILES = sizeof files / sizeof files[0] };

static void make_catalog(void)
{
    snprintf(root, sizeof root, "%s", test_path("source"));
    for (int i = 0; i < FILES; i++)
        source_add(root, files[i], i);
    source_add(root, "empty/", 0);
    source_link(root, "a/link.jpg", "1.png");
    catalog = source_catalog(root, test_path("catalog"));
}

/* --- a line --- */

static void test_escapes(void)
{
    static const struct {
        const char *path, *line;
    } table[] = {
        {"plain", "plain"}, {"", ""},         {"a\nb", "a\\nb"},         {"\r", "\\r"},
        {"\\", "\\\\"},     {"\\n", "\\\\n"}, {"\\\n\\", "\\\\\\n\\\\"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        CLEANUP_STR struct str line = STR_INIT;
        samples_text_escape(table[i].path, strlen(table[i].path), &line);
        is_str(line.data ? line.data : "", table[i].line, "path %zu as a line", i);
        size_t n = samples_text_unescape(line.data, line.length, line.data);
        ok(n == strlen(table[i].path) && memcmp(line.data ? line.data : "", table[i].path, n) == 0, "and back");
    }
    char odd[] = "a\\b\\";
    is_uint(samples_text_unescape(odd, sizeof odd - 1, odd), sizeof odd - 1, "other backslashes");
    is_str(odd, "a\\b\\", "stand for themselves");
}

/* --- built in --- */

static void test_all(void)
{
    struct samples *s = samples_all(catalog);
    is_uint(samples_count(s), FILES, "all files");
    bool in_order = true;
    for (uint32_t i = 0; i < FILES; i++)
        in_order &= samples_file(s, i) == i;
    ok(in_order, "in the catalog's order");
    source_list_is(
        s,
        "a/1.png\na/b/1.JPG\na/b/2.txt\na-b/x.jpeg\nb/\\\\n\nb/back\\\\slash.jpg\nb/cr\\r\nb/new\\nline.jpg\n"
        "b/deep/er/y.webp\nc/plain\ntop.jpg\n",
        "as text, with escapes");
    samples_put(s);
    samples_put(NULL);
}

static void test_imagefolder(void)
{
    struct samples *s = samples_imagefolder(catalog);
    source_list_is(s, "a/1.png\na/b/1.JPG\na-b/x.jpeg\nb/back\\\\slash.jpg\nb/new\\nline.jpg\nb/deep/er/y.webp\n",
                   "imagefolder");
    samples_put(s);
}

/* --- chosen --- */

static void test_select(void)
{
    static const struct {
        const char *under, *match, *expected;
    } table[] = {
        {NULL, NULL, NULL},
        {"a", NULL, "a/1.png\na/b/1.JPG\na/b/2.txt\n"},
        {"a/", NULL, "a/1.png\na/b/1.JPG\na/b/2.txt\n"},
        {"a/b", NULL, "a/b/1.JPG\na/b/2.txt\n"},
        {"b", "*.webp", "b/deep/er/y.webp\n"},
        {NULL, "1.*", "a/1.png\na/b/1.JPG\n"},
        {NULL, "a/*", "a/1.png\n"},
        {NULL, "/a/*", "a/1.png\n"},
        {NULL, "/*.jpg", "top.jpg\n"},
        {NULL, "a/**", "a/1.png\na/b/1.JPG\na/b/2.txt\n"},
        {NULL, "**/1.*", "a/1.png\na/b/1.JPG\n"},
        {NULL, "none", ""},
        {"empty", NULL, ""},
        {".", "c/*", "c/plain\n"},
    };
    struct samples *all = samples_all(catalog), *s;
    struct str why = STR_INIT, whole = STR_INIT;
    source_list_text(all, &whole);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        is_int(samples_select(all, table[i].under, table[i].match, &s, &why), 0, "select");
        source_list_is(s, table[i].expected ? table[i].expected : whole.data, "what was asked for");
        samples_put(s);
    }
    struct samples *images = samples_imagefolder(catalog);
    is_int(samples_select(images, "a", "*.JPG", &s, &why), 0, "select from another list");
    source_list_is(s, "a/b/1.JPG\n", "takes only what is in it");
    samples_put(s);
    samples_put(images);
    is_int(samples_select(all, "none", NULL, &s, &why), -ENOENT, "a directory that is not there");
    is_str(why.data, "under=none: No such file or directory", "is said");
    is_int(samples_select(all, "a/1.png", NULL, &s, &why), -ENOTDIR, "a file");
    is_int(samples_select(all, "a/link.jpg", NULL, &s, &why), -ENOTDIR, "a symlink");
    samples_put(all);
    str_fini(&why);
    str_fini(&whole);
}

/* --- uploaded --- */

static const char *const prefixes[] = {"/the/source", "/mnt/", NULL};

static void accepts(const char *payload, size_t n, char separator, const char *expected, const char *what)
{
    struct samples *s;
    CLEANUP_STR struct str why = STR_INIT;
    int error = samples_from_paths(catalog, &(struct samples_upload){payload, n, separator, prefixes}, &s, &why);
    if (!is_int(error, 0, "%s", what)) {
        diag("%s", why.data);
        return;
    }
    source_list_is(s, expected, "is the list");
    samples_put(s);
}
#define ACCEPTS(payload, separator, expected, what) accepts(payload, sizeof(payload) - 1, separator, expected, what)

static void refuses(const char *payload, size_t n, char separator, int error, const char *reason)
{
    struct samples *s = NULL;
    CLEANUP_STR struct str why = STR_INIT;
    is_int(samples_from_paths(catalog, &(struct samples_upload){payload, n, separator, prefixes}, &s, &why), error,
           "refused");
    is_str(why.data, reason, "with the reason");
}
#define REFUSES(payload, separator, error, reason) refuses(payload, sizeof(payload) - 1, separator, error, reason)

static void test_paths(void)
{
    ACCEPTS("", '\n', "", "nothing");
    ACCEPTS("top.jpg\n", '\n', "top.jpg\n", "a line");
    ACCEPTS("top.jpg\na/1.png", '\n', "top.jpg\na/1.png\n", "no newline at the end");
    ACCEPTS("top.jpg\r\na/1.png\r\n", '\n', "top.jpg\na/1.png\n", "CRLF");
    ACCEPTS("a/1.png\na/1.png\na/b/1.JPG\na/1.png\n", '\n', "a/1.png\na/1.png\na/b/1.JPG\na/1.png\n", "repeats");
    ACCEPTS("./a//1.png\n", '\n', "a/1.png\n", "dots and slashes");
    ACCEPTS("/the/source/a/1.png\n/mnt/top.jpg\n/the/source//b/deep/er/y.webp\n", '\n',
            "a/1.png\ntop.jpg\nb/deep/er/y.webp\n", "absolute paths");
    ACCEPTS("b/new\\nline.jpg\nb/cr\\r\nb/\\\\n\nb/back\\\\slash.jpg\n", '\n',
            "b/new\\nline.jpg\nb/cr\\r\nb/\\\\n\nb/back\\\\slash.jpg\n", "escapes");
    ACCEPTS("b/back\\slash.jpg\nb/\\n\n", '\n', "b/back\\\\slash.jpg\nb/\\\\n\n", "backslashes as they stand");
    ACCEPTS("b/new\nline.jpg\0b/\\n\0b/cr\r", '\0', "b/new\\nline.jpg\nb/\\\\n\nb/cr\\r\n",
            "with NUL, names as they are");
    REFUSES("top.jpg\nnone\n", '\n', -ENOENT, "line 2: none: No such file or directory");
    REFUSES("top.jpg\n\na/1.png\n", '\n', -EINVAL, "line 2: empty");
    REFUSES("a\n", '\n', -EISDIR, "line 1: a: Is a directory");
    REFUSES("top.jpg/x\n", '\n', -ENOTDIR, "line 1: top.jpg/x: Not a directory");
    REFUSES("a/link.jpg\n", '\n', -EINVAL, "line 1: a/link.jpg: a symbolic link, not a file");
    REFUSES("../source/top.jpg\n", '\n', -ENOENT, "line 1: ../source/top.jpg: No such file or directory");
    REFUSES("/etc/passwd\n", '\n', -EXDEV, "line 1: /etc/passwd: neither in the source nor in the mount");
    REFUSES("/mntx/top.jpg\n", '\n', -EXDEV, "line 1: /mntx/top.jpg: neither in the source nor in the mount");
    REFUSES("top.jpg\0x\ny\0", '\0', -ENOENT, "path 2: x\\x0ay: No such file or directory");
    REFUSES("a/1.png\\\n", '\n', -ENOENT, "line 1: a/1.png\\x5c: No such file or directory");
}

/* What is shown can be given back. */
static void test_round_trip(void)
{
    struct samples *all = samples_all(catalog), *back;
    CLEANUP_STR struct str text = STR_INIT, why = STR_INIT;
    source_list_text(all, &text);
    struct samples_upload given = {text.data, text.length, '\n', NULL}, one = {"top.jpg\n", 8, '\n', NULL};
    is_int(samples_from_paths(catalog, &given, &back, &why), 0, "the list all given back");
    is_mem(samples_digest(back), samples_digest(all), sizeof(struct digest), "is the same list");
    samples_put(back);
    samples_from_paths(catalog, &one, &back, &why);
    ok(memcmp(samples_digest(back), samples_digest(all), sizeof(struct digest)) != 0, "another has another digest");
    samples_put(back);
    samples_put(all);
}

/* --- kept --- */

static struct samples *one(const char *path)
{
    struct samples *s;
    struct str why = STR_INIT;
    if (samples_from_paths(catalog, &(struct samples_upload){path, strlen(path), '\n', NULL}, &s, &why))
        bail_out("%s", why.data);
    return s;
}

static void test_save(void)
{
    struct samples *s = one("top.jpg\na/1.png\ntop.jpg\n"), *loaded;
    char path[256];
    uint64_t version = 0;
    snprintf(path, sizeof path, "%s", test_path("list"));
    is_int(samples_load(catalog, path, &loaded, &version), -ENOENT, "a list that is not there");
    is_int(samples_save(s, 7, path), 0, "saved");
    is_int(samples_load(catalog, path, &loaded, &version), 0, "and loaded");
    source_list_is(loaded, "top.jpg\na/1.png\ntop.jpg\n", "is the same");
    is_uint(version, 7, "of the same version");
    is_mem(samples_digest(loaded), samples_digest(s), sizeof(struct digest), "with the same digest");
    samples_put(loaded);
    CLEANUP_STR struct str image = STR_INIT;
    source_list_damage(catalog, path, &image);
    file_write_atomic(AT_FDCWD, path, image.data, image.length, 0600);
    source_add(test_path("other"), "x", 1);
    struct catalog *other = source_catalog(test_path("other"), test_path("other.catalog"));
    is_int(samples_load(other, path, &loaded, &version), -ESTALE, "it belongs to its dataset");
    catalog_close(other);
    samples_put(s);
}

/* Costs of fewer samples, in a file that is right in all other respects. */
static struct samples *forged_costs(const struct samples *costs, uint64_t count)
{
    enum { COUNT = 16, CHECKSUM = 48 }; /* places in the header */
    char path[256];
    uint64_t version, head;
    struct digest checksum = {0};
    struct samples *loaded;
    CLEANUP_STR struct str image = STR_INIT;
    snprintf(path, sizeof path, "%s", test_path("costs"));
    size_t n = SAMPLES_HEADER + count * sizeof(uint32_t);
    if (samples_save(costs, 7, path) || file_read(AT_FDCWD, path, 1 << 20, &image))
        bail_out("save costs");
    memcpy(image.data + COUNT, &count, sizeof count);
    memcpy(image.data + CHECKSUM, &checksum, sizeof checksum);
    head = hash64(image.data, SAMPLES_HEADER, 0);
    checksum = hash128(image.data + SAMPLES_HEADER, n - SAMPLES_HEADER, head);
    memcpy(image.data + CHECKSUM, &checksum, sizeof checksum);
    if (file_write_atomic(AT_FDCWD, path, image.data, n, 0600) || samples_load(catalog, path, &loaded, &version))
        bail_out("load costs");
    return loaded;
}

static void test_costs(void)
{
    static const uint32_t number[FILES] = {7, UINT32_MAX, 0, 3};
    CLEANUP_STR struct str why = STR_INIT;
    struct samples *all = samples_all(catalog), *other = one("top.jpg\n"), *costs, *back, *unused;
    is_int(samples_from_costs(all, number, sizeof number, &costs, &why), 0, "costs of all");
    ok(!samples_costs(all) && samples_costs(costs)[1] == UINT32_MAX, "are numbers");
    ok(samples_costs_are_of(costs, all) && !samples_costs_are_of(costs, other), "of that list and no other");
    ok(!samples_costs_are_of(all, all), "which is no costs itself");
    is_int(samples_from_costs(all, number, sizeof number - 1, &unused, &why), -EINVAL, "too few");
    back = forged_costs(costs, FILES);
    ok(samples_costs_are_of(back, all) && samples_costs(back)[1] == UINT32_MAX, "saved and loaded: the same");
    is_mem(samples_digest(back), samples_digest(costs), sizeof(struct digest), "with the same digest");
    samples_put(back);
    back = forged_costs(costs, 2);
    ok(!samples_costs_are_of(back, all), "a file that claims to be of all, with fewer numbers, is not");
    samples_put(back);
    samples_put(costs);
    samples_put(other);
    samples_put(all);
}

static void test_table_names(struct samples_table *t)
{
    static const char *const bad[] = {
        "",         ".",   "..",
        ".x",       "a/b", "a b",
        "\xc3\xa9", "x~",  "12345678901234567890123456789012345678901234567890123456789012345"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        is_int(samples_table_put(t, bad[i], 0, one("top.jpg")), -EINVAL, "no name: `%s`", bad[i]);
    is_int(samples_table_put(t, "all", 0, one("top.jpg")), -EEXIST, "all stays");
    is_int(samples_table_put(t, "imagefolder", 0, one("top.jpg")), -EEXIST, "imagefolder stays");
}

static void test_table(const char *directory)
{
    struct samples_table *t;
    is_int(samples_table_create(catalog, directory, &t), 0, "a table whose directory's directory is gone");
    ok(access(test_path("state"), F_OK) < 0, "does not make that again");
    is_int(samples_table_put(t, "z", 0, one("top.jpg")), 0, "and takes lists");
    samples_table_destroy(t);
    mkdir(test_path("state"), 0700);
    is_int(samples_table_create(catalog, directory, &t), 0, "a table makes its directory");
    ok(!samples_table_find(t, "z"), "which has nothing of before");
    test_table_names(t);
    is_int(samples_table_put(t, "z", 0, one("top.jpg")), 0, "a list");
    is_int(samples_table_put(t, "Val-1.0_x", 0, one("a/1.png")), 0, "another");
    struct samples *before = samples_table_find(t, "z");
    is_int(samples_table_put(t, "z", 0, one("c/plain")), 0, "the first replaced");
    source_list_is(before, "top.jpg\n", "who reads the old one still has it");
    samples_put(before);
    struct str names = STR_INIT;
    is_int(samples_table_names(t, false, &names), 0, "names");
    is_mem(names.data, "Val-1.0_x\0all\0imagefolder\0z\0", 28, "are sorted");
    is_uint(names.length, 28, "and no more");
    str_fini(&names);
    struct samples *all = samples_table_find(t, "all"), *again = samples_table_find(t, "all");
    ok(all && all == again, "all is made once");
    samples_put(all);
    samples_put(again);
    ok(!samples_table_find(t, "none"), "a name that is not there");
    samples_table_destroy(t);
}

/* As many as there may be, and their bytes. */
static void test_table_full(void)
{
    struct samples_table *t;
    char name[16];
    int error = 0;
    samples_table_create(catalog, test_path("full"), &t);
    for (int i = 0; i < SAMPLES_LISTS; i++) {
        snprintf(name, sizeof name, "l%d", i);
        error = error ? error : samples_table_put(t, name, 0, one("top.jpg"));
    }
    is_int(error, 0, "%d lists", SAMPLES_LISTS);
    is_int(samples_table_put(t, "more", 0, one("top.jpg")), -EDQUOT, "and no more");
    is_int(samples_table_put(t, "l0", 0, one("c/plain")), 0, "but in the place of one");
    is_int(samples_table_remove(t, "l1", false), 0, "one is removed");
    is_int(samples_table_put(t, "more", 0, one("top.jpg")), 0, "there is room for another");
    struct files large = {.count = (uint32_t)samples_table_most(t)};
    large.file = calloc(large.count, sizeof *large.file);
    struct samples *s;
    if (!large.file || files_to_samples(&large, 0, catalog, &s))
        bail_out("no memory");
    is_int(samples_table_put(t, "l2", 0, s), -E2BIG, "the lists together are bounded");
    samples_table_destroy(t);
}

/* The bytes of this list, as another node gets them. */
static int open_list(struct samples_table *from, const struct samples_record *record)
{
    char bytes[1024];
    uint64_t length = 0;
    int fd = memfd_create("list", MFD_CLOEXEC);
    ssize_t n =
        record->count ? samples_table_bytes(from, digest_head(&record->digest), 0, bytes, sizeof bytes, &length) : 0;
    if (n != (ssize_t)length || file_write_all(fd, bytes, length))
        bail_out("the bytes of a list");
    return fd;
}

/* Two tables that look at each other's records. */
static void look_at(struct samples_table *to, struct samples_table *from)
{
    struct samples_record record[SAMPLES_RECORDS];
    uint32_t n = samples_table_records(from, record);
    for (uint32_t i = 0; i < n; i++) {
        if (!samples_table_wants(to, &record[i]))
            continue;
        int fd = open_list(from, &record[i]);
        is_int(samples_table_take(to, &record[i], fd), 0, "%s is taken", record[i].name);
        close(fd);
    }
}

static bool has(struct samples_table *t, const char *name)
{
    struct samples *s = samples_table_find(t, name);
    samples_put(s);
    return s;
}

static void test_tables_agree(void)
{
    struct samples_table *a, *b;
    samples_table_create(catalog, test_path("one"), &a);
    samples_table_create(catalog, NULL, &b);
    samples_table_put(a, "x", 0, one("top.jpg"));
    samples_table_put(a, "y", 0, one("top.jpg"));
    look_at(b, a);
    ok(has(b, "x") && has(b, "y"), "what one has the other takes");
    samples_table_remove(b, "x", false);
    samples_table_put(b, "y", 0, one("c/plain"));
    look_at(b, a);
    ok(!has(b, "x"), "what was removed does not come back");
    look_at(a, b);
    ok(!has(a, "x"), "it goes there, too");
    struct samples *y = samples_table_find(a, "y");
    source_list_is(y, "c/plain\n", "the later list is taken");
    samples_put(y);
    samples_table_destroy(a);
    samples_table_create(catalog, test_path("one"), &a);
    ok(!has(a, "x"), "also by who opens the table again");
    struct samples_record forged = {.name = "z", .version = UINT64_MAX, .count = 1};
    ok(!samples_table_wants(a, &forged), "a version beyond all is not believed");
    forged = (struct samples_record){.name = "../z", .version = 7, .count = 1};
    ok(!samples_table_wants(a, &forged), "nor a name that is none");
    forged = (struct samples_record){.name = "z", .version = 7, .count = UINT64_MAX};
    ok(!samples_table_wants(a, &forged), "nor a list without bounds");
    forged.count = 1;
    int fd = memfd_create("list", MFD_CLOEXEC);
    is_int(samples_table_take(a, &forged, fd), -EBADMSG, "bytes that are no list are not taken");
    close(fd);
    samples_table_destroy(a);
    samples_table_destroy(b);
}

/* A node that sends a valid list, but not the one that it has announced. */
static void test_table_other_list(void)
{
    struct samples_table *a, *b;
    struct samples_record record[SAMPLES_RECORDS], other;
    samples_table_create(catalog, NULL, &a);
    samples_table_create(catalog, NULL, &b);
    samples_table_put(a, "x", 0, one("top.jpg"));
    is_uint(samples_table_records(a, record), 1, "a list is announced");
    int fd = open_list(a, &record[0]);
    other = record[0];
    other.digest.byte[0] ^= 1;
    is_int(samples_table_take(b, &other, fd), -EBADMSG, "a list with another digest is not taken");
    other = record[0];
    other.count++;
    is_int(samples_table_take(b, &other, fd), -EBADMSG, "nor one with another length");
    ok(!has(b, "x"), "the table has none of them");
    is_int(samples_table_take(b, &record[0], fd), 0, "the announced list is taken");
    ok(has(b, "x"), "and is there");
    close(fd);
    samples_table_destroy(a);
    samples_table_destroy(b);
}

static void test_table_again(const char *directory)
{
    struct samples_table *t;
    file_write_atomic(AT_FDCWD, test_path("state/lists/bad"), "x", 1, 0600);
    is_int(samples_table_create(catalog, directory, &t), 0, "again, with a damaged list");
    struct samples *z = samples_table_find(t, "z");
    source_list_is(z, "c/plain\n", "lists were kept");
    samples_put(z);
    ok(!samples_table_find(t, "bad"), "the damaged one is left out");
    samples_table_destroy(t);
    samples_table_destroy(NULL);
}

static void test_table_nowhere(void)
{
    struct samples_table *t;
    is_int(samples_table_create(catalog, NULL, &t), 0, "without a directory");
    is_int(samples_table_put(t, "z", 0, one("top.jpg")), 0, "lists are not kept");
    struct samples *z = samples_table_find(t, "z");
    source_list_is(z, "top.jpg\n", "but there");
    samples_put(z);
    samples_table_destroy(t);
    file_write_atomic(AT_FDCWD, test_path("plain"), "", 0, 0600);
    is_int(samples_table_create(catalog, test_path("plain"), &t), 0, "a directory that is none");
    is_int(samples_table_put(t, "z", 0, one("top.jpg")), 0, "is not used");
    samples_table_destroy(t);
}

/* Readers and writers of one name. */
static struct samples_table *shared;
static atomic_bool ended;
static atomic_uint odd;

static void *read_lists(void *arg)
{
    (void)arg;
    while (!atomic_load(&ended)) {
        static const char *const name[] = {"all", "imagefolder", "x"};
        for (int i = 0; i < 3; i++) {
            struct samples *s = samples_table_find(shared, name[i]);
            struct str text = STR_INIT;
            if (s && (samples_text_read(s, 0, 1 << 20, &text) || text.length != samples_text_length(s) ||
                      (i == 2 && text.length != strlen("top.jpg\n"))))
                atomic_fetch_add(&odd, 1);
            str_fini(&text);
            samples_put(s);
        }
    }
    return NULL;
}

static void *write_lists(void *arg)
{
    (void)arg;
    for (int i = 0; i < 50; i++) {
        struct samples *s = one(i % 2 ? "top.jpg" : "c/plain");
        if (samples_table_put(shared, "x", 0, s))
            atomic_fetch_add(&odd, 1);
    }
    return NULL;
}

static void test_threads(void)
{
    pthread_t thread[4];
    samples_table_create(catalog, test_path("shared"), &shared);
    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, i < 2 ? write_lists : read_lists, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    atomic_store(&ended, true);
    for (int i = 2; i < 4; i++)
        pthread_join(thread[i], NULL);
    is_uint(atomic_load(&odd), 0, "readers and writers of one table");
    samples_table_destroy(shared);
}

/* --- slices of the text --- */

static void test_slices(void)
{
    char large[256], name[64];
    snprintf(large, sizeof large, "%s", test_path("large"));
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "c%d/%s%d", i % 7, i % 11 ? "x" : "a long name with a \\ and\n", i);
        source_add(large, name, 0);
    }
    struct catalog *c = source_catalog(large, test_path("large.catalog"));
    struct samples *s = samples_all(c);
    struct str whole = STR_INIT, slice = STR_INIT;
    source_list_text(s, &whole);
    unsigned seed = 3, wrong = 0, lines = 0;
    for (size_t i = 0; i < whole.length; i++)
        lines += whole.data[i] == '\n';
    is_uint(lines, 3000, "a line is a path");
    for (int i = 0; i < 5000; i++) {
        size_t offset = (size_t)rand_r(&seed) % (whole.length + 10), n = (size_t)rand_r(&seed) % (i % 10 ? 300 : 30000);
        size_t expected = offset >= whole.length ? 0 : n < whole.length - offset ? n : whole.length - offset;
        str_clear(&slice);
        str_adds(&slice, "kept");
        wrong += samples_text_read(s, offset, n, &slice) != 0 || slice.length != expected + 4 ||
                 memcmp(slice.data, "kept", 4) != 0 || memcmp(slice.data + 4, whole.data + offset, expected) != 0;
    }
    is_uint(wrong, 0, "5,000 random slices");
    is_int(samples_text_read(s, UINT64_MAX, 10, &slice), 0, "far past the end");
    samples_put(s);
    catalog_close(c);
    str_fini(&whole);
    str_fini(&slice);
}

int main(void)
{
    char lists[256];
    make_catalog();
    test_escapes();
    test_all();
    test_imagefolder();
    test_select();
    test_paths();
    test_round_trip();
    test_save();
    test_costs();
    snprintf(lists, sizeof lists, "%s", test_path("state/lists"));
    test_table(lists);
    test_table_again(lists);
    test_table_nowhere();
    test_table_full();
    test_tables_agree();
    test_table_other_list();
    test_threads();
    test_slices();
    catalog_close(catalog);
    return done_testing();
}
