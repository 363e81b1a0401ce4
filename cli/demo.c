/* `dealfs demo`: a small data set of JPEG pictures is made, mounted, read in three epochs, and taken away again.
 *
 * Mount and unmount are the commands that a user would give, executed as such. */
#include "cli/command.h"

#include "cli/epoch.h"
#include "cli/picture.h"
#include "cli/progress.h"
#include "cli/request.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/json.h"
#include "fs/base/size.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CLASSES = 6, PICTURES = 100, FILES = CLASSES * PICTURES, PLACES = 4, THREADS = 2, PATH_TEXT = 32 };

static const char *const classes[CLASSES] = {"cross", "diamond", "disc", "ring", "square", "stripes"};
static const unsigned figures[CLASSES] = {4, 2, 0, 3, 1, 5};
static const char *const places[PLACES] = {"source", "ram", "ssd", "peer"};

struct demo {
    char directory[PATH_MAX - 64]; /* everything of ours is in it */
    char source[PATH_MAX], mountpoint[PATH_MAX], state[PATH_MAX], control[PATH_MAX];
    char names[FILES][PATH_TEXT], *path[FILES];
    int root; /* the mount's */
    bool mounted;
    uint64_t bytes;
};

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
    interrupted = signal;
}

static void catch_signals(void)
{
    const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    struct sigaction action = {.sa_handler = interrupt};

    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
}

/* --- the data set --- */

static int make_directories(struct demo *demo)
{
    const char *parent = getenv("TMPDIR");

    snprintf(demo->directory, sizeof demo->directory, "%s/dealfs-demo.XXXXXX", parent && *parent ? parent : "/var/tmp");
    if (!mkdtemp(demo->directory)) {
        int error = errno;
        demo->directory[0] = '\0';
        return command_fail("make a directory in %s: %s", parent && *parent ? parent : "/var/tmp", strerror(error));
    }
    snprintf(demo->source, sizeof demo->source, "%s/pictures", demo->directory);
    snprintf(demo->mountpoint, sizeof demo->mountpoint, "%s/mount", demo->directory);
    snprintf(demo->state, sizeof demo->state, "%s/state", demo->directory);
    snprintf(demo->control, sizeof demo->control, "%s/mount/.dealfs", demo->directory);
    if (mkdir(demo->source, 0755) < 0 || mkdir(demo->mountpoint, 0755) < 0)
        return command_fail("make directories in %s: %s", demo->directory, strerror(errno));
    return COMMAND_DONE;
}

static int write_class(struct demo *demo, int root, int class, struct progress *progress)
{
    CLEANUP_CLOSE int directory = -1;

    if (mkdirat(root, classes[class], 0755) == 0)
        directory = openat(root, classes[class], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return -errno;
    for (int i = 0; i < PICTURES && !interrupted; i++) {
        int number = class * PICTURES + i;
        struct stat st;
        demo->path[number] = demo->names[number];
        snprintf(demo->names[number], PATH_TEXT, "%s/%04d.jpg", classes[class], i);
        int error = picture_write(directory, strchr(demo->names[number], '/') + 1, (uint64_t)number, figures[class]);
        if (error)
            return error;
        if (fstatat(root, demo->names[number], &st, 0) == 0)
            demo->bytes += (uint64_t)st.st_size;
        progress_show(progress, &(struct progress_now){.files = (uint64_t)number + 1, .files_total = FILES});
    }
    return interrupted ? -ECANCELED : 0;
}

static int make_pictures(struct demo *demo)
{
    CLEANUP_CLOSE int root = open(demo->source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct progress progress;
    char size[SIZE_TEXT];
    int error = root < 0 ? -errno : 0;

    progress_begin(&progress, "making pictures", stderr);
    for (int class = 0; class < CLASSES && !error; class++)
        error = write_class(demo, root, class, &progress);
    progress_end(&progress);
    if (error)
        return command_fail("make pictures in %s: %s", demo->source,
                            error == -ECANCELED ? "interrupted" : strerror(-error));
    printf("%d JPEG pictures of %d classes, %s, are in\n  %s\n\n", FILES, CLASSES,
           size_format(demo->bytes, size, sizeof size), demo->source);
    return COMMAND_DONE;
}

/* --- the mount --- */

/* Runs this program again with other arguments; its exit status, or -errno. What takes the mount away must not be ended by
 * a second Ctrl-C. */
static int run_self(char *const argv[], bool whole)
{
    int status;

    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGPIPE, SIG_DFL);
        if (whole)
            signal(SIGINT, SIG_IGN);
        execv("/proc/self/exe", argv);
        _exit(127);
    }
    if (pid < 0)
        return -errno;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return -errno;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int mount_pictures(struct demo *demo)
{
    char options[PATH_MAX + 16];
    char *const argv[] = {"dealfs", "mount", "-o", options, demo->source, demo->mountpoint, NULL};

    snprintf(options, sizeof options, "state=%s", demo->state);
    printf("$ dealfs mount %s \\\n               %s\n", demo->source, demo->mountpoint);
    int status = run_self(argv, false);
    demo->mounted = status == 0;
    if (status != 0)
        return command_fail("the demonstration ends here: `dealfs mount` ended with status %d; `dealfs doctor` may "
                            "know why", status);
    demo->root = open(demo->mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return demo->root < 0 ? command_fail("open %s: %s", demo->mountpoint, strerror(errno)) : COMMAND_DONE;
}

static int unmount(struct demo *demo)
{
    char *const argv[] = {"dealfs", "umount", demo->mountpoint, NULL};

    if (!demo->mounted)
        return COMMAND_DONE;
    printf("$ dealfs umount %s\n", demo->mountpoint);
    demo->mounted = false;
    return run_self(argv, true) == 0 ? COMMAND_DONE : COMMAND_FAILED;
}

/* --- what came from where --- */

static int read_places(const struct demo *demo, uint64_t bytes[PLACES])
{
    CLEANUP_STR struct str status = STR_INIT;
    int error = request_file(demo->control, "status", &status);

    for (int i = 0; i < PLACES && !error; i++) {
        char path[32];
        snprintf(path, sizeof path, "bytes.%s", places[i]);
        error = json_find_uint(status.data, status.length, path, &bytes[i]);
    }
    return error;
}

static void print_row(const char *name, const struct epoch *epoch, const uint64_t before[PLACES],
                      const uint64_t after[PLACES])
{
    double seconds = (double)epoch->elapsed / 1e9, all = (double)epoch->bytes;
    char count[COUNT_TEXT];
    uint64_t asked = 0;

    printf("%-26s %9s %8.0f ", name, count_format((uint64_t)(epoch->files / seconds), count, sizeof count),
           all / seconds / (1 << 20));
    for (int i = 0; i < PLACES - 1; i++) {
        printf("%7.0f%%", 100 * (double)(after[i] - before[i]) / all);
        asked += after[i] - before[i];
    }
    printf("%11.0f%%\n", asked < epoch->bytes ? 100 * (all - (double)asked) / all : 0);
    fflush(stdout);
}

static int read_epoch(struct demo *demo, const char *name, uint64_t number, uint64_t *sum)
{
    struct epoch epoch = {.path = demo->path, .files = FILES, .root = demo->root, .threads = THREADS, .seed = number,
                          .stop = &interrupted};
    uint64_t before[PLACES], after[PLACES];
    int error = read_places(demo, before);

    if (!error)
        error = epoch_read(&epoch);
    if (!error)
        error = read_places(demo, after);
    if (error)
        return command_fail("read %s: %s", demo->mountpoint, error == -ECANCELED ? "interrupted" : strerror(-error));
    if (*sum != 0 && *sum != epoch.sum)
        return command_fail("read %s: not the bytes of the first epoch", demo->mountpoint);
    *sum = epoch.sum;
    print_row(name, &epoch, before, after);
    return COMMAND_DONE;
}

static int read_epochs(struct demo *demo)
{
    const struct epoch all = {.path = demo->path, .files = FILES, .root = demo->root};
    uint64_t sum = 0;

    printf("\nEach epoch reads every picture once, in a random order, by %d threads:\n\n", THREADS);
    printf("%-26s %9s %8s  %7s%8s%8s%12s\n", "", "files/s", "MiB/s", "source", "ram", "ssd", "page cache");
    if (read_epoch(demo, "first epoch", 1, &sum) != COMMAND_DONE)
        return COMMAND_FAILED;
    epoch_forget(&all);
    if (read_epoch(demo, "second, page cache dropped", 2, &sum) != COMMAND_DONE)
        return COMMAND_FAILED;
    return read_epoch(demo, "third, page cache kept", 3, &sum);
}

/* --- the control files --- */

static int show_where(struct demo *demo)
{
    CLEANUP_STR struct str reply = STR_INIT, why = STR_INIT;
    const char request[] = "where\ndisc/0000.jpg\nring/0042.jpg\n";

    printf("\nWhich sample is it, who owns it, and which tier keeps it?\n\n"
           "$ dealfs where %s disc/0000.jpg ring/0042.jpg\n",
           demo->mountpoint);
    if (request_send(demo->control, request, sizeof request - 1, &reply, &why) < 0)
        return command_fail("%s", why.length > 0 ? why.data : strerror(ENOMEM));
    printf("%s\n", reply.length > 0 ? reply.data : "");
    printf("The same from a shell, by the control file:\n\n"
           "$ exec 3<>%s/control\n"
           "$ printf 'where\\ndisc/0000.jpg\\n' >&3; cat <&3\n\n",
           demo->control);
    return COMMAND_DONE;
}

static int perform(struct demo *demo)
{
    int (*const steps[])(struct demo *) = {make_directories, make_pictures, mount_pictures, read_epochs, show_where};

    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        int status = interrupted ? command_fail("interrupted") : steps[i](demo);
        if (status != COMMAND_DONE)
            return status;
    }
    return COMMAND_DONE;
}

static int clear_away(struct demo *demo)
{
    if (demo->root >= 0)
        close(demo->root);
    int status = unmount(demo);
    if (status == COMMAND_DONE && demo->directory[0]) {
        int error = dir_remove_tree(AT_FDCWD, demo->directory);
        if (error)
            status = command_fail("remove %s: %s", demo->directory, strerror(-error));
    }
    return status;
}

static int run(int argc, char **argv)
{
    CLEANUP_FREE struct demo *demo = calloc(1, sizeof *demo);

    if (argc > 1)
        return command_usage(&command_demo, "an argument too many: %s", argv[1]);
    if (!demo)
        return command_fail("demo: %s", strerror(ENOMEM));
    demo->root = -1;
    catch_signals();
    int status = perform(demo);
    int cleared = clear_away(demo);
    return status != COMMAND_DONE ? status : cleared;
}

const struct command command_demo = {
    .name = "demo",
    .arguments = "",
    .summary = "mount a small data set made for it, and show what comes from where",
    .help = "",
    .run = run,
};
