/* The source layer: right bytes, and the right error when the source is not as the catalog says. */
#include "fs/store/source.h"

#include "fs/base/beneath.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "tests/fs/catalog/denying-acl.h"
#include "tests/fs/store/dataset.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

/* The source's preadv is this one: it can give less, be interrupted or fail, and have something happen to the file. */
static struct {
    size_t most;       /* bytes in one call; 0: all */
    int interruptions; /* so many calls fail with EINTR first */
    int error;         /* each call fails with this errno */
    const char *touch; /* this file changes with the call */
    atomic_uint asked; /* calls for an ACL */
    bool remembers;    /* what the file was is still told who does not insist, as by a client of NFS */
} hook;
static struct stat remembered;

int fstat(int fd, struct stat *st)
{
    int error = fstatat(fd, "", st, AT_EMPTY_PATH);
    if (!error && hook.remembers && st->st_ino == remembered.st_ino)
        *st = remembered;
    return error;
}

int statx(int fd, const char *path, int flags, unsigned mask, struct statx *x)
{
    long error = syscall(SYS_statx, fd, path, flags, mask, x);
    if (!error && hook.remembers && !(flags & AT_STATX_FORCE_SYNC) && x->stx_ino == remembered.st_ino) {
        x->stx_mtime = (struct statx_timestamp){.tv_sec = remembered.st_mtim.tv_sec,
                                                .tv_nsec = (uint32_t)remembered.st_mtim.tv_nsec};
        x->stx_ctime = (struct statx_timestamp){.tv_sec = remembered.st_ctim.tv_sec,
                                                .tv_nsec = (uint32_t)remembered.st_ctim.tv_nsec};
    }
    return (int)error;
}

/* Each file has this ACL, which denies everything to user 1. So the catalog's modes give no rights to others. */
ssize_t getxattr(const char *path, const char *name, void *value, size_t n)
{
    hook.asked++;
    if (!strstr(path, "/proc/self/fd/") || strcmp(name, "system.posix_acl_access") != 0 || n < sizeof denying_acl)
        return -1;
    memcpy(value, &denying_acl, sizeof denying_acl);
    return sizeof denying_acl;
}

ssize_t lgetxattr(const char *path, const char *name, void *value, size_t n)
{
    return getxattr(path, name, value, n);
}

ssize_t preadv(int fd, const struct iovec *into, int count, off_t offset)
{
    if (hook.interruptions > 0 && hook.interruptions--) {
        errno = EINTR;
        return -1;
    }
    if (hook.error) {
        errno = hook.error;
        return -1;
    }
    if (hook.touch)
        utimensat(AT_FDCWD, hook.touch, NULL, 0);
    if (hook.most)
        return pread(fd, into[0].iov_base, into[0].iov_len < hook.most ? into[0].iov_len : hook.most, offset);
    return syscall(SYS_preadv, fd, into, count, offset, 0);
}

/* clang-format off */
static const uint64_t sizes[] = {
    0, 1, 4095, 4096, 4097, VALUE_BYTES - 1, VALUE_BYTES, VALUE_BYTES + 1, SPAN_BYTES - 1, SPAN_BYTES, SPAN_BYTES + 1,
    PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1,
};
/* clang-format on */

static int get_check(struct layer *source, const struct dataset *d, const struct span *span)
{
    struct answer answer = {0};
    int error = source->ops->get(source, span, &answer);
    if (!error && !dataset_matches(d, span, &answer))
        error = -EBADMSG;
    answer_release(&answer);
    return error;
}

static int get_file(struct layer *source, const struct dataset *d, const char *path)
{
    struct span span = {.file = dataset_file(d, path)};
    span.length = (uint32_t)dataset_size(d, span.file);
    return get_check(source, d, &span);
}

/* Does each read of the file fail so, and does a line of the log say why? Lines are limited: read until one comes. */
static bool fails_with(struct layer *source, const struct dataset *d, const char *path, int error, const char *cause)
{
    bool right = true;
    char line[4096];
    snprintf(line, sizeof line, "read %s from the source: %s", path, cause);
    log_text();
    wait_until((right = right && get_file(source, d, path) == error, !right || strstr(log_text(), line)));
    return right;
}

static void test_arguments(struct layer *source, const struct dataset *d)
{
    char buffer[16];
    struct iovec into = {buffer, 10};
    uint32_t file = dataset_file(d, "size-4096");
    struct span span = {.file = file, .length = 11};
    is_int(source->ops->read(source, &span, &into, 1), -EINVAL, "a vector that is shorter than the span");
    span = (struct span){.file = file, .offset = 4090, .length = 10};
    is_int(source->ops->read(source, &span, &into, 1), -EINVAL, "a span that ends behind the file");
    span = (struct span){.file = file, .offset = UINT64_MAX, .length = 10};
    is_int(source->ops->read(source, &span, &into, 1), -EINVAL, "a span that begins far behind the file");
    span = (struct span){.file = 1000000, .length = 10};
    is_int(source->ops->read(source, &span, &into, 1), -EINVAL, "a file that does not exist");
}

static void test_bytes(struct layer *source, const struct dataset *d)
{
    uint64_t random = 1;
    for (size_t i = 1; i < sizeof sizes / sizeof *sizes; i++) {
        char name[64];
        snprintf(name, sizeof name, "size-%llu", (unsigned long long)sizes[i]);
        uint32_t file = dataset_file(d, name);
        int error = 0;
        for (int n = 0; n < 20 && !error; n++) {
            struct span span = dataset_random_span(d, file, &random);
            error = get_check(source, d, &span);
        }
        is_int(error, 0, "spans of a file of %llu bytes", (unsigned long long)sizes[i]);
    }
}

static void test_vector(struct layer *source, const struct dataset *d)
{
    CLEANUP_FREE char *bytes = malloc(PIECE_BYTES);
    struct iovec into[PIECE_BYTES / VALUE_BYTES];
    struct span span = {.file = dataset_file(d, "size-4194304"), .length = PIECE_BYTES};
    for (size_t i = 0; i < PIECE_BYTES / VALUE_BYTES; i++)
        into[i] = (struct iovec){bytes + i * VALUE_BYTES, VALUE_BYTES};
    static struct source_counts counts;
    source_count_in(source, &counts);
    is_int(source->ops->read(source, &span, into, PIECE_BYTES / VALUE_BYTES), 0, "a whole piece into a vector");
    ok(dataset_matches_bytes(d, &span, bytes), "its bytes are right");
    is_uint(counts.bytes, PIECE_BYTES, "its bytes are counted");
    is_uint(counts.samples, 1, "the open is counted");
}

static void test_kept_open(struct layer *source, const struct dataset *d)
{
    static struct source_counts counts;
    source_count_in(source, &counts);
    struct span span = {.file = dataset_file(d, "size-4194305"), .length = 4096};
    int error = 0;
    for (int i = 0; i < 10 && !error; i++, span.offset += 300000)
        error = get_check(source, d, &span);
    is_int(error, 0, "ten pieces of a large file");
    ok(counts.samples <= 2, "it was not opened for each");
    wait_until((layer_idle(source), dataset_open_files(d) == 0));
    pass("an idle source keeps no file open");
}

static void rewrite(const char *path, const char *bytes, bool append)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (append ? O_APPEND : O_TRUNC), 0644);
    if (fd < 0 || write(fd, bytes, strlen(bytes)) < 0)
        bail_out("write %s", path);
    close(fd);
}

static void grow(const char *path)
{
    rewrite(path, "more", true);
}

static void shrink(const char *path)
{
    if (truncate(path, 10) < 0)
        bail_out("truncate %s", path);
}

static void touch(const char *path)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000000000, .tv_nsec = 1}};
    utimensat(AT_FDCWD, path, times, 0);
}

static void put_back(const char *path)
{
    struct stat st;
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || pwrite(fd, "other", 5, 100) != 5 ||
        futimens(fd, (struct timespec[2]){st.st_atim, st.st_mtim}) < 0)
        bail_out("write %s", path);
    close(fd);
}

/* By `cp --remove-destination`, which may give the new file the inode number of the old one. */
static void replace_alike(const char *path)
{
    struct stat st;
    char bytes[5000] = "something else";
    if (stat(path, &st) < 0 || unlink(path) < 0)
        bail_out("replace %s", path);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, bytes, sizeof bytes) != st.st_size ||
        futimens(fd, (struct timespec[2]){st.st_atim, st.st_mtim}) < 0)
        bail_out("write %s", path);
    close(fd);
}

static void replace(const char *path)
{
    const char *next = test_path("next");
    rewrite(next, "something else", false);
    rename(next, path);
}

static void remove_file(const char *path)
{
    unlink(path);
}

static void become_symlink(const char *path)
{
    const char *away = test_path("away");
    if (rename(path, away) < 0 || symlink(away, path) < 0)
        bail_out("symlink %s", path);
}

static void become_fifo(const char *path)
{
    if (unlink(path) < 0 || mkfifo(path, 0644) < 0)
        bail_out("mkfifo %s", path);
}

static void become_directory(const char *path)
{
    if (unlink(path) < 0 || mkdir(path, 0755) < 0)
        bail_out("mkdir %s", path);
}

static void parent_becomes_symlink(const char *path)
{
    char parent[PATH_MAX];
    snprintf(parent, sizeof parent, "%s", path);
    *strrchr(parent, '/') = '\0';
    const char *away = test_path("parent-away");
    if (rename(parent, away) < 0 || symlink(away, parent) < 0)
        bail_out("symlink %s", parent);
}

static void parent_becomes_file(const char *path)
{
    char parent[PATH_MAX];
    snprintf(parent, sizeof parent, "%s", path);
    *strrchr(parent, '/') = '\0';
    unlink(path);
    if (rmdir(parent) < 0)
        bail_out("rmdir %s", parent);
    rewrite(parent, "a file", false);
}

static const struct change {
    const char *path;
    void (*change)(const char *path);
    const char *log;
} changes[] = {
    {"changed/grown", grow, "its size was 5000 and is 5004"},
    {"changed/shrunk", shrink, "its size was 5000 and is 10"},
    {"changed/touched", touch, "it has changed since the scan"},
    {"changed/put-back", put_back, "its ctime has changed since the scan"},
    {"changed/replaced-alike", replace_alike, "its ctime has changed since the scan"},
    {"changed/replaced", replace, "its size was 5000 and is 14"},
    {"changed/removed", remove_file, "it no longer exists"},
    {"changed/linked", become_symlink, "it or a folder above it was replaced"},
    {"changed/fifo", become_fifo, "it is no longer a regular file"},
    {"changed/folder", become_directory, "it is no longer a regular file"},
    {"linked-parent/file", parent_becomes_symlink, "it or a folder above it was replaced"},
    {"lost-parent/file", parent_becomes_file, "it or a folder above it was replaced"},
};

static void test_changes(struct layer *source, const struct dataset *d)
{
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        const struct change *c = &changes[i];
        is_int(get_file(source, d, c->path), 0, "%s can be read at first", c->path);
        c->change(dataset_path(d, c->path));
        ok(fails_with(source, d, c->path, -ESTALE, c->log), "%s is stale afterwards, and the log says why", c->path);
        is_int(get_file(source, d, "size-4096"), 0, "another file can still be read");
    }
}

/* What changes the ctime and not the bytes. */
static void test_attributes(struct layer *source, const struct dataset *d)
{
    const char *path = dataset_path(d, "attributes");
    hook.asked = 0;
    is_int(get_file(source, d, "attributes"), 0, "a file is read");
    is_uint(hook.asked, 0, "and not asked for its ACL while its ctime is as in the catalog");
    if (chmod(path, 0744) < 0)
        bail_out("chmod %s", path);
    is_int(get_file(source, d, "attributes"), 0, "a file with another mode is the same");
    is_uint(hook.asked, 1, "which is compared with respect to its ACL, as the scan did");
    if (link(path, test_path("another-name")) < 0)
        bail_out("link %s", path);
    is_int(get_file(source, d, "attributes"), 0, "with another link, too");
}

/* The handle that is kept for a moment must not outlive the file by more than that. */
static void test_replaced_while_kept(struct layer *source, const struct dataset *d)
{
    struct span span = {.file = dataset_file(d, "kept"), .length = 100};
    is_int(get_check(source, d, &span), 0, "part of a file");
    replace(dataset_path(d, "kept"));
    int error = get_check(source, d, &span);
    is_int(error, -ESTALE, "after it was replaced while it was open: stale");
    span.file = dataset_file(d, "moved");
    is_int(get_check(source, d, &span), 0, "part of another file");
    become_symlink(dataset_path(d, "moved"));
    wait_until((error = get_check(source, d, &span)) != 0);
    is_int(error, -ESTALE, "after it was moved away while it was open: right bytes for a moment, then stale");
}

static void test_interrupted(struct layer *source, const struct dataset *d)
{
    char bytes[10000];
    struct iovec into[] = {{bytes, 1}, {bytes + 1, 4000}, {bytes + 4001, 4999}, {bytes + 9000, 1000}};
    struct span span = {.file = dataset_file(d, "kept"), .offset = 12345, .length = sizeof bytes};
    hook.most = 333;
    hook.interruptions = 5;
    is_int(source->ops->read(source, &span, into, 4), 0, "a read that is interrupted, and gives little at a time");
    ok(dataset_matches_bytes(d, &span, bytes), "is complete in the end");
    hook.most = 0;
    hook.error = EIO;
    ok(fails_with(source, d, "size-4096", -EIO, "Input/output error"), "an error of the disk, and the log says so");
    hook.error = 0;
    hook.touch = dataset_path(d, "in/a/folder");
    is_int(get_file(source, d, "in/a/folder"), -ESTALE, "a file that changes while it is read");
    hook.touch = dataset_path(d, "remembered");
    if (stat(hook.touch, &remembered))
        bail_out("stat %s", hook.touch);
    hook.remembers = true;
    is_int(get_file(source, d, "remembered"), -ESTALE, "also where a network file system remembers what it was");
    hook.remembers = false;
    hook.touch = NULL;
}

/* In a child: the lease is given back when somebody wants to open the file. */
static void hold_lease(const char *path, int told)
{
    sigset_t lease;
    sigemptyset(&lease);
    sigaddset(&lease, SIGIO);
    sigprocmask(SIG_BLOCK, &lease, NULL);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    bool held = fd >= 0 && fcntl(fd, F_SETLEASE, F_WRLCK) == 0;
    if (write(told, &held, sizeof held) < 0 || !held)
        _exit(1);
    sigwaitinfo(&lease, NULL);
    _exit(fcntl(fd, F_SETLEASE, F_UNLCK) == 0 ? 0 : 1);
}

static void test_leased(struct layer *source, const struct dataset *d)
{
    int told[2], status = -1;
    bool held = false;
    if (pipe(told) < 0)
        bail_out("a pipe");
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        hold_lease(dataset_path(d, "leased"), told[1]);
    close(told[1]);
    if (read(told[0], &held, sizeof held) < 0)
        held = false;
    if (!held)
        skip(2, "no leases here");
    else
        is_int(get_file(source, d, "leased"), 0, "a file with a lease is read once it is given back");
    close(told[0]);
    waitpid(pid, &status, 0);
    if (held)
        is_int(status, 0, "which its holder was asked for");
    hook.error = EAGAIN;
    is_int(get_file(source, d, "size-4096"), -EBUSY, "a source that says EAGAIN is busy");
    hook.error = 0;
}

/* In a child, as a user who may not. */
static void test_forbidden(struct layer *source, const struct dataset *d)
{
    if (geteuid() != 0)
        skip(1, "needs root to become somebody else");
    else {
        chmod(dataset_path(d, "forbidden"), 0);
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) {
            if (seteuid(65534) < 0)
                _exit(2);
            bool right = fails_with(source, d, "forbidden", -EACCES, "Permission denied");
            _exit(right && get_file(source, d, "size-4096") == 0 ? 0 : 1);
        }
        int status = -1;
        waitpid(pid, &status, 0);
        is_int(status, 0, "a file without permissions is EACCES, the log says so, and others can be read");
    }
}

/* Deeper than PATH_MAX. */
static void test_deep(void)
{
    enum { DEPTH = 40, NAME = 200 };
    char name[NAME + 1], path[DEPTH * (NAME + 1) + 8];
    memset(name, 'd', NAME);
    name[NAME] = '\0';
    int root = open(test_directory(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int at = dup(root);
    size_t n = 0;
    for (int i = 0; i < DEPTH; i++) {
        mkdirat(at, name, 0755);
        int next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(at);
        at = next;
        n += (size_t)sprintf(path + n, "%s/", name);
    }
    strcpy(path + n, "file");
    close(openat(at, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    symlinkat("file", at, "link");
    close(at);
    int fd = beneath_open(root, path, O_RDONLY | O_CLOEXEC);
    ok(fd >= 0, "a path of %zu bytes", strlen(path));
    close(fd);
    strcpy(path + n, "link");
    is_int(beneath_open(root, path, O_RDONLY | O_CLOEXEC), -ELOOP, "a symlink at the end of one");
    strcpy(path + n, "none");
    is_int(beneath_open(root, path, O_RDONLY | O_CLOEXEC), -ENOENT, "nothing at the end of one");
    dir_remove_tree(root, name);
    close(root);
}

/* Where a container's filter refuses openat2, the path is walked instead. */
static void refuse_openat2(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        _exit(77);
}

static void test_without_openat2(struct layer *source, const struct dataset *d)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        refuse_openat2();
        bool right = syscall(SYS_openat2, -1, "", NULL, 0) < 0 && errno == ENOSYS;
        right = right && get_file(source, d, "another/folder/file") == 0;
        right = right && get_file(source, d, "changed/linked") == -ESTALE;
        right = right && get_file(source, d, "linked-parent/file") == -ESTALE;
        right = right && get_file(source, d, "changed/removed") == -ESTALE;
        _exit(right ? 0 : 1);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip(1, "no seccomp here");
    else
        is_int(status, 0, "without openat2: files are read, and no link is followed");
}

int main(void)
{
    struct dataset d;
    struct layer *source;
    log_to_file();
    dataset_begin(&d);
    d.acls = true;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char name[64];
        snprintf(name, sizeof name, "size-%llu", (unsigned long long)sizes[i]);
        dataset_add(&d, name, sizes[i]);
    }
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        dataset_add(&d, changes[i].path, 5000);
    dataset_add(&d, "kept", 10 << 20);
    dataset_add(&d, "in/a/folder", 5000);
    dataset_add(&d, "remembered", 5000);
    dataset_add(&d, "another/folder/file", 5000);
    dataset_add(&d, "moved", 10 << 20);
    dataset_add(&d, "forbidden", 5000);
    dataset_add(&d, "leased", 5000);
    dataset_add(&d, "attributes", 5000);
    dataset_scan(&d);
    is_int(source_create(d.catalog, d.root, NULL, NULL, &source), 0, "a source");

    test_arguments(source, &d);
    test_bytes(source, &d);
    test_vector(source, &d);
    test_kept_open(source, &d);
    test_changes(source, &d);
    test_attributes(source, &d);
    test_interrupted(source, &d);
    test_replaced_while_kept(source, &d);
    test_leased(source, &d);
    test_forbidden(source, &d);
    test_without_openat2(source, &d);
    test_deep();

    layer_destroy(source);
    dataset_end(&d);
    return done_testing();
}
