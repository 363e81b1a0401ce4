/* fs/catalog/catalog.h: what a catalog says is what the source has, in the orders that it promises. */
#include "tests/fs/catalog/source.h"

#include <ftw.h>
#include <stdlib.h>

static const struct catalog *walked;
static size_t root_length;
static uint64_t seen;
static bool alike;

static void differ(const char *what, const char *path)
{
    alike = false;
    diag("%s differs: %s", what, path);
}

/* Every inode of the source against the catalog. */
static int compare(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)type;
    struct stat got;
    size_t length, target_length;
    char target[PATH_MAX];
    const char *below = path[root_length] ? path + root_length + 1 : "";
    uint64_t ino = source_find(walked, below);
    if (!ino || catalog_stat(walked, ino, &got)) {
        differ("existence", path);
        return 0;
    }
    seen++;
    if (got.st_mode != st->st_mode || got.st_uid != st->st_uid || got.st_gid != st->st_gid || got.st_ino != ino)
        differ("mode, owner or number", path);
    if (got.st_mtim.tv_sec != st->st_mtim.tv_sec || got.st_mtim.tv_nsec != st->st_mtim.tv_nsec)
        differ("mtime", path);
    if (!S_ISDIR(st->st_mode) && got.st_size != st->st_size)
        differ("size", path);
    if (strcmp(source_path(walked, ino), below) != 0)
        differ("path", path);
    if (at->level > 0 && strcmp(catalog_name(walked, ino, &length), path + at->base) != 0)
        differ("name", path);
    const char *kept = catalog_link_target(walked, ino, &target_length);
    if (S_ISLNK(st->st_mode) != (kept != NULL))
        differ("kind", path);
    if (kept) {
        ssize_t n = readlink(path, target, sizeof target);
        if (n < 0 || (size_t)n != target_length || memcmp(kept, target, target_length) != 0)
            differ("target", path);
    }
    return 0;
}

/* Every inode of the catalog: children, parents and lookups agree, names ascend. */
static bool consistent(const struct catalog *c)
{
    uint64_t children = 1, found, child;
    for (uint64_t ino = CATALOG_ROOT; ino <= catalog_directories(c); ino++) {
        uint64_t place = 0;
        for (; catalog_child(c, ino, place, &child) == 0; place++) {
            size_t n, m;
            const char *name = catalog_name(c, child, &n);
            if (catalog_parent(c, child) != ino || catalog_lookup(c, ino, name, n, &found) || found != child)
                return false;
            uint64_t next;
            bool same_kind = catalog_child(c, ino, place + 1, &next) == 0 && next == child + 1;
            if (same_kind && catalog_parent(c, next) == ino && next != catalog_directories(c) + 1 &&
                next != catalog_directories(c) + catalog_files(c) + 1 && strcmp(name, catalog_name(c, next, &m)) >= 0)
                return false;
        }
        children += place;
    }
    return children == catalog_inodes(c);
}

/* The order of samples, spelled out: (top-level directory, directory's path, name), the root's files last. */
static int sample_compare(const char *a, const char *b)
{
    const char *a_slash = strrchr(a, '/'), *b_slash = strrchr(b, '/');
    size_t a_dir = a_slash ? (size_t)(a_slash - a) : 0, b_dir = b_slash ? (size_t)(b_slash - b) : 0;
    if (!a_dir != !b_dir)
        return a_dir ? -1 : 1;
    char *top_a = strndup(a, strcspn(a, "/")), *top_b = strndup(b, strcspn(b, "/"));
    char *dir_a = strndup(a, a_dir), *dir_b = strndup(b, b_dir);
    int order = a_dir ? strcmp(top_a, top_b) : 0;
    if (!order)
        order = strcmp(dir_a, dir_b);
    if (!order)
        order = strcmp(a + (a_dir ? a_dir + 1 : 0), b + (b_dir ? b_dir + 1 : 0));
    free(top_a);
    free(top_b);
    free(dir_a);
    free(dir_b);
    return order;
}

static bool in_order(const struct catalog *c)
{
    for (uint32_t f = 1; f < catalog_files(c); f++) {
        const char *before = source_path(c, catalog_file_ino(c, f - 1)), *here = source_path(c, catalog_file_ino(c, f));
        if (sample_compare(before, here) >= 0) {
            diag("`%s` stands before `%s`", before, here);
            return false;
        }
    }
    return true;
}

static void compare_all(const char *root, const struct catalog *c, const char *what)
{
    walked = c;
    root_length = strlen(root);
    seen = 0;
    alike = true;
    nftw(root, compare, 50, FTW_PHYS);
    ok(alike, "%s: every inode is as in the source", what);
    is_uint(seen, catalog_inodes(c), "%s: and there are no others", what);
    ok(consistent(c), "%s: children, parents and lookups agree, names ascend", what);
    ok(in_order(c), "%s: files stand in the order of samples", what);
}

static void add_tricky(const char *root)
{
    static const char *const path[] = {
        "z",
        "a/1",
        "a-b/1",
        "a b/1",
        "a/c/1",
        "t/a/1",
        "t/a/c/1",
        "t/a-b/1",
        "t/a b/1",
        "t/a/c/d/1",
        "t/a-b/x/1",
        "t/a!/1",
        "t/0",
        "t/\xff\xfe/1",
        "t/\n/\n",
        "\xc3\xa9/x",
        "\xff/y",
        "t/a/c-/1",
        "t/a/c/-",
        "t/a/c0/1",
        "empty/",
        "deep/1/2/3/4/5/6/",
        ".hidden/.f",
        "A/1",
        "t/a.b/1",
        "t/a/b",
        "t/aa/b",
        "t/a0/b",
        "t/a/.dealfs/x",
        "back\\slash",
    };
    for (size_t i = 0; i < sizeof path / sizeof path[0]; i++)
        source_add(root, path[i], (off_t)(i * 1000));
    source_link(root, "t/link", "a/b");
    source_link(root, "t/dangling", "nowhere\n");
    source_link(root, "0link", "t");
    source_age(root, "a/1", -5);
    source_age(root, "t/link", 1);
}

static void test_tricky(void)
{
    const char *root = test_path("tricky"), *path = test_path("tricky.catalog");
    add_tricky(root);
    struct catalog *c = source_catalog(root, path);
    compare_all(root, c, "odd names");
    is_uint(catalog_notes(c)->links_to_files, 1, "one symlink leads to a file");
    catalog_close(c);
}

/* A random tree; names of few letters, so that prefixes of each other and of siblings abound. */
static void add_random(const char *root, const char *below, int depth, unsigned *seed)
{
    static const char letter[] = "ab-. /0A\xff\x7f";
    int entries = rand_r(seed) % 12;
    for (int i = 0; i < entries; i++) {
        char path[512], *end = path + snprintf(path, sizeof path, "%s", below);
        int length = 1 + rand_r(seed) % 3;
        for (int k = 0; k < length; k++) {
            char c = letter[(size_t)rand_r(seed) % (sizeof letter - 1)];
            *end++ = c == '/' ? '_' : c;
        }
        *end = '\0';
        char whole[1024];
        snprintf(whole, sizeof whole, "%s/%s", root, path);
        if (strcmp(end - length, ".") == 0 || strcmp(end - length, "..") == 0 || access(whole, F_OK) == 0)
            continue;
        if (depth > 0 && rand_r(seed) % 2) {
            *end++ = '/';
            *end = '\0';
            source_add(root, path, 0);
            add_random(root, path, depth - 1, seed);
        } else {
            source_add(root, path, rand_r(seed) % 100000);
        }
    }
}

static void test_random(void)
{
    for (unsigned round = 0; round < 20; round++) {
        unsigned seed = round;
        char root[256], path[256];
        snprintf(root, sizeof root, "%s", test_path("random%u", round));
        snprintf(path, sizeof path, "%s", test_path("random%u.catalog", round));
        source_add(root, "", 0);
        add_random(root, "", 4, &seed);
        struct catalog *c = source_catalog(root, path);
        compare_all(root, c, test_path("random tree %u", round));
        catalog_close(c);
    }
}

/* Of d/e/file, d/link and top. */
static void test_lookup(const struct catalog *c)
{
    uint64_t ino, d = source_find(c, "d"), file = source_find(c, "d/e/file"), link = source_find(c, "d/link");
    is_uint(catalog_directories(c), 3, "directories");
    is_uint(catalog_files(c), 2, "files");
    is_uint(catalog_links(c), 1, "symlinks");
    is_uint(catalog_bytes(c), 1235, "bytes");
    is_uint(file, 4, "the first file comes after the directories");
    is_int(catalog_lookup(c, d, "x", 1, &ino), -ENOENT, "a name that is not there");
    is_int(catalog_lookup(c, file, "x", 1, &ino), -ENOTDIR, "lookup in a file");
    is_int(catalog_lookup(c, link, "x", 1, &ino), -ENOTDIR, "lookup in a symlink");
    is_int(catalog_lookup(c, 0, "x", 1, &ino), -ENOENT, "lookup in inode 0");
    is_int(catalog_lookup(c, 7, "x", 1, &ino), -ENOENT, "lookup in an inode that is not there");
    is_int(catalog_lookup(c, d, "ee", 2, &ino), -ENOENT, "a longer name");
    is_int(catalog_lookup(c, d, "", 0, &ino), -ENOENT, "an empty name");
    is_int(catalog_child(c, d, 2, &ino), -ENOENT, "past the last child");
    is_int(catalog_child(c, d, UINT64_MAX, &ino), -ENOENT, "far past the last child");
    is_int(catalog_child(c, file, 0, &ino), -ENOTDIR, "a child of a file");
}

static void test_numbers(const struct catalog *c)
{
    uint64_t d = source_find(c, "d"), file = source_find(c, "d/e/file"), link = source_find(c, "d/link");
    uint32_t number = 99;
    is_int(catalog_ino_file(c, file, &number), 0, "the number of a file");
    is_uint(number, 0, "is that of the sample");
    is_int(catalog_ino_file(c, d, &number), -EISDIR, "a directory has none");
    is_int(catalog_ino_file(c, link, &number), -EINVAL, "a symlink has none");
    is_int(catalog_ino_file(c, 7, &number), -ENOENT, "nor what is not there");
}

static void test_stat(const struct catalog *c)
{
    struct stat st;
    is_int(catalog_stat(c, 7, &st), -ENOENT, "stat of what is not there");
    is_int(catalog_stat(c, source_find(c, "d"), &st), 0, "stat of a directory");
    is_uint(st.st_nlink, 3, "counts its subdirectories");
    is_int(catalog_stat(c, source_find(c, "d/e/file"), &st), 0, "stat of a file");
    ok(st.st_blksize >= 128 << 10 && st.st_nlink == 1, "has a large block size");
    is_int(st.st_blocks, 0, "and the blocks of its source: it is a hole");
}

static void test_find(const struct catalog *c)
{
    uint64_t ino, file = source_find(c, "d/e/file");
    is_uint(source_find(c, "/./d//e/./file/"), file, "find skips dots and empty components");
    is_int(catalog_find(c, "d/../d", 6, &ino), -ENOENT, "but knows no ..");
    is_int(catalog_find(c, "top/x", 5, &ino), -ENOTDIR, "a file has nothing below it");
    is_uint(source_find(c, ""), CATALOG_ROOT, "the empty path is the root");
}

static void test_paths(const struct catalog *c)
{
    uint64_t file = source_find(c, "d/e/file");
    size_t length;
    char small[9];
    is_str(catalog_name(c, CATALOG_ROOT, &length), "", "whose name is empty");
    is_uint(catalog_parent(c, CATALOG_ROOT), CATALOG_ROOT, "and whose parent it is itself");
    is_int(catalog_path(c, file, small, 9), 8, "a path that just fits");
    is_str(small, "d/e/file", "is the path");
    is_int(catalog_path(c, file, small, 8), -ENAMETOOLONG, "one that does not");
    is_int(catalog_path(c, CATALOG_ROOT, small, 1), 0, "the root's path is empty");
}

static void test_lookups(void)
{
    const char *root = test_path("lookups");
    source_add(root, "d/e/file", 1234);
    source_add(root, "top", 1);
    source_link(root, "d/link", "e/file");
    struct catalog *c = source_catalog(root, test_path("lookups.catalog"));
    test_lookup(c);
    test_numbers(c);
    test_stat(c);
    test_find(c);
    test_paths(c);
    catalog_close(c);
    catalog_close(NULL);
}

static void test_identity(void)
{
    const char *root = test_path("identity");
    for (int i = 0; i < 2; i++) {
        source_add(root, i ? "a/x" : "a/y", 10);
        source_add(root, i ? "b/x" : "b/y", 10);
    }
    source_add(root, "a/larger/x", 11);
    source_age(root, "a/x", 1000);
    source_age(root, "b/x", 1000);
    source_age(root, "a/y", 1000);
    source_age(root, "a/larger/x", 1000);
    struct catalog *c = source_catalog(root, test_path("identity.catalog"));
    uint32_t ax, bx, ay, larger;
    catalog_ino_file(c, source_find(c, "a/x"), &ax);
    catalog_ino_file(c, source_find(c, "b/x"), &bx);
    catalog_ino_file(c, source_find(c, "a/y"), &ay);
    catalog_ino_file(c, source_find(c, "a/larger/x"), &larger);
    uint64_t seed = catalog_file_seed(c, ax);
    struct digest id = catalog_file_identity(c, ax), other = catalog_file_identity(c, bx);
    ok(catalog_file_seed(c, bx) != seed, "the seed is of the path: a file of the same name elsewhere has another");
    ok(catalog_file_seed(c, ay) != seed, "another name has another seed");
    ok(catalog_file_seed(c, larger) != seed, "another size has another seed");
    ok(memcmp(&id, &other, sizeof id) != 0, "the identity is of the path");
    catalog_close(c);
    source_add(root, "a/0", 1); /* shifts the numbers */
    c = source_catalog(root, test_path("identity.catalog"));
    uint32_t now;
    catalog_ino_file(c, source_find(c, "a/x"), &now);
    ok(now != ax, "in a catalog with other numbers");
    is_uint(catalog_file_seed(c, now), seed, "the seed stays");
    other = catalog_file_identity(c, now);
    is_mem(&other, &id, sizeof id, "and the identity");
    catalog_close(c);
}

static void test_memory(void)
{
    char root[256], path[64];
    snprintf(root, sizeof root, "%s", test_path("many"));
    for (int i = 0; i < 2000; i++) {
        snprintf(path, sizeof path, "class%02d/n01440764_%05d.JPEG", i % 20, i);
        source_add(root, path, i);
    }
    struct catalog *c = source_catalog(root, test_path("many.catalog"));
    is_uint(catalog_files(c), 2000, "2000 files");
    ok(catalog_memory(c) <= 100 * (uint64_t)catalog_files(c), "at most 100 bytes per file: %.1f",
       (double)catalog_memory(c) / catalog_files(c));
    catalog_close(c);
}

int main(void)
{
    test_lookups();
    test_identity();
    test_tricky();
    test_random();
    test_memory();
    return done_testing();
}
