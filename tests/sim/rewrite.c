/* One of four small files may be written; the others are links to those of the dataset, which all runs share. */
#include "tests/sim/rewrite.h"

#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/base/thread.h"
#include "tests/lib/tap.h"
#include "tests/sim/faults.h"
#include "tests/sim/node.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 256, EACH = 4, LARGE = 4 << 20, BLOCK = 8192, PAUSE_MS = 20, LONGEST = PATH_MAX + CATALOG_PATH_MAX };

static struct {
    struct sim_process *writers;
    bool begun[FILES];
    ino_t inode[FILES]; /* 0: it is not to be written */
    uint32_t writing;   /* threads */
    uint32_t traps;     /* files that are still to be written when they are read */
} rewrite;

static void find_path(uint32_t file, char path[CATALOG_PATH_MAX])
{
    if (catalog_path(sim_dataset.catalog, catalog_file_ino(sim_dataset.catalog, file), path, CATALOG_PATH_MAX) < 0)
        bail_out("file %u has no path", file);
}

static ino_t copy(int from, int to, const char *path)
{
    struct stat st;
    int in = openat(from, path, O_RDONLY | O_CLOEXEC);
    int out = openat(to, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (in < 0 || out < 0 || fstat(in, &st) || file_copy(in, out, UINT64_MAX - 1) ||
        futimens(out, (struct timespec[]){st.st_atim, st.st_mtim}))
        bail_out("copy %s", path);
    close(in);
    close(out);
    return fstatat(to, path, &st, 0) ? 0 : st.st_ino;
}

void rewrite_prepare(const char *directory)
{
    char path[CATALOG_PATH_MAX], parent[LONGEST], made[LONGEST] = "";
    uint32_t files = catalog_files(sim_dataset.catalog);
    int from = sim_dataset.root;
    snprintf(sim_dataset.source, sizeof sim_dataset.source, "%s/source", directory);
    if (files > FILES || dir_make(sim_dataset.source, 0755))
        bail_out("a copy of the source");
    sim_dataset.root = open(sim_dataset.source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (uint32_t i = 0; i < files; i++) {
        find_path(i, path);
        snprintf(parent, sizeof parent, "%s/%.*s", sim_dataset.source, (int)(strrchr(path, '/') - path), path);
        if (strcmp(parent, made) && dir_make(parent, 0755))
            bail_out("%s", parent);
        strcpy(made, parent);
        if (i % EACH == 0 && dataset_size(&sim_dataset, i) < LARGE)
            rewrite.inode[i] = copy(from, sim_dataset.root, path);
        else if (linkat(from, path, sim_dataset.root, path, 0))
            bail_out("link %s", path);
    }
}

void rewrite_begin(void)
{
    rewrite.writers = sim_process_new(0, "writers");
}

/* Each block is a switching point, and perhaps a rest. No byte of the file stays. */
static void write_bytes(int fd, const char *path, uint64_t size)
{
    char old[BLOCK], bytes[BLOCK];
    for (uint64_t at = 0; at < size; at += BLOCK) {
        size_t n = size - at < BLOCK ? (size_t)(size - at) : BLOCK;
        int was = open(path, O_RDONLY | O_CLOEXEC);
        memset(old, 0, sizeof old);
        if (was < 0 || pread(was, old, n, (off_t)at) < 0)
            bail_out("%s", path);
        close(was);
        for (size_t i = 0; i < n; i++)
            bytes[i] = (char)(old[i] ^ 0x55);
        if (pwrite(fd, bytes, n, (off_t)at) != (ssize_t)n)
            bail_out("write %s", path);
        if (sim_random(4) == 0)
            clock_sleep(1 + sim_random(PAUSE_MS * MILLISECOND));
    }
}

static void write_anew(const char *path, uint64_t size)
{
    char new[LONGEST];
    snprintf(new, sizeof new, "%s/.new-%u", sim_dataset.source, (unsigned)sim_random(UINT32_MAX));
    int fd = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        bail_out("%s", new);
    write_bytes(fd, path, size);
    close(fd);
    if (rename(new, path))
        bail_out("rename %s", new);
}

static void write_in_place(const char *path, uint64_t size)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        bail_out("%s", path);
    write_bytes(fd, path, size);
    if (sim_random(4) == 0 && ftruncate(fd, (off_t)(size + sim_random(size))))
        bail_out("%s", path);
    close(fd);
}

static void *rewrite_file(void *argument)
{
    uint32_t file = *(uint32_t *)argument;
    uint64_t size = catalog_file(sim_dataset.catalog, file).size;
    char name[CATALOG_PATH_MAX], path[LONGEST];
    free(argument);
    find_path(file, name);
    snprintf(path, sizeof path, "%s/%s", sim_dataset.source, name);
    switch (sim_random(4)) {
    case 0:
        write_anew(path, size);
        break;
    case 1:
        if (unlink(path))
            bail_out("%s", path);
        break;
    default:
        write_in_place(path, size);
    }
    sim_log("file %u of the source has changed", file);
    rewrite.writing--;
    return NULL;
}

static bool is_over(void *unused)
{
    (void)unused;
    return rewrite.writing == 0;
}

static void begin(uint32_t file)
{
    uint32_t *argument = malloc(sizeof *argument);
    pthread_t thread;
    if (!argument)
        bail_out("no memory");
    *argument = file;
    sim_log("fault: file %u of the source is written", file);
    rewrite.begun[file] = true;
    rewrite.writing++;
    effects[EFFECT_REWRITTEN]++;
    struct sim_process *self = sim_process_self();
    sim_process_enter(rewrite.writers);
    if (thread_create(&thread, "rewrite", rewrite_file, argument))
        bail_out("a thread");
    sim_process_enter(self);
    pthread_detach(thread);
}

void rewrite_some(void)
{
    uint32_t files = catalog_files(sim_dataset.catalog);
    uint32_t file = (uint32_t)sim_random((files + EACH - 1) / EACH) * EACH;
    if (sim_random(4))
        rewrite.traps += 1 + (uint32_t)sim_random(3);
    else if (rewrite.inode[file] && !rewrite.begun[file])
        begin(file);
}

static uint32_t find_file(int fd)
{
    struct stat st;
    uint32_t file = 0;
    if (fstat(fd, &st))
        return FILES;
    while (file < FILES && rewrite.inode[file] != st.st_ino)
        file++;
    return file;
}

/* How the source looks at a file before it reads: others write it from this moment on. */
int __real_state_look(int fd, const char *name, int flags, struct stat *st, uint32_t *object);
int __wrap_state_look(int fd, const char *name, int flags, struct stat *st, uint32_t *object);
int __wrap_state_look(int fd, const char *name, int flags, struct stat *st, uint32_t *object)
{
    static _Thread_local struct stat before;
    int error = __real_state_look(fd, name, flags, st, object);
    uint32_t file = rewrite.traps && !flags && !name ? find_file(fd) : FILES;
    if (file < FILES && !rewrite.begun[file]) {
        rewrite.traps--;
        effects[EFFECT_WHILE_READ]++;
        begin(file);
        clock_sleep(1 + sim_random(PAUSE_MS * MILLISECOND));
    }
    if (bug_is_planted("look") && flags)
        *st = before;
    before = *st;
    return error;
}

bool rewrite_has(uint32_t file)
{
    return rewrite.begun[file];
}

void rewrite_end(void)
{
    rewrite.traps = 0;
    sim_wait(is_over, NULL, SIM_NEVER, "those who write to the source");
}
