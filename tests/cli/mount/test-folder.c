/* cli/mount/folder: names, and folders that are made and found to be ours. */
#include "cli/mount/folder.h"
#include "fs/base/cleanup.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static void make_file(const char *path, const char *text)
{
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        bail_out("write %s: %s", path, strerror(errno));
}

static int make(const char *path, const char *mark, uid_t uid, bool *made, struct str *why)
{
    const struct folder_wish wish = {
        .what = "state", .mark = mark, .uid = uid, .gid = uid == getuid() ? getgid() : uid};
    return folder_make(&wish, path, made, why);
}

static void test_names(void)
{
    struct folder_key key = {"joe", "node7", "/data", "name"}, other = key;
    struct str a = STR_INIT, b = STR_INIT, c = STR_INIT;
    folder_add_name(&a, &key);
    ok(strncmp(a.data, "dealfs-joe-node7-", 17) == 0 && strspn(a.data + 17, "0123456789abcdef") == 16 && a.length == 33,
       "dealfs-USER-HOST-HASH: %s", a.data);
    folder_add_short_name(&b, &key);
    ok(strncmp(b.data, "dealfs-", 7) == 0 && strcmp(b.data + 7, a.data + 17) == 0,
       "and the short one has the same hash");

    const char **const parts[] = {&other.user, &other.host, &other.cache_id, &other.source};
    for (size_t i = 0; i < 4; i++) {
        other = key;
        *parts[i] = "other";
        str_clear(&c);
        folder_add_short_name(&c, &other);
        is_int(strcmp(c.data, b.data) != 0, i < 3, "part %zu makes another hash; not the source where there is a name",
               i);
    }
    other = (struct folder_key){"joe", "node7", "name", NULL};
    str_clear(&c);
    folder_add_short_name(&c, &other);
    ok(strcmp(c.data, b.data) != 0, "a source is no name");
    str_clear(&b);
    folder_add_short_name(&b, &other);
    other = (struct folder_key){"joen", "ode7", "name", NULL};
    str_clear(&c);
    folder_add_short_name(&c, &other);
    ok(strcmp(c.data, b.data) != 0, "parts do not run together");
    other = (struct folder_key){"DOM/joe", "node7", "/data", NULL};
    str_clear(&c);
    folder_add_name(&c, &other);
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
    is_str(folder_state_parent(), "/var/tmp", "without variables");
    setenv("TMPDIR", dir, 1);
    is_str(folder_state_parent(), dir, "TMPDIR");
    setenv("SLURM_TMPDIR", test_directory(), 1);
    is_str(folder_state_parent(), test_directory(), "SLURM_TMPDIR goes first");
    setenv("SLURM_TMPDIR", test_path("absent"), 1);
    is_str(folder_state_parent(), dir, "one that is not there is passed over");
    setenv("SLURM_TMPDIR", "", 1);
    is_str(folder_state_parent(), dir, "and an empty one");
    if (getuid() != 0) {
        skip(1, "needs root");
        return;
    }
    if (chown(dir, 65534, 65534) < 0)
        bail_out("chown %s: %s", dir, strerror(errno));
    is_str(folder_state_parent(), "/var/tmp", "root passes over a folder that another user can replace");
}

static void test_folder(void)
{
    struct str why = STR_INIT;
    struct stat st;
    bool made;
    is_int(make(test_path("new/a/b"), "lock", getuid(), &made, &why), 0, "a new one, with parents");
    ok(made && stat(test_path("new/a/b"), &st) == 0 && (st.st_mode & 07777) == 0700, "is made 0700");
    is_int(make(test_path("new/a/b"), "lock", getuid(), &made, &why), 0, "the same again");
    ok(!made, "is taken as it is");
    chmod(test_path("new/a/b"), 0777);
    is_int(make(test_path("new/a/b"), "lock", getuid(), &made, &why), 0, "an open one");
    ok(stat(test_path("new/a/b"), &st) == 0 && (st.st_mode & 07777) == 0700, "is closed to others");

    mkdir(test_path("full"), 0755);
    make_file(test_path("full/thesis"), "x");
    is_int(make(test_path("full"), "lock", getuid(), &made, &why), -EEXIST, "one with other things in it is refused");
    ok(stat(test_path("full"), &st) == 0 && (st.st_mode & 07777) == 0755, "and left alone");
    str_clear(&why);
    make_file(test_path("full/lock"), "");
    is_int(make(test_path("full"), "lock", getuid(), &made, &why), 0, "with our mark it is ours");

    if (symlink("full", test_path("folder-link")))
        bail_out("symlink: %s", strerror(errno));
    ok(make(test_path("folder-link"), NULL, getuid(), &made, &why) < 0, "a symlink is refused");
    ok(strstr(why.data, "is a symlink"), "said: %s", why.data);
    str_clear(&why);
    make_file(test_path("plain"), "x");
    is_int(make(test_path("plain"), NULL, getuid(), &made, &why), -ENOTDIR, "a file is refused");
    str_clear(&why);
    is_int(make(test_path("plain/x"), NULL, getuid(), &made, &why), -ENOTDIR, "or below a file");
    str_clear(&why);

    if (getuid() != 0) {
        skip(3, "needs root");
    } else {
        is_int(make(test_path("full"), NULL, 65534, &made, &why), -EPERM, "another's is refused");
        str_clear(&why);
        is_int(make(test_path("theirs"), NULL, 65534, &made, &why), 0, "a new one for another");
        ok(stat(test_path("theirs"), &st) == 0 && st.st_uid == 65534 && st.st_gid == 65534, "is made over to him");
    }
    str_fini(&why);
}

/* Others have made all the names that are looked for first. */
static void test_claim(void)
{
    CLEANUP_FREE char *prefix = strdup(test_path("claims/dealfs-x"));
    const struct folder_wish wish = {
        .what = "state", .prefix = prefix, .lock = "lock", .number = -1, .uid = getuid(), .gid = getgid()};
    struct folder_claim first = {0}, second = {0};
    struct str why = STR_INIT;
    mkdir(test_path("claims"), 0700);
    for (int i = 0; i < FOLDER_CLAIMS; i++)
        make_file(test_path("claims/dealfs-x.%d", i), "");
    is_int(folder_claim(&wish, &first, &why), 0, "with all names taken, another one is found");
    is_int(folder_claim(&wish, &second, &why), 0, "and one more");
    ok(first.path && second.path && strcmp(first.path, second.path) != 0, "%s is not %s", first.path, second.path);
    ok(first.made && folder_number(first.path) >= FOLDER_CLAIMS, "made with a number that is not looked for: %s",
       first.path);
    close(first.lock);
    free(second.path);
    close(second.lock);
    folder_discard(first.path, "lock"); /* the second one is left */
    is_int(folder_claim(&wish, &second, &why), 0, "later, the one that is left");
    ok(!second.made, "is used again");
    free(first.path);
    free(second.path);
    close(second.lock);
    str_fini(&why);
}

static void test_id(void)
{
    char first[DIGEST_TEXT], second[DIGEST_TEXT];
    struct str why = STR_INIT;
    mkdir(test_path("id"), 0700);
    is_int(folder_id(test_path("id"), first, &why), 0, "an id is made");
    is_int((int)strspn(first, "0123456789abcdef"), 32, "of 32 digits");
    is_int(folder_id(test_path("id"), second, &why), 0, "asked again");
    is_str(second, first, "it is the same");
    make_file(test_path("id/id"), "not an id, though it is as long.\n");
    is_int(folder_id(test_path("id"), second, &why), 0, "a damaged one");
    ok(strcmp(second, first) != 0 && strspn(second, "0123456789abcdef") == 32, "is made again");
    is_int(folder_id(test_path("absent"), second, &why), -ENOENT, "without a folder it fails");
    str_fini(&why);
}

int main(void)
{
    test_names();
    test_parent();
    test_folder();
    test_claim();
    test_id();
    return done_testing();
}
