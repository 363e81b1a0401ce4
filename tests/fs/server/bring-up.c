/* Puts a mount up without the command, for tests of the keeper, the server and the way between them.
 *
 *     bring-up KEEPER SOURCE MOUNTPOINT STATE      returns when the mount is live; root only
 *     bring-up --layout                            offsets in the shared memory, as JSON
 *
 * The RAM tier is a detached tmpfs of 64 MiB, without an SSD tier; the log is STATE/log. With LIFE=FD in the
 * environment that descriptor becomes the mount's life line. */
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/catalog/scanner.h"
#include "fs/attach/attach.h"
#include "fs/attach/config.h"
#include "fs/catalog/copy.h"
#include "fs/wire/handover.h"
#include "fs/fuse/slots.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

enum { RAM_BYTES = 64 << 20, ABOVE = 64 };

static void die(const char *what, const char *why)
{
    fprintf(stderr, "bring-up: %s: %s\n", what, why);
    exit(1);
}

static size_t offset_of(struct handover *h, struct lane *lane)
{
    return (size_t)((char *)lane - (char *)h);
}

static int layout(void)
{
    static struct handover h;
    printf("{\"keeper\":%zu,\"server\":%zu,\"generation\":%zu,\"flags\":%zu,\"failures\":%zu,\"data_lane\":%zu,"
           "\"control_lane\":%zu,\"count\":%zu,\"slots\":%zu,\"slot\":%zu,\"init\":%zu,\"answered\":%zu,"
           "\"lingering\":%zu}\n",
           offsetof(struct handover, keeper), offsetof(struct handover, server), offsetof(struct handover, generation),
           offsetof(struct handover, flags), offsetof(struct handover, failures), offset_of(&h, handover_data(&h)),
           offset_of(&h, handover_control(&h)), offsetof(struct lane, count), offsetof(struct lane, slots),
           sizeof(struct slot), offsetof(struct lane, init), offsetof(struct lane, answered),
           offsetof(struct handover, lingering));
    return 0;
}

static void scan(const char *state, int source)
{
    char path[PATH_MAX];
    struct catalog *catalog;
    struct str why = STR_INIT;
    struct scan_options options = {.threads = 2};
    struct scan_progress progress;
    snprintf(path, sizeof path, "%s/catalog", state);
    if (scan_source(source, path, &options, &catalog, &why, &progress))
        die("scan", why.data);
    catalog_close(catalog);
}

static struct attach_mount mount_one(const char *source, const char *path, const char *subtype, bool read_only)
{
    struct attach_options options = {
        .subtype = subtype, .source = source, .read_only = read_only, .allow_other = true, .uid = 0, .gid = 0};
    struct str why = STR_INIT;
    struct attach_mount made;
    if (attach_mount(path, &options, &made, &why))
        die("mount", why.data);
    return made;
}

static int configure(char *source, char *mountpoint, char *state, char *control, unsigned data, unsigned beside)
{
    struct mount_config config = {
        .source = source,
        .mountpoint = mountpoint,
        .state = state,
        .control = control,
        .data_minor = data,
        .control_minor = beside,
        .ram_bytes = RAM_BYTES / 2,
        .zstd_level = 1,
        .source_threads = 4,
        .peer_timeout = 5000000000,
        .decoded = DECODED_DEFAULT,
        .request_memory = REQUEST_MEMORY_DEFAULT,
        .readahead = READAHEAD_MOST,
        .id = "00112233445566778899aabbccddeeff",
    };
    int sealed, error = config_seal(&config, &sealed);
    if (!error)
        error = config_write(&config);
    if (error)
        die("write the configuration", strerror(-error));
    return sealed;
}

static int copy_catalog(const char *state)
{
    char path[PATH_MAX];
    int copy;
    snprintf(path, sizeof path, "%s/catalog", state);
    CLEANUP_CLOSE int from = open(path, O_RDONLY | O_CLOEXEC);
    int error = copy_make(-1, 0, &copy);
    if (!error)
        error = copy_fill(copy, from, UINT64_MAX - 1, NULL);
    if (error)
        die("copy the catalog", strerror(-error));
    return copy;
}

/* Out of the way of the numbers that are to be filled. */
static int lift(int fd)
{
    int lifted = fcntl(fd, F_DUPFD_CLOEXEC, ABOVE);
    if (lifted < 0)
        die("dup", strerror(errno));
    return lifted;
}

static void execute(const char *keeper, const char *state, const int fd[FD_LAST + 1])
{
    setsid();
    for (int i = FD_DATA; i <= FD_LAST; i++) {
        if (fd[i] >= 0)
            dup2(fd[i], i);
        else
            close(i);
    }
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, 0);
    dup2(null, 1);
    dup2(fd[FD_LOG], 2);
    close_range(FD_LAST + 1, ~0u, CLOSE_RANGE_CLOEXEC);
    execl(keeper, "dealfs-keeper", state, (char *)NULL);
    _exit(127);
}

static int await(int ready)
{
    char line[512];
    FILE *f = fdopen(ready, "r");
    if (!f || !fgets(line, sizeof line, f))
        die("wait for the mount", "the keeper went away");
    if (strcmp(line, "ready\n") == 0)
        return 0;
    fputs(line, stderr);
    return 1;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--layout") == 0)
        return layout();
    if (argc != 5)
        die("usage", "bring-up KEEPER SOURCE MOUNTPOINT STATE");
    char *source = argv[2], *mountpoint = argv[3], *state = argv[4], control[PATH_MAX], log[PATH_MAX];
    const char *life = getenv("LIFE");
    int fd[FD_LAST + 1], ready[2];
    for (int i = 0; i <= FD_LAST; i++)
        fd[i] = -1;
    snprintf(control, sizeof control, "%s/control", state);
    snprintf(log, sizeof log, "%s/log", state);
    if (mkdir(state, 0700) || mkdir(control, 0700))
        die(state, strerror(errno));
    fd[FD_LOG] = lift(open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    fd[FD_SOURCE] = lift(open(source, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    scan(state, fd[FD_SOURCE]);
    struct attach_mount data = mount_one(source, mountpoint, "dealfs", true);
    struct attach_mount beside = mount_one(source, control, "dealfs-ctl", false);
    fd[FD_CONFIG] = lift(configure(source, mountpoint, state, control, data.minor, beside.minor));
    fd[FD_CATALOG] = lift(copy_catalog(state));
    int error = attach_private_tmpfs(RAM_BYTES, 0, 0, &fd[FD_RAM]);
    if (error)
        die("make a tmpfs", strerror(-error));
    if (pipe2(ready, O_CLOEXEC))
        die("pipe", strerror(errno));
    fd[FD_RAM] = lift(fd[FD_RAM]);
    fd[FD_DATA] = lift(data.device);
    fd[FD_CONTROL] = lift(beside.device);
    fd[FD_DATA_MOUNT] = lift(data.root);
    fd[FD_CONTROL_MOUNT] = lift(beside.root);
    fd[FD_READY] = lift(ready[1]);
    fd[FD_LIFE] = life ? lift(atoi(life)) : -1;
    int answer = lift(ready[0]);
    pid_t keeper = fork();
    if (keeper == 0)
        execute(argv[1], state, fd);
    close(fd[FD_READY]);
    close(ready[1]);
    if (await(answer))
        return 1;
    printf("%d\n", (int)keeper);
    return 0;
}
