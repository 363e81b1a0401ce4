/* Names of folders, resolved paths, and folders that are ours or not. */
#include "cli/base/place.h"
#include "fs/base/cleanup.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static void test_expand(void)
{
    struct str s = STR_INIT;
    char expected[512];
    place_expand("/a/%r/b%%%h%x%", 7, &s);
    snprintf(expected, sizeof expected, "/a/7/b%%%s%%x%%", place_host());
    is_str(s.data, expected, "%%r, %%h and %%%% are expanded, others stay");
    str_fini(&s);

    char here[4096];
    CLEANUP_FREE char *a = place_absolute("x/y///", 0), *b = place_absolute("///", 0), *c = place_absolute("/d%r/", 3);
    snprintf(expected, sizeof expected, "%s/x/y", getcwd(here, sizeof here));
    is_str(a, expected, "relative, with slashes at its end");
    is_str(b, "/", "nothing but slashes");
    is_str(c, "/d3", "absolute");
}

static void make_file(const char *path, const char *text)
{
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        bail_out("write %s: %s", path, strerror(errno));
}

static void make_places(void)
{
    mkdir(test_path("src"), 0755);
    mkdir(test_path("src/in"), 0755);
    mkdir(test_path("mnt"), 0755);
    make_file(test_path("file"), "x");
    if (symlink("mnt", test_path("link")) || symlink("nowhere", test_path("dangling")))
        bail_out("symlink: %s", strerror(errno));
}

static void test_source(void)
{
    struct str why = STR_INIT;
    char *path = NULL;
    int fd = -1;
    is_int(place_source(test_path("absent"), &path, &fd, &why), -ENOENT, "a source that is not there");
    ok(strstr(why.data, "absent: No such file"), "is named: %s", why.data);
    str_clear(&why);
    is_int(place_source(test_path("file"), &path, &fd, &why), -ENOTDIR, "a source that is a file");
    str_clear(&why);
    is_int(place_source(test_path("src/../src//in/.."), &path, &fd, &why), 0, "a source by a long way");
    is_str(path, test_path("src"), "is resolved");
    ok(fd >= 0 && close(fd) == 0, "and opened");
    free(path);
    str_fini(&why);
}

static void test_mountpoint(void)
{
    const struct {
        const char *given, *what, *resolved, *is;
    } table[] = {
        {test_path("mnt///"), "a mountpoint with slashes", test_path("mnt"), "is without them"},
        {test_path("link"), "a mountpoint that is a symlink", test_path("mnt"), "is what it leads to"},
        {test_path("src/../mnt/."), "a mountpoint that ends in a dot", test_path("mnt"), "is resolved"},
        {"/", "the root", "/", "is the root"},
    };
    struct str why = STR_INIT;
    char *path = NULL;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        is_int(place_mountpoint(table[i].given, &path, &why), 0, "%s", table[i].what);
        is_str(path, table[i].resolved, "%s", table[i].is);
        free(path);
    }
    is_int(place_mountpoint(test_path("absent/mnt"), &path, &why), -ENOENT, "a parent that is not there");
    str_clear(&why);
    is_int(place_mountpoint(test_path("dangling"), &path, &why), -ENOENT, "a symlink that leads nowhere");
    str_fini(&why);
}

static void test_look(void)
{
    struct str why = STR_INIT;
    bool empty;
    is_int(place_look(test_path("mnt"), &empty, &why), 0, "look at it");
    ok(empty, "it is empty");
    is_int(place_look(test_path("src"), &empty, &why), 0, "look at another");
    ok(!empty, "it is not");
    is_int(place_look(test_path("file"), &empty, &why), -ENOTDIR, "a file");
    str_clear(&why);
    is_int(place_look(test_path("absent"), &empty, &why), -ENOENT, "one that is not there");
    str_fini(&why);
}

static void test_apart(void)
{
    const struct {
        const char *source, *mountpoint, *what, *says;
    } table[] = {
        {test_path("src"), test_path("src"), "the same", "is the source itself"},
        {test_path("src"), test_path("src/in"), "the mountpoint inside the source", "lies inside the source"},
        {test_path("src/in"), test_path("src"), "the source inside the mountpoint", "has the source inside it"},
    };
    struct str why = STR_INIT;
    is_int(place_apart(test_path("src"), test_path("mnt"), &why), 0, "source and mountpoint apart");
    is_int(place_apart("/data/a", "/data/ab", &why), 0, "one's name begins the other's");
    is_int(place_apart("/data/ab", "/data/a", &why), 0, "and the other way round");
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        is_int(place_apart(table[i].source, table[i].mountpoint, &why), -EINVAL, "%s", table[i].what);
        ok(strstr(why.data, table[i].says), "said: %s", why.data);
        str_clear(&why);
    }
    is_int(place_apart(test_directory(), "/", &why), -EINVAL, "the root as mountpoint");
    str_fini(&why);
}

int main(void)
{
    test_expand();
    make_places();
    test_source();
    test_mountpoint();
    test_look();
    test_apart();
    return done_testing();
}
