/* The checks of `dealfs doctor`. */
#include "cli/checks.h"

#include "cli/guard.h"
#include "cli/memory.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/size.h"
#include "fs/mount/attach.h"
#include "fs/mount/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { CONF_MOST = 1 << 20, TRY_SECONDS = 10, FILES_WANTED = 4096 };
static const uint64_t GIB = 1ull << 30;

void finding_fini(struct finding *finding)
{
    str_fini(&finding->text);
    str_fini(&finding->advice);
}

static void say(struct finding *f, enum check_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void say(struct finding *f, enum check_level level, const char *format, ...)
{
    va_list args;

    f->level = level;
    va_start(args, format);
    str_addv(&f->text, format, args);
    va_end(args);
}

static void advise(struct finding *f, const char *advice)
{
    str_adds(&f->advice, advice);
}

static void check_programs(const char *ssd, struct finding *f)
{
    static const char *const names[] = {"dealfs-keeper", "dealfs-server"};
    char path[PATH_MAX];

    (void)ssd;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (handover_find_program(names[i], path, sizeof path) == 0)
            continue;
        say(f, CHECK_PROBLEM, "%s: not found beside dealfs, nor in ../libexec/dealfs", names[i]);
        advise(f, "install dealfs whole, or run it where it was built");
        return;
    }
    say(f, CHECK_OK, "dealfs-keeper and dealfs-server are there");
}

static void check_device(const char *ssd, struct finding *f)
{
    CLEANUP_CLOSE int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    int error = fd < 0 ? errno : 0;

    (void)ssd;
    if (error == 0) {
        say(f, CHECK_OK, "/dev/fuse can be opened");
    } else if (error == EACCES && geteuid() != 0) {
        say(f, CHECK_WARNING, "open /dev/fuse: %s: only fusermount3 can, so `dealfs run` cannot work", strerror(error));
        advise(f, "chmod 666 /dev/fuse, as udev does");
    } else {
        say(f, CHECK_PROBLEM, "open /dev/fuse: %s", strerror(error));
        advise(f, "modprobe fuse; a container needs the device passed in: --device /dev/fuse");
    }
}

/* In PATH; the file's status in *st. */
static bool find_in_path(const char *name, char *path, size_t n, struct stat *st)
{
    const char *list = getenv("PATH");

    for (const char *next = list ? list : "/usr/bin:/bin"; *next;) {
        size_t length = strcspn(next, ":");
        snprintf(path, n, "%.*s/%s", (int)length, next, name);
        if (length > 0 && stat(path, st) == 0 && S_ISREG(st->st_mode) && access(path, X_OK) == 0)
            return true;
        next += length + (next[length] == ':');
    }
    return false;
}

static void check_fusermount(const char *ssd, struct finding *f)
{
    bool privileged = attach_privileged();
    char path[PATH_MAX];
    struct stat st;

    (void)ssd;
    if (!find_in_path("fusermount3", path, sizeof path, &st)) {
        say(f, privileged ? CHECK_NOTE : CHECK_WARNING, "fusermount3 is not there%s",
            privileged ? ", and not needed by root" : ": an ordinary user cannot mount");
        advise(f, "install fuse3, or use `dealfs run`");
    } else if (st.st_uid != 0 || !(st.st_mode & S_ISUID)) {
        say(f, privileged ? CHECK_NOTE : CHECK_WARNING, "%s is not setuid root%s", path,
            privileged ? ", which root does not need" : ": an ordinary user cannot mount");
        advise(f, "chown root, chmod u+s it, or use `dealfs run`");
    } else {
        say(f, CHECK_OK, "%s is setuid root: ordinary users can mount", path);
    }
}

static void check_kernel(const char *ssd, struct finding *f)
{
    struct utsname name;
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    CLEANUP_CLOSE int fd = (int)syscall(SYS_openat2, AT_FDCWD, ".", &how, sizeof how);
    int error = fd < 0 ? errno : 0;

    (void)ssd;
    uname(&name);
    if (error == 0) {
        say(f, CHECK_OK, "Linux %s, with openat2", name.release);
        return;
    }
    say(f, CHECK_PROBLEM, "Linux %s: openat2: %s", name.release, strerror(error));
    advise(f, error == ENOSYS ? "Linux 5.6 or later is needed" : "let the container's seccomp profile pass openat2");
}

static int try_namespaces(void *user, struct str *out)
{
    (void)user;
    (void)out;
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 ? -errno : 0;
}

static void check_namespaces(const char *ssd, struct finding *f)
{
    CLEANUP_STR struct str nothing = STR_INIT;
    int error = guard_run(try_namespaces, NULL, TRY_SECONDS, &nothing);

    (void)ssd;
    if (error == 0) {
        say(f, CHECK_OK, "user namespaces can be made: `dealfs run` needs neither root nor fusermount3");
        return;
    }
    say(f, CHECK_WARNING, "make a user namespace: %s: `dealfs run` cannot work", strerror(-error));
    advise(f, "sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, or the seccomp profile");
}

static int write_text(const char *path, const char *text)
{
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd < 0 ? -errno : file_write_all(fd, text, strlen(text));
}

/* A user namespace in which this user is who he is outside. */
static int enter_namespace(uid_t uid, gid_t gid)
{
    char map[64];

    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return -errno;
    write_text("/proc/self/setgroups", "deny");
    snprintf(map, sizeof map, "%u %u 1", uid, uid);
    int error = write_text("/proc/self/uid_map", map);
    snprintf(map, sizeof map, "%u %u 1", gid, gid);
    return error ? error : write_text("/proc/self/gid_map", map);
}

static int try_tmpfs(void *user, struct str *out)
{
    uid_t uid = getuid();
    gid_t gid = getgid();
    int fd, error = attach_privileged() ? 0 : enter_namespace(uid, gid);

    (void)user;
    (void)out;
    if (!error)
        error = attach_private_tmpfs(1 << 20, uid, gid, &fd);
    if (!error)
        close(fd);
    return error;
}

static void check_tmpfs(const char *ssd, struct finding *f)
{
    CLEANUP_STR struct str nothing = STR_INIT;
    int error = guard_run(try_tmpfs, NULL, TRY_SECONDS, &nothing);

    (void)ssd;
    if (error == 0) {
        say(f, CHECK_OK, "a private tmpfs can be made for the RAM tier%s",
            attach_privileged() ? "" : " in a user namespace");
        return;
    }
    say(f, CHECK_WARNING, "make a private tmpfs: %s: the RAM tier will be in /dev/shm", strerror(-error));
    advise(f, "see to it that /dev/shm is large enough");
}

static void check_shm(const char *ssd, struct finding *f)
{
    struct statvfs fs;
    char size[SIZE_TEXT], free_text[SIZE_TEXT];

    (void)ssd;
    if (statvfs("/dev/shm", &fs) < 0) {
        say(f, attach_privileged() ? CHECK_NOTE : CHECK_WARNING, "/dev/shm: %s", strerror(errno));
        advise(f, "mount a tmpfs there; without it ordinary users have no RAM tier");
        return;
    }
    uint64_t all = (uint64_t)fs.f_blocks * fs.f_frsize, left = (uint64_t)fs.f_bavail * fs.f_frsize;
    bool small = left < GIB;
    say(f, !small ? CHECK_OK : attach_privileged() ? CHECK_NOTE : CHECK_WARNING, "/dev/shm has %s, %s of them free",
        size_format(all, size, sizeof size), size_format(left, free_text, sizeof free_text));
    if (small)
        advise(f, "mount -o remount,size=… /dev/shm; in a container, --shm-size");
}

static void check_memory(const char *ssd, struct finding *f)
{
    struct memory memory;
    char available[SIZE_TEXT], total[SIZE_TEXT];
    int error = memory_look("", &memory);

    (void)ssd;
    if (error) {
        say(f, CHECK_WARNING, "how much memory there is: %s", strerror(-error));
        advise(f, "mount /proc; without it, give each mount its ram=SIZE");
        return;
    }
    bool small = memory.available < GIB;
    say(f, small ? CHECK_WARNING : CHECK_OK, "%s of %s of memory are available%s",
        size_format(memory.available, available, sizeof available), size_format(memory.total, total, sizeof total),
        memory.by_group ? ", as the control group says" : "");
    if (small)
        advise(f, "give it more: the RAM tier takes a quarter of that by default");
}

static void check_files(const char *ssd, struct finding *f)
{
    struct rlimit limit;

    (void)ssd;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        limit.rlim_max = 0;
    if (limit.rlim_max >= FILES_WANTED) {
        say(f, CHECK_OK, "a process may open enough files");
        return;
    }
    say(f, CHECK_WARNING, "a process may open %llu files only", (unsigned long long)limit.rlim_max);
    advise(f, "raise the hard limit (ulimit -Hn) to 4096 or more");
}

bool prunefs_names(const char *conf, const char *word)
{
    for (const char *line = conf; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        const char *at = line + strspn(line, " \t");
        if (strncmp(at, "PRUNEFS", 7) != 0)
            continue;
        at += 7 + strspn(at + 7, " \t=\"");
        while (*at && *at != '"' && *at != '\n') {
            size_t n = strcspn(at, " \t\"\n");
            if (n == strlen(word) && strncasecmp(at, word, n) == 0)
                return true;
            at += n + strspn(at + n, " \t");
        }
    }
    return false;
}

static void check_locate(const char *ssd, struct finding *f)
{
    CLEANUP_STR struct str conf = STR_INIT;

    (void)ssd;
    if (file_read(AT_FDCWD, "/etc/updatedb.conf", CONF_MOST, &conf) < 0 || !conf.data) {
        say(f, CHECK_OK, "no updatedb that would crawl the mounts");
    } else if (prunefs_names(conf.data, "fuse.dealfs")) {
        say(f, CHECK_OK, "updatedb leaves fuse.dealfs out");
    } else {
        say(f, CHECK_WARNING, "/etc/updatedb.conf: updatedb will crawl the mounts of ordinary users");
        advise(f, "add fuse.dealfs to PRUNEFS in it");
    }
}

static void check_mpi(const char *ssd, struct finding *f)
{
    char path[PATH_MAX];
    struct stat st;

    (void)ssd;
    if (find_in_path("mpirun", path, sizeof path, &st))
        say(f, CHECK_OK, "%s is there", path);
    else
        say(f, CHECK_NOTE, "mpirun is not there: one node at a time");
}

/* Some file systems refuse direct I/O when a file is opened. */
static bool direct_works(const char *directory)
{
    CLEANUP_CLOSE int fd = open(directory, O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);

    return fd >= 0 || errno != EINVAL;
}

static void check_ssd(const char *ssd, struct finding *f)
{
    struct statvfs fs;
    struct stat st;
    char left[SIZE_TEXT];

    if (stat(ssd, &st) < 0 || statvfs(ssd, &fs) < 0 || access(ssd, W_OK | X_OK) < 0) {
        say(f, CHECK_PROBLEM, "%s: %s", ssd, strerror(errno));
        advise(f, "name a directory that this user may write to");
    } else if (!S_ISDIR(st.st_mode)) {
        say(f, CHECK_PROBLEM, "%s: %s", ssd, strerror(ENOTDIR));
        advise(f, "name a directory on a local disk");
    } else if (file_on_network(ssd) == 1) {
        say(f, CHECK_PROBLEM, "%s is on a network file system", ssd);
        advise(f, "name a directory on a local disk");
    } else {
        uint64_t bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
        bool direct = direct_works(ssd);
        say(f, !direct || bytes < GIB ? CHECK_WARNING : CHECK_OK, "%s has %s free%s", ssd,
            size_format(bytes, left, sizeof left), direct ? "" : ", and no direct I/O");
        advise(f, direct ? "make room in it" : "name a directory on a disk (ext4, xfs)");
    }
}

const struct check checks[] = {
    {check_programs, false}, {check_kernel, false}, {check_device, false},     {check_fusermount, false},
    {check_namespaces, false}, {check_tmpfs, false},  {check_shm, false},      {check_memory, false},
    {check_files, false},    {check_locate, false}, {check_mpi, false},        {check_ssd, true},
    {NULL, false},
};
