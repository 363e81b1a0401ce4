/* Names of folders, resolved paths, and folders that are ours or not. */
#include "cli/place.h"
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

static void test_names(void)
{
    struct place_key key = {"joe", "node7", "/data", "/mnt"}, other = key;
    struct str a = STR_INIT, b = STR_INIT, c = STR_INIT;

    place_add_name(&a, &key);
    ok(strncmp(a.data, "dealfs-joe-node7-", 17) == 0 && strspn(a.data + 17, "0123456789abcdef") == 16 && a.length == 33,
       "dealfs-USER-HOST-HASH: %s", a.data);
    place_add_short_name(&b, &key);
    ok(strncmp(b.data, "dealfs-", 7) == 0 && strcmp(b.data + 7, a.data + 17) == 0, "and the short one has the same hash");

    const char **const parts[] = {&other.user, &other.host, &other.source, &other.mountpoint};
    for (size_t i = 0; i < 4; i++) {
        other = key;
        *parts[i] = "other";
        str_clear(&c);
        place_add_short_name(&c, &other);
        ok(strcmp(c.data, b.data) != 0, "part %zu makes another hash", i);
    }
    other = (struct place_key){"joe", "node7", "/dat", "a/mnt"};
    str_clear(&c);
    place_add_short_name(&c, &other);
    ok(strcmp(c.data, b.data) != 0, "parts do not run together");
    other = (struct place_key){"DOM/joe", "node7", "/data", "/mnt"};
    str_clear(&c);
    place_add_name(&c, &other);
    ok(!strchr(c.data, '/'), "a slash in a user's name stays out of it: %s", c.data);
    str_fini(&a);
    str_fini(&b);
    str_fini(&c);
}

static void test_parent(void)
{
    const char *dir = test_path("parent");

    mkdir(dir, 0700);
    unsetenv("SLURM_TMPDIR");
    unsetenv("TMPDIR");
    is_str(place_state_parent(), "/var/tmp", "without variables");
    setenv("TMPDIR", dir, 1);
    is_str(place_state_parent(), dir, "TMPDIR");
    setenv("SLURM_TMPDIR", test_directory(), 1);
    is_str(place_state_parent(), test_directory(), "SLURM_TMPDIR goes first");
    setenv("SLURM_TMPDIR", test_path("absent"), 1);
    is_str(place_state_parent(), dir, "one that is not there is passed over");
    setenv("SLURM_TMPDIR", "", 1);
    is_str(place_state_parent(), dir, "and an empty one");
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

    is_int(place_source(test_path("absent"), &path, &why), -ENOENT, "a source that is not there");
    ok(strstr(why.data, "absent: No such file"), "is named: %s", why.data);
    str_clear(&why);
    is_int(place_source(test_path("file"), &path, &why), -ENOTDIR, "a source that is a file");
    str_clear(&why);
    is_int(place_source(test_path("src/../src//in/.."), &path, &why), 0, "a source by a long way");
    is_str(path, test_path("src"), "is resolved");
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

static void test_folder(void)
{
    struct str why = STR_INIT;
    struct stat st;
    bool made;

    is_int(place_folder("state", test_path("new/a/b"), "lock", getuid(), getgid(), &made, &why), 0, "a new one, with parents");
    ok(made && stat(test_path("new/a/b"), &st) == 0 && (st.st_mode & 07777) == 0700, "is made 0700");
    is_int(place_folder("state", test_path("new/a/b"), "lock", getuid(), getgid(), &made, &why), 0, "the same again");
    ok(!made, "is taken as it is");
    chmod(test_path("new/a/b"), 0777);
    is_int(place_folder("state", test_path("new/a/b"), "lock", getuid(), getgid(), &made, &why), 0, "an open one");
    ok(stat(test_path("new/a/b"), &st) == 0 && (st.st_mode & 07777) == 0700, "is closed to others");

    mkdir(test_path("full"), 0755);
    make_file(test_path("full/thesis"), "x");
    is_int(place_folder("state", test_path("full"), "lock", getuid(), getgid(), &made, &why), -EEXIST,
           "one with other things in it is refused");
    ok(stat(test_path("full"), &st) == 0 && (st.st_mode & 07777) == 0755, "and left alone");
    str_clear(&why);
    make_file(test_path("full/lock"), "");
    is_int(place_folder("state", test_path("full"), "lock", getuid(), getgid(), &made, &why), 0, "with our mark it is ours");

    if (symlink("full", test_path("folder-link")))
        bail_out("symlink: %s", strerror(errno));
    ok(place_folder("state", test_path("folder-link"), NULL, getuid(), getgid(), &made, &why) < 0, "a symlink is refused");
    ok(strstr(why.data, "is a symlink"), "said: %s", why.data);
    str_clear(&why);
    make_file(test_path("plain"), "x");
    is_int(place_folder("state", test_path("plain"), NULL, getuid(), getgid(), &made, &why), -ENOTDIR, "a file is refused");
    str_clear(&why);
    is_int(place_folder("state", test_path("plain/x"), NULL, getuid(), getgid(), &made, &why), -ENOTDIR, "or below a file");
    str_clear(&why);

    if (getuid() != 0) {
        skip(3, "needs root");
    } else {
        is_int(place_folder("state", test_path("full"), NULL, 65534, 65534, &made, &why), -EPERM, "another's is refused");
        str_clear(&why);
        is_int(place_folder("state", test_path("theirs"), NULL, 65534, 65534, &made, &why), 0, "a new one for another");
        ok(stat(test_path("theirs"), &st) == 0 && st.st_uid == 65534 && st.st_gid == 65534, "is made over to him");
    }
    str_fini(&why);
}

static void test_id(void)
{
    char first[DIGEST_TEXT], second[DIGEST_TEXT];
    struct str why = STR_INIT;

    mkdir(test_path("id"), 0700);
    is_int(place_id(test_path("id"), first, &why), 0, "an id is made");
    is_int((int)strspn(first, "0123456789abcdef"), 32, "of 32 digits");
    is_int(place_id(test_path("id"), second, &why), 0, "asked again");
    is_str(second, first, "it is the same");
    make_file(test_path("id/id"), "not an id, though it is as long.\n");
    is_int(place_id(test_path("id"), second, &why), 0, "a damaged one");
    ok(strcmp(second, first) != 0 && strspn(second, "0123456789abcdef") == 32, "is made anew");
    is_int(place_id(test_path("absent"), second, &why), -ENOENT, "without a folder it fails");
    str_fini(&why);
}

int main(void)
{
    test_expand();
    test_names();
    test_parent();
    make_places();
    test_source();
    test_mountpoint();
    test_look();
    test_apart();
    test_folder();
    test_id();
    return done_testing();
}
