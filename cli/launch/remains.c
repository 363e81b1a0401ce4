/* Processes are known by descent, not by name: those of the mount are below `dealfs mount -f`, and must not be killed,
 * because they unmount. All other children belong to the command. */
#include "cli/launch/remains.h"

#include "cli/base/place.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/process.h"
#include "fs/base/size.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

struct remains *remains_new(void)
{
    void *r = mmap(NULL, sizeof(struct remains), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return r == MAP_FAILED ? NULL : r;
}

void remains_free(struct remains *r)
{
    if (r)
        munmap(r, sizeof *r);
}

void remains_adopt(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* --- folders --- */

int remains_make_folder(struct remains *r, const char *path, struct str *why)
{
    char *folder = r->folder;
    size_t length = strlen(path);
    if (length >= sizeof r->folder)
        return place_error(why, "mountpoint", path, -ENAMETOOLONG);
    memcpy(folder, path, length + 1);
    while (length > 1 && folder[length - 1] == '/')
        folder[--length] = '\0';
    for (size_t end = 1; end <= length; end++) {
        if (folder[end] != '/' && folder[end] != '\0')
            continue;
        char after = folder[end];
        folder[end] = '\0';
        int error = mkdir(folder, 0755) == 0 ? 0 : errno;
        folder[end] = after;
        r->made += error == 0;
        if (error && error != EEXIST && (r->made || end == length))
            return place_error(why, "make folder", path, -error);
    }
    return 0;
}

void remains_remove_folders(struct remains *r)
{
    while (r->made > 0 && rmdir(r->folder) == 0 && --r->made > 0)
        *strrchr(r->folder, '/') = '\0';
}

/* --- processes --- */

enum { STAT_MOST = 4096 };

/* PID (NAME) STATE PARENT …: the name may contain parentheses. 1: it is one, 0, or -errno. */
static int is_child(int proc, const char *pid)
{
    CLEANUP_STR struct str text = STR_INIT;
    char path[64], state;
    snprintf(path, sizeof path, "%.20s/stat", pid);
    int error = file_read(proc, path, STAT_MOST, &text), parent;
    if (error || text.length == 0)
        return process_look_error(error);
    const char *end = strrchr(text.data, ')');
    return end && sscanf(end + 1, " %c %d", &state, &parent) == 2 && parent == getpid() && state != 'Z';
}

int remains_signal(const struct remains *r, int signal)
{
    CLEANUP_CLOSEDIR DIR *d = opendir("/proc");
    struct dirent *e;
    int count = 0, error = d ? 0 : -errno;
    while (d && (e = readdir(d))) {
        uint64_t pid;
        if (number_parse(e->d_name, 2, INT32_MAX, &pid) || (pid_t)pid == r->mount)
            continue;
        int child = is_child(dirfd(d), e->d_name);
        if (child < 0)
            error = child;
        if (child <= 0)
            continue;
        count++;
        if (signal)
            kill((pid_t)pid, signal);
    }
    return count ? count : error;
}
