/* ACLs in scans: modes respect them where other users may use the mount, and no file is asked for its ACL without
 * need. The ACLs are those of this program: the file system of the test may have none. */
#include "tests/fs/catalog/aged.h"
#include "tests/fs/catalog/denying-acl.h"
#include "tests/fs/catalog/scanning.h"

#include <limits.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { FILES = 100, DIRECTORIES = 21 }; /* of scanning_add_classes */

static struct {
    const char *denied; /* the end of a path: its ACL denies one user to read it */
    bool none;          /* the file system has no ACLs */
    atomic_uint asked;  /* system calls for an ACL */
    atomic_uint looked; /* system calls that look at a file */
} acls;

static void count_look(const struct statx *x, int flags, struct statx_timestamp *ctime)
{
    (void)flags, (void)ctime;
    atomic_fetch_add(&acls.looked, S_ISREG(x->stx_mode));
}

static ssize_t answer(const char *path, void *value, size_t n)
{
    size_t length = strlen(path), end = acls.denied ? strlen(acls.denied) : 0;
    atomic_fetch_add(&acls.asked, 1);
    errno = acls.none ? EOPNOTSUPP : ENODATA;
    if (acls.none || !end || end > length || strcmp(path + length - end, acls.denied) != 0 || n < sizeof denying_acl)
        return -1;
    memcpy(value, &denying_acl, sizeof denying_acl);
    return sizeof denying_acl;
}

/* `path`: of a descriptor, or of a name below one. */
ssize_t lgetxattr(const char *path, const char *name, void *value, size_t n)
{
    char link[PATH_MAX], whole[2 * PATH_MAX];
    int file = 0;
    (void)name;
    if (sscanf(path, "/proc/self/fd/%*d%n", &file) != 0 || !file)
        bail_out("%s: an ACL is asked for by a path", path);
    snprintf(link, sizeof link, "%.*s", file, path);
    ssize_t length = readlink(link, whole, PATH_MAX);
    snprintf(whole + (length < 0 ? 0 : length), PATH_MAX, "%s", path + file);
    return answer(whole, value, n);
}

ssize_t getxattr(const char *path, const char *name, void *value, size_t n)
{
    return lgetxattr(path, name, value, n);
}

/* --- scans --- */

struct seen {
    unsigned asked, looked;
    mode_t mode; /* of c1/1 */
    struct digest version;
    struct digest dataset;
    struct scan_progress found;
};

static struct seen scan_with(const struct scan_options *options)
{
    struct seen s = {0};
    struct catalog *c;
    struct stat st;
    uint32_t file;
    atomic_store(&acls.asked, 0);
    atomic_store(&acls.looked, 0);
    if (source_scan(scanning_root, scanning_path, options, &c, &s.found))
        bail_out("scan %s", scanning_root);
    s.asked = atomic_load(&acls.asked);
    s.looked = atomic_load(&acls.looked);
    if (catalog_stat(c, source_find(c, "c1/1"), &st) || catalog_ino_file(c, source_find(c, "c1/1"), &file))
        bail_out("%s has no c1/1", scanning_path);
    s.mode = st.st_mode & 0777;
    s.version = catalog_file_version(c, file);
    s.dataset = scanning_digest(c);
    is_uint(catalog_notes(c)->acls, options->acls, "the catalog says whether it respects ACLs");
    catalog_close(c);
    return s;
}

static struct seen scan(bool respect, enum rescan how)
{
    return scan_with(&(struct scan_options){.acls = respect, .rescan = how});
}

static void begin(const char *name)
{
    scanning_begin(name);
    scanning_add_classes();
    if (chmod(test_path("%s/c1/1", name), 0644))
        bail_out("chmod: %s", strerror(errno));
    source_settle();
    acls.denied = "c1/1";
    acls.none = false;
}

/* --- tests --- */

static void test_private(void)
{
    begin("private");
    struct seen s = scan(false, RESCAN_AUTO);
    is_uint(s.looked, FILES, "the first scan looks once at each file");
    is_uint(s.asked, 0, "and asks for no ACL where only the owner may use the mount");
    is_uint(s.mode, 0644, "the mode is that of stat");
    s = scan(false, RESCAN_AUTO);
    is_uint(s.looked, FILES, "the next scan looks once at each file");
    is_uint(s.asked, 0, "and asks for no ACL");
}

static void test_respected(void)
{
    begin("respected");
    struct seen s = scan(true, RESCAN_AUTO);
    is_uint(s.mode, 0600, "nobody else may read what an ACL denies to one of them");
    is_uint(s.looked, FILES, "this also looks once at each file");
    is_uint(s.asked, FILES + DIRECTORIES, "and asks each file and directory once");
    s = scan(true, RESCAN_AUTO);
    is_uint(s.mode, 0600, "the next scan finds the same");
    is_uint(s.asked, 1, "and asks no file whose ctime is as before: only the root");
    if (chmod(test_path("respected/c2/2"), 0604))
        bail_out("chmod: %s", strerror(errno));
    s = scan(true, RESCAN_AUTO);
    is_uint(s.asked, 2, "but a file whose ctime has changed");
    acls.denied = "respected/c1";
    if (chmod(test_path("respected/c1"), 0755))
        bail_out("chmod: %s", strerror(errno));
    struct catalog *c;
    struct stat st;
    if (source_scan(scanning_root, scanning_path, &(struct scan_options){.acls = true}, &c, NULL) ||
        catalog_stat(c, source_find(c, "c1"), &st))
        bail_out("scan %s", scanning_root);
    is_uint(st.st_mode & 0777, 0700, "and such a directory");
    catalog_close(c);
}

static void test_without_acls(void)
{
    begin("without");
    acls.none = true;
    struct seen s = scan(true, RESCAN_AUTO);
    is_uint(s.asked, 1, "a file system that has no ACLs is asked once");
    is_uint(s.mode, 0644, "modes are those of stat");
    s = scan(true, RESCAN_ALWAYS);
    is_uint(s.asked, 1, "by each scan");
    s = scan_with(&(struct scan_options){.acls = true, .ignore_ctime = true});
    s = scan_with(&(struct scan_options){.acls = true, .ignore_ctime = true});
    is_uint(s.asked, 1, "also where no ctime is compared");
    acls.none = false;
    s = scan_with(&(struct scan_options){.acls = true, .ignore_ctime = true});
    is_uint(s.mode, 0600, "a file system that has some is asked for all there, by the next scan");
}

/* The modes of a catalog that ignores ACLs are too wide for other users. */
static void test_catalog_ignores(enum rescan how, const char *name)
{
    begin(name);
    struct seen before = scan(false, RESCAN_AUTO), s = scan(true, how);
    is_uint(s.mode, 0600, "%s: after a scan that ignored ACLs, the next one asks for them", name);
    is_uint(s.asked, FILES + DIRECTORIES, "of all files and directories");
    ok(same_digest(s.version, before.version), "the file is still the same");
    is_uint(s.found.rewritten, 0, "and no file was rewritten");
    ok(!same_digest(s.dataset, before.dataset), "but another mode is another dataset");
    s = scan(false, RESCAN_NAMES);
    is_uint(s.mode, 0644, "the owner alone has the modes of stat again");
    ok(same_digest(s.dataset, before.dataset), "and the dataset of before");
}

/* The mode without the ACL must not explain another ctime. */
static void test_rewritten(bool first)
{
    struct stat st;
    begin(first ? "rewritten-first" : "rewritten-then");
    struct seen before = scan(first, RESCAN_AUTO);
    const char *path = test_path("%s/c1/1", first ? "rewritten-first" : "rewritten-then");
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) || pwrite(fd, "x", 1, 0) != 1 ||
        futimens(fd, (struct timespec[2]){st.st_atim, st.st_mtim}))
        bail_out("write %s: %s", path, strerror(errno));
    struct seen s = scan(!first, RESCAN_AUTO);
    is_uint(s.found.rewritten, 1, "a file that was rewritten is seen where ACLs %s respected before",
            first ? "were" : "were not");
    ok(!same_digest(s.version, before.version), "and has another version");
}

static void test_portions(void)
{
    begin("portions");
    scan(true, RESCAN_AUTO);
    CLEANUP_CLOSE int source = open(scanning_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP_CLOSE int looked = memfd_create("looked", MFD_CLOEXEC);
    atomic_store(&acls.asked, 0);
    struct scan_options options = {.threads = 4};
    is_int(scan_portion(source, scanning_path, &options, (struct scan_part){0, 1}, looked), 0,
           "another node looks at all files");
    is_uint(atomic_load(&acls.asked), 1, "and asks only the root");
    struct seen s = scan_with(&(struct scan_options){.acls = true, .looked = looked});
    is_uint(s.found.shared, FILES, "it finds that all are as before");
    is_uint(s.looked, 0, "so this node looks at none");
    is_uint(s.mode, 0600, "and their modes respect ACLs");
    s = scan_with(&(struct scan_options){.looked = looked});
    is_uint(s.found.shared, 0, "this does not count for a scan that ignores ACLs");
}

int main(void)
{
    aged.before = count_look;
    test_private();
    test_respected();
    test_without_acls();
    test_catalog_ignores(RESCAN_AUTO, "auto");
    test_catalog_ignores(RESCAN_NAMES, "names");
    test_catalog_ignores(RESCAN_NEVER, "never");
    test_rewritten(false);
    test_rewritten(true);
    test_portions();
    return done_testing();
}
