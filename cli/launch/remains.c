/* Processes of a mount are recognised by their names, such as dealfs-keeper: they must not be killed, because they
 * unmount. */
#include "cli/launch/remains.h"

#include "cli/base/place.h"
#include "fs/base/cleanup.h"
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

/* PID (NAME) STATE PARENT …: the name may contain parentheses. */
static bool is_child(const char *pid, char *name, size_t n)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    CLEANUP_FCLOSE FILE *f = fopen(path, "re");
    size_t length = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[length] = '\0';
    char *begin = strchr(text, '('), *end = strrchr(text, ')'), state;
    int parent;
    if (!begin || !end || sscanf(end + 1, " %c %d", &state, &parent) != 2 || parent != getpid() || state == 'Z')
        return false;
    *end = '\0';
    snprintf(name, n, "%s", begin + 1);
    return true;
}

unsigned remains_signal(enum remains_of of, pid_t known, int signal)
{
    CLEANUP_CLOSEDIR DIR *d = opendir("/proc");
    struct dirent *e;
    unsigned count = 0;
    while (d && (e = readdir(d))) {
        char name[32];
        uint64_t pid;
        if (number_parse(e->d_name, 2, INT32_MAX, &pid) || (pid_t)pid == known ||
            !is_child(e->d_name, name, sizeof name))
            continue;
        if ((strncmp(name, "dealfs-", 7) == 0) != (of == REMAINS_OF_MOUNT))
            continue;
        count++;
        if (signal)
            kill((pid_t)pid, signal);
    }
    return count;
}
