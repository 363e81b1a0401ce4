/* `dealfs demo`: makes a small dataset of JPEG images, mounts it on four nodes that are all this machine (or on one),
 * reads it in epochs, and removes everything.
 *
 * It executes the commands that a user would type for mount and unmount. */
#include "cli/lab/demo.h"

#include "cli/base/options.h"
#include "cli/base/interrupt.h"
#include "cli/base/progress.h"
#include "cli/lab/epoch.h"
#include "cli/lab/lab.h"
#include "cli/lab/picture.h"
#include "cli/live/client.h"
#include "cli/mount/checks.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/json.h"
#include "fs/base/size.h"

#include <errno.h>
#include <getopt.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

enum { CLASSES = 6, PICTURES = 100, FILES = CLASSES * PICTURES, PLACES = 4, THREADS = 2, PATH_TEXT = 32 };
enum { BATCH = 25, SLOW_MIB = 20 }; /* per rank and step; DEMO_NODES of them divide the number of images */
enum { SOURCE, RAM, SSD, PEER };

static const char *const classes[CLASSES] = {"cross", "diamond", "disc", "ring", "square", "stripes"};
static const unsigned figures[CLASSES] = {4, 2, 0, 3, 1, 5};
static const char *const places[PLACES] = {[SOURCE] = "source", [RAM] = "ram", [SSD] = "ssd", [PEER] = "peer"};

static char names[FILES][PATH_TEXT], *paths[FILES];

/* Before anything is created. */
static int check_machine(struct demo *demo)
{
    CLEANUP_STR struct str why = STR_INIT;
    (void)demo;
    return checks_for_mount(&why) ? command_fail("%s", command_why(&why, -ENODEV)) : COMMAND_DONE;
}

/* --- the dataset --- */

/* Quotes only where they are needed: most paths need none. */
static int quote_directory(struct demo *demo)
{
    const char *plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._+-";
    if (demo->directory[strspn(demo->directory, plain)])
        str_add_shell_quoted(&demo->pasted, demo->directory);
    else
        str_adds(&demo->pasted, demo->directory);
    return demo->pasted.failed ? command_fail("demo: %s", strerror(ENOMEM)) : COMMAND_DONE;
}

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
    if (mkdir(demo->source, 0755) < 0)
        return command_fail("make %s: %s", demo->source, strerror(errno));
    return quote_directory(demo);
}

static int write_class(struct demo *demo, int root, int class, struct progress_bar *progress)
{
    CLEANUP_CLOSE int directory = -1;
    if (mkdirat(root, classes[class], 0755) == 0)
        directory = openat(root, classes[class], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return -errno;
    for (int i = 0; i < PICTURES && !interrupted; i++) {
        int number = class * PICTURES + i;
        struct stat st;
        paths[number] = names[number];
        snprintf(names[number], PATH_TEXT, "%s/%04d.jpg", classes[class], i);
        int error = picture_write(directory, strchr(names[number], '/') + 1, (uint64_t)number, figures[class]);
        if (error)
            return error;
        if (fstatat(root, names[number], &st, 0) == 0)
            demo->bytes += (uint64_t)st.st_size;
        progress_show(progress, &(struct progress_now){.files = (uint64_t)number + 1, .files_total = FILES});
    }
    return interrupted ? -ECANCELED : 0;
}

static int make_pictures(struct demo *demo)
{
    CLEANUP_CLOSE int root = open(demo->source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct progress_bar progress;
    int error = root < 0 ? -errno : 0;
    progress_begin(&progress, "making images", stderr);
    for (int class = 0; class < CLASSES && !error; class ++)
        error = write_class(demo, root, class, &progress);
    progress_end(&progress);
    if (error)
        return command_fail("make images in %s: %s", demo->source,
                            error == -ECANCELED ? "interrupted" : strerror(-error));
    printf("%d JPEG images of %d classes, %s, are in\n  %s\n\n", FILES, CLASSES, size_text(demo->bytes), demo->source);
    return COMMAND_DONE;
}

/* --- where reads came from --- */

static struct live demo_live(const struct demo *demo, int node)
{
    return (struct live){.control = (char *)demo->control[node], .uid = geteuid(), .gid = getegid()};
}

/* Sum over all nodes. */
static int read_places(const struct demo *demo, uint64_t bytes[PLACES])
{
    int error = 0;
    memset(bytes, 0, PLACES * sizeof *bytes);
    for (int node = 0; node < demo->nodes && !error; node++) {
        CLEANUP_STR struct str status = STR_INIT;
        struct live live = demo_live(demo, node);
        error = client_file(&live, "status", &status);
        for (int i = 0; i < PLACES && !error; i++) {
            char path[32];
            uint64_t now = 0;
            snprintf(path, sizeof path, "bytes.%s", places[i]);
            error = json_find_uint(status.data, status.length, path, &now);
            bytes[i] += now;
        }
    }
    return error;
}

/* One node has an SSD to show, and no peers. */
static int third_place(const struct demo *demo)
{
    return demo->nodes > 1 ? PEER : SSD;
}

static void print_row(const struct demo *demo, const char *name, const struct epoch *epoch,
                      const uint64_t before[PLACES], const uint64_t after[PLACES])
{
    double seconds = (double)epoch->elapsed / 1e9, all = (double)epoch->bytes;
    const int shown[] = {SOURCE, RAM, third_place(demo)};
    uint64_t asked = 0;
    printf("%-26s %9s %8.0f ", name, count_text((uint64_t)(epoch->files / seconds)), all / seconds / (1 << 20));
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        uint64_t bytes = after[shown[i]] - before[shown[i]];
        printf("%7.0f%%", 100 * (double)bytes / all);
        asked += bytes;
    }
    printf("%11.0f%%\n", asked < epoch->bytes ? 100 * (all - (double)asked) / all : 0);
    fflush(stdout);
}

static struct epoch make_epoch(const struct demo *demo, uint64_t seed)
{
    return (struct epoch){.path = paths,
                          .files = FILES,
                          .root = demo->root,
                          .roots = demo->nodes,
                          .threads = demo->nodes > 1 ? demo->nodes : THREADS,
                          .seed = seed,
                          .stop = &interrupted};
}

/* The bytes must be the same in any order of reading. */
static int check_epoch(const struct epoch *epoch, const char *where, int error, uint64_t *sum)
{
    if (error)
        return command_fail("read %s: %s", where, error == -ECANCELED ? "interrupted" : strerror(-error));
    if (*sum != 0 && *sum != epoch->sum)
        return command_fail("read %s: the bytes differ from those of the first epoch", where);
    *sum = epoch->sum;
    return COMMAND_DONE;
}

static int read_epoch(struct demo *demo, const char *name, struct epoch *epoch, uint64_t *sum)
{
    uint64_t before[PLACES], after[PLACES];
    int error = read_places(demo, before);
    if (!error)
        error = epoch_read(epoch);
    if (!error)
        error = read_places(demo, after);
    int status = check_epoch(epoch, demo->mountpoint[0], error, sum);
    if (status == COMMAND_DONE)
        print_row(demo, name, epoch, before, after);
    return status;
}

static int read_row(struct demo *demo, const char *name, uint64_t number, bool forget, uint64_t *sum)
{
    struct epoch epoch = make_epoch(demo, number);
    if (forget)
        epoch_forget(&epoch);
    return read_epoch(demo, name, &epoch, sum);
}

/* Like a job without a cache, from storage with a fixed total speed for all its nodes. */
static int read_source(struct demo *demo, uint64_t *sum)
{
    CLEANUP_CLOSE int root = open(demo->source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct epoch epoch = make_epoch(demo, 1);
    uint64_t none[PLACES] = {0}, all[PLACES] = {0};
    epoch.root = &root;
    epoch.roots = 1;
    epoch.rate = SLOW_MIB << 20;
    int status = check_epoch(&epoch, demo->source, root < 0 ? -errno : epoch_read(&epoch), sum);
    all[SOURCE] = epoch.bytes;
    if (status == COMMAND_DONE)
        print_row(demo, "the source itself", &epoch, none, all);
    return status;
}

/* Asks the first node. */
static int ask_mount(const struct demo *demo, const char *what, const struct str *request, struct str *reply)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct live live = demo_live(demo, 0);
    int error = client_send(&live, request, reply, &why);
    return error ? command_fail("%s: %s", what, command_why(&why, error)) : COMMAND_DONE;
}

/* Rank r's list is read on node r. The lists are concatenated, but read concurrently. */
static int read_plan(struct demo *demo, const char *name, const char *mode, uint64_t *sum)
{
    CLEANUP_STR struct str request = STR_INIT, reply = STR_INIT;
    struct epoch epoch = make_epoch(demo, 0);
    uint32_t order[FILES], each = FILES / (uint32_t)demo->nodes;
    str_addf(&request, "plan epoch=1 ranks=%d batch=%d mode=%s reply=u32\n", demo->nodes, BATCH, mode);
    int status = ask_mount(demo, "plan the epoch", &request, &reply);
    if (status)
        return status;
    if (reply.length != sizeof order)
        return command_fail("plan the epoch: the reply has another length than the requested lists");
    for (uint32_t i = 0; i < FILES; i++) {
        uint32_t at = i % each * (uint32_t)demo->nodes + i / each;
        memcpy(&order[at], reply.data + i * sizeof *order, sizeof *order);
        if (order[at] >= FILES)
            return command_fail("plan the epoch: sample %" PRIu32 " of %d", order[at], FILES);
    }
    epoch.order = order;
    epoch_forget(&epoch);
    return read_epoch(demo, name, &epoch, sum);
}

/* Prints the first entries of a rank's list for that epoch. */
static int show_list(const struct demo *demo)
{
    enum { SHOWN = 5 };
    CLEANUP_STR struct str request = STR_INIT, reply = STR_INIT;
    str_addf(&request, "plan epoch=1 ranks=%d batch=%d rank=0\n", demo->nodes, BATCH);
    int status = ask_mount(demo, "plan the epoch", &request, &reply);
    if (status)
        return status;
    printf("\nThe first samples of rank 0 in the dealt order:\n\n  dealfs plan %s/node0 epoch=1 ranks=%d batch=%d "
           "rank=0 | "
           "head -n %d\n\n",
           demo->pasted.data, demo->nodes, BATCH, SHOWN);
    const char *at = reply.data;
    for (int i = 0; i < SHOWN && at && *at; i++) {
        size_t length = strcspn(at, "\n");
        printf("%.*s\n", (int)length, at);
        at += length + (at[length] == '\n');
    }
    return COMMAND_DONE;
}

static void print_head(const struct demo *demo)
{
    printf("%-26s %9s %8s  %7s%8s%8s%12s\n", "", "files/s", "MiB/s", "source", "own ram", places[third_place(demo)],
           "page cache");
}

static int read_epochs_of_one(struct demo *demo)
{
    uint64_t sum = 0;
    printf("\nEach epoch reads every image once, in a random order, by %d threads:\n\n", THREADS);
    print_head(demo);
    int status = read_row(demo, "first epoch", 1, false, &sum);
    if (status == COMMAND_DONE)
        status = read_row(demo, "second, page cache dropped", 2, true, &sum);
    return status == COMMAND_DONE ? read_row(demo, "third, page cache kept", 3, false, &sum) : status;
}

static int read_epochs_of_world(struct demo *demo)
{
    char *const stage[] = {"dealfs", "stage", demo->mountpoint[0], NULL};
    uint64_t sum = 0;
    printf("\nEach image is read from the source once, by the node that owns it:\n\n  dealfs stage %s/node0\n\n",
           demo->pasted.data);
    if (demo_dealfs(stage, false) != 0)
        return command_fail("the demonstration ends here: `dealfs stage` failed");
    printf(
        "\nEach row is an epoch: every image is read once, each node reads a quarter of them, with the page cache "
        "dropped.\n"
        "The source is as slow as storage for many jobs, %d MiB/s for all nodes together. The random order is\n"
        "DistributedSampler's. The dealt order has the same samples in each step, so that training is the same, but\n"
        "gives each node the samples that it caches:\n\n",
        SLOW_MIB);
    print_head(demo);
    int status = read_source(demo, &sum);
    if (status == COMMAND_DONE)
        status = read_plan(demo, "random order", "regular", &sum);
    if (status == COMMAND_DONE)
        status = read_plan(demo, "dealt order", "locality", &sum);
    return status == COMMAND_DONE ? show_list(demo) : status;
}

static int read_epochs(struct demo *demo)
{
    return demo->nodes > 1 ? read_epochs_of_world(demo) : read_epochs_of_one(demo);
}

/* --- the control files --- */

static int ask_where(const struct demo *demo, const char *samples)
{
    CLEANUP_STR struct str request = STR_INIT, reply = STR_INIT;
    str_addf(&request, "where\n%s", samples);
    int status = ask_mount(demo, "where", &request, &reply);
    if (!status)
        printf("%s\n", reply.length > 0 ? reply.data : "");
    return status;
}

static int show_where(struct demo *demo)
{
    printf("\nWhich sample is it, which node owns it, and which tier caches it?\n\n"
           "  dealfs where %s/node0 disc/0000.jpg ring/0042.jpg\n\n",
           demo->pasted.data);
    int status = ask_where(demo, "disc/0000.jpg\nring/0042.jpg\n");
    if (status != COMMAND_DONE)
        return status;
    printf("The same from a shell, by the control file:\n\n"
           "  exec 3<>%s/node0/.dealfs/control\n"
           "  printf 'where\\ndisc/0000.jpg\\n' >&3; cat <&3\n\n",
           demo->pasted.data);
    return ask_where(demo, "disc/0000.jpg\n");
}

static int demo_perform(struct demo *demo)
{
    int (*const steps[])(struct demo *) = {check_machine, make_directories, make_pictures,
                                           demo_mount,    read_epochs,      show_where};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        int status = interrupted ? command_fail("interrupted") : steps[i](demo);
        if (status != COMMAND_DONE)
            return status;
    }
    return COMMAND_DONE;
}

/* With `keep` the images stay, for further use. */
static int clear_away(struct demo *demo, bool keep)
{
    int status = demo_unmount(demo);
    if (status != COMMAND_DONE || !demo->directory[0])
        return status;
    if (keep) {
        printf("\nThe images stay. When you no longer need them:\n\n  rm -r %s\n", demo->pasted.data);
        return status;
    }
    int error = dir_remove_tree(AT_FDCWD, demo->directory);
    return error ? command_fail("remove %s: %s", demo->directory, strerror(-error)) : COMMAND_DONE;
}

static void show_next_step(void)
{
    printf("\nThe next step, with your own data:\n\n"
           "  mkdir -p /tmp/data\n"
           "  dealfs mount /path/to/your/data /tmp/data\n"
           "  dealfs status /tmp/data\n\n"
           "and on many nodes `dealfs launch --stage /path/to/your/data /tmp/data -- COMMAND`: see `man dealfs`.\n");
}

int demo_command(int argc, char **argv)
{
    CLEANUP_FREE struct demo *demo = calloc(1, sizeof *demo);
    bool keep = false;
    int status = command_options(&command_demo, &keep, argc, argv);
    if (status != COMMAND_DONE)
        return status;
    if (optind < argc)
        return command_usage(&command_demo, "an argument too many: %s", argv[optind]);
    if (!demo)
        return command_fail("demo: %s", strerror(ENOMEM));
    for (int i = 0; i < DEMO_NODES; i++)
        demo->root[i] = -1;
    demo->output = -1;
    interrupt_catch(SIGINT, SIGTERM, SIGHUP, SIGPIPE);
    status = demo_perform(demo);
    int cleared = clear_away(demo, keep);
    str_fini(&demo->pasted);
    if (status == COMMAND_DONE && cleared == COMMAND_DONE)
        show_next_step();
    return status != COMMAND_DONE ? status : cleared;
}
