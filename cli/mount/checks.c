/* The checks of `dealfs doctor`. */
#include "cli/mount/checks.h"

#include "cli/base/guard.h"
#include "cli/base/memory.h"
#include "cli/base/place.h"
#include "cli/mount/namespace.h"
#include "fs/attach/attach.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/size.h"
#include "fs/wire/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { CONF_MOST = 1 << 20, TRY_SECONDS = 10, FILES_WANTED = 4096 };
/* Linux's own defaults, on the smallest machine */
enum { WATCHES_WANTED = 8192, EVENTS_WANTED = 16384, LIMIT_MOST = 64 };
static const uint64_t GIB = 1ull << 30;

static void finding_say(struct finding *f, enum check_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void finding_say(struct finding *f, enum check_level level, const char *format, ...)
{
    va_list args;
    f->level = level;
    va_start(args, format);
    str_addv(&f->text, format, args);
    va_end(args);
}

static bool is_installed(const char *name, const char *without, struct finding *f)
{
    char path[PATH_MAX];
    if (handover_find_program(name, path, sizeof path) == 0)
        return true;
    finding_say(f, CHECK_PROBLEM, "%s: neither beside dealfs nor in ../libexec/dealfs%s", name, without);
    f->advice = "install all of dealfs, or run ./dealfs where it was built";
    return false;
}

static void check_programs(struct finding *f)
{
    if (is_installed("dealfs-keeper", "", f) && is_installed("dealfs-server", "", f))
        finding_say(f, CHECK_OK, "dealfs-keeper and dealfs-server are installed");
}

static void check_feeder(struct finding *f)
{
    if (is_installed("dealfs-feeder", ": nothing is read ahead of loaders", f))
        finding_say(f, CHECK_OK, "dealfs-feeder is installed");
}

static void check_device(struct finding *f)
{
    CLEANUP_CLOSE int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    bool denied = fd < 0 && (errno == EACCES || errno == EPERM); /* fusermount3 opens it with the user's rights */
    if (fd >= 0)
        finding_say(f, CHECK_OK, "/dev/fuse can be opened");
    else
        finding_say(f, CHECK_PROBLEM, "open /dev/fuse: %s", strerror(errno));
    f->advice = denied ? "chmod 666 /dev/fuse; start the container with --device /dev/fuse"
                       : "modprobe fuse; start the container with --device /dev/fuse";
}

static void check_fusermount(struct finding *f)
{
    bool privileged = attach_privileged();
    enum check_level level = privileged ? CHECK_NOTE : CHECK_WARNING;
    const char *means = privileged ? ", which root does not need" : ": an ordinary user cannot mount";
    char path[PATH_MAX];
    struct stat st;
    if (place_in_path("fusermount3", path, sizeof path) || stat(path, &st) < 0) {
        finding_say(f, level, "fusermount3 is not installed%s", means);
        f->advice = "install fuse3, or use `dealfs run`";
    } else if (st.st_uid != 0 || !(st.st_mode & S_ISUID)) {
        finding_say(f, level, "%s is not setuid root%s", path, means);
        f->advice = "`chown root` and `chmod u+s` it, or use `dealfs run`";
    } else {
        finding_say(f, CHECK_OK, "%s is setuid root: ordinary users can mount", path);
    }
}

static void check_kernel(struct finding *f)
{
    struct utsname name;
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    CLEANUP_CLOSE int fd = (int)syscall(SYS_openat2, AT_FDCWD, ".", &how, sizeof how);
    int error = fd < 0 ? errno : 0;
    uname(&name);
    if (error)
        finding_say(f, CHECK_PROBLEM, "Linux %s: openat2: %s", name.release, strerror(error));
    else
        finding_say(f, CHECK_OK, "Linux %s, with openat2", name.release);
    f->advice = error == ENOSYS ? "Linux 5.6 or later is needed" : "allow openat2 in the container's seccomp profile";
}

static int try_namespaces(void *user, struct str *out)
{
    (void)user;
    (void)out;
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 ? -errno : 0;
}

static void check_namespaces(struct finding *f)
{
    CLEANUP_STR struct str nothing = STR_INIT;
    int error = guard_run(try_namespaces, NULL, TRY_SECONDS, &nothing);
    if (error)
        finding_say(f, CHECK_WARNING, "make a user namespace: %s: `dealfs run` cannot work", strerror(-error));
    else
        finding_say(f, CHECK_OK, "user namespaces can be made: `dealfs run` needs neither root nor fusermount3");
    f->advice = "allow it: sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, or the seccomp profile";
}

static int try_tmpfs(void *user, struct str *out)
{
    bool mapped;
    int fd, error = attach_privileged() ? 0 : namespace_make(&mapped, out);
    (void)user;
    if (!error)
        error = attach_private_tmpfs(1 << 20, geteuid(), getegid(), &fd);
    if (!error)
        close(fd);
    return error;
}

static void check_tmpfs(struct finding *f)
{
    CLEANUP_STR struct str nothing = STR_INIT;
    int error = guard_run(try_tmpfs, NULL, TRY_SECONDS, &nothing);
    if (error)
        finding_say(f, CHECK_WARNING, "make a private tmpfs: %s: the RAM tier will be in /dev/shm", strerror(-error));
    else
        finding_say(f, CHECK_OK, "a private tmpfs can be made for the RAM tier%s",
                    attach_privileged() ? "" : " in a user namespace");
    f->advice = "make sure that /dev/shm is large enough";
}

static void check_shm(struct finding *f)
{
    enum check_level level = attach_privileged() ? CHECK_NOTE : CHECK_WARNING;
    struct statvfs fs;
    if (statvfs("/dev/shm", &fs) < 0) {
        finding_say(f, level, "/dev/shm: %s", strerror(errno));
        f->advice = "mount a tmpfs there; without it ordinary users have no RAM tier";
        return;
    }
    uint64_t all = (uint64_t)fs.f_blocks * fs.f_frsize, left = (uint64_t)fs.f_bavail * fs.f_frsize;
    finding_say(f, left >= GIB ? CHECK_OK : level, "/dev/shm has %s, %s of them free", size_text(all), size_text(left));
    f->advice = "mount -o remount,size=… /dev/shm; in a container, --shm-size";
}

static void check_memory(struct finding *f)
{
    struct memory memory;
    int error = memory_look("", &memory);
    if (error) {
        finding_say(f, CHECK_WARNING, "find the size of memory: %s", strerror(-error));
        f->advice = "mount /proc; without it, give each mount its ram=SIZE";
        return;
    }
    finding_say(f, memory.available < GIB ? CHECK_WARNING : CHECK_OK, "%s of %s of memory are available%s",
                size_text(memory.available), size_text(memory.total),
                memory.by_group ? ", by the limit of the control group" : "");
    f->advice = "give the job more memory: the RAM tier takes a quarter of it by default";
}

static void check_files(struct finding *f)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        limit.rlim_max = 0;
    if (limit.rlim_max >= FILES_WANTED)
        finding_say(f, CHECK_OK, "a process may open enough files");
    else
        finding_say(f, CHECK_WARNING, "a process may open only %llu files", (unsigned long long)limit.rlim_max);
    f->advice = "raise the hard limit (ulimit -Hn) to 4096 or more";
}

static int read_limit(const char *directory, const char *name, unsigned long long *limit)
{
    CLEANUP_STR struct str text = STR_INIT;
    char path[PATH_MAX], *end;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int error = file_read(AT_FDCWD, path, LIMIT_MOST, &text);
    if (error)
        return error;
    *limit = strtoull(text.data ? text.data : "", &end, 10);
    return *end == '\n' ? 0 : -EINVAL;
}

void check_inotify_in(const char *directory, struct finding *f)
{
    unsigned long long watches, events;
    CLEANUP_CLOSE int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd < 0) {
        finding_say(f, CHECK_WARNING, "make an inotify instance: %s: only the first files of a plan are read ahead",
                    strerror(errno));
        f->advice = "raise fs.inotify.max_user_instances (sysctl), or end programs that watch files";
        return;
    }
    int error = read_limit(directory, "max_user_watches", &watches);
    if (!error)
        error = read_limit(directory, "max_queued_events", &events);
    if (error) {
        finding_say(f, CHECK_NOTE, "read the limits of inotify: %s", strerror(-error));
    } else if (watches < WATCHES_WANTED) {
        finding_say(f, CHECK_WARNING,
                    "fs.inotify.max_user_watches is %llu: in a dataset with more directories the feeder knows the "
                    "loaders' progress less exactly",
                    watches);
        f->advice = "set it to 8192 or more, with sysctl";
    } else if (events < EVENTS_WANTED) {
        finding_say(f, CHECK_WARNING,
                    "fs.inotify.max_queued_events is %llu: the feeder may miss reads; `dealfs status --epoch` then "
                    "does not know which samples were read",
                    events);
        f->advice = "set it to 16384 or more, with sysctl";
    } else {
        finding_say(f, CHECK_OK, "inotify may watch %llu directories and queue %llu events: enough for the feeder",
                    watches, events);
    }
}

static void check_inotify(struct finding *f)
{
    check_inotify_in("/proc/sys/fs/inotify", f);
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

static void check_locate(struct finding *f)
{
    CLEANUP_STR struct str conf = STR_INIT;
    if (file_read(AT_FDCWD, "/etc/updatedb.conf", CONF_MOST, &conf) < 0 || !conf.data) {
        finding_say(f, CHECK_OK, "updatedb is not installed, so it does not crawl mounts");
    } else if (prunefs_names(conf.data, "fuse.dealfs")) {
        finding_say(f, CHECK_OK, "updatedb skips fuse.dealfs");
    } else {
        finding_say(f, CHECK_WARNING, "/etc/updatedb.conf: updatedb will crawl the mounts of ordinary users");
        f->advice = "add fuse.dealfs to PRUNEFS in it";
    }
}

static void check_mpi(struct finding *f)
{
    char path[PATH_MAX];
    if (place_in_path("mpirun", path, sizeof path) == 0)
        finding_say(f, CHECK_OK, "%s is installed", path);
    else
        finding_say(f, CHECK_NOTE, "mpirun is not installed: nodes cannot share their caches");
}

/* Some filesystems fail O_DIRECT at open. */
static bool direct_works(const char *directory)
{
    CLEANUP_CLOSE int fd = open(directory, O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);
    return fd >= 0 || errno != EINVAL;
}

void check_ssd(const char *ssd, struct finding *f)
{
    struct statvfs fs;
    struct stat st;
    if (stat(ssd, &st) < 0 || statvfs(ssd, &fs) < 0 || access(ssd, W_OK | X_OK) < 0) {
        finding_say(f, CHECK_PROBLEM, "%s: %s", ssd, strerror(errno));
        f->advice = "name a directory that this user may write to";
    } else if (!S_ISDIR(st.st_mode)) {
        finding_say(f, CHECK_PROBLEM, "%s: %s", ssd, strerror(ENOTDIR));
        f->advice = "name a directory on a local disk";
    } else if (attach_on_network(ssd) == 1) {
        finding_say(f, CHECK_PROBLEM, "%s is on a network file system", ssd);
        f->advice = "name a directory on a local disk";
    } else {
        uint64_t bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
        bool direct = direct_works(ssd);
        finding_say(f, !direct || bytes < GIB ? CHECK_WARNING : CHECK_OK, "%s has %s free%s", ssd, size_text(bytes),
                    direct ? "" : ", and no direct I/O");
        f->advice = direct ? "make room in it; `dealfs clean --ssd` removes the shards that no mount uses there"
                           : "name a directory on a disk (ext4, xfs)";
    }
}

machine_check *const checks[] = {
    check_programs, check_feeder, check_kernel, check_device,  check_fusermount, check_namespaces, check_tmpfs,
    check_shm,      check_memory, check_files,  check_inotify, check_locate,     check_mpi,        NULL,
};

int checks_for_mount(struct str *why)
{
    static machine_check *const needed[] = {check_programs, check_kernel, check_device, check_fusermount};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        struct finding finding = {.level = CHECK_OK};
        needed[i](&finding);
        if (finding.level > CHECK_NOTE)
            str_addf(why, "%s. To do: %s", finding.text.failed ? "" : finding.text.data, finding.advice);
        str_fini(&finding.text);
        if (finding.level > CHECK_NOTE)
            return -ENODEV;
    }
    return 0;
}
