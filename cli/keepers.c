/* Keepers are known by their command line, `dealfs-keeper STATE`. Anybody can give a process such a name: whoever uses
 * what is found here must look whose it is. */
#include "cli/keepers.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"

#include <ctype.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static const char name[] = "dealfs-keeper";

static bool has_name(int process)
{
    CLEANUP_STR struct str comm = STR_INIT;

    return file_read(process, "comm", 64, &comm) == 0 && comm.length == sizeof name &&
           memcmp(comm.data, name, sizeof name - 1) == 0;
}

/* The process may end at any time: what cannot be read is passed over. */
static int look(const char *pid, int (*each)(void *user, const struct keeper_seen *keeper), void *user)
{
    CLEANUP_STR struct str path = STR_INIT, line = STR_INIT;
    struct stat st;

    str_addf(&path, "/proc/%s", pid);
    CLEANUP_CLOSE int process = path.failed ? -1 : open(path.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (process < 0 || !has_name(process) || fstat(process, &st) < 0 ||
        file_read(process, "cmdline", 1 << 16, &line) || line.length == 0)
        return 0;
    const char *state = memchr(line.data, 0, line.length);
    if (!state || state + 1 >= line.data + line.length || state[1] != '/')
        return 0;
    struct keeper_seen seen = {.pid = (pid_t)atoi(pid), .uid = st.st_uid, .state = state + 1};
    return each(user, &seen);
}

int keepers_each(int (*each)(void *user, const struct keeper_seen *keeper), void *user)
{
    CLEANUP_CLOSEDIR DIR *d = opendir("/proc");
    struct dirent *e;
    int result = 0;

    if (!d)
        return -errno;
    while (result == 0 && (e = readdir(d)))
        if (isdigit((unsigned char)e->d_name[0]))
            result = look(e->d_name, each, user);
    return result;
}

struct wanted {
    const char *state;
    pid_t pid;
};

static int match_state(void *user, const struct keeper_seen *keeper)
{
    struct wanted *w = user;

    if (strcmp(keeper->state, w->state) == 0)
        w->pid = keeper->pid;
    return 0;
}

pid_t keepers_of_state(const char *state)
{
    struct wanted w = {.state = state};

    keepers_each(match_state, &w);
    return w.pid;
}

static int count(void *user, const struct keeper_seen *keeper)
{
    (void)keeper;
    ++*(unsigned *)user;
    return 0;
}

unsigned keepers_count(void)
{
    unsigned n = 0;

    keepers_each(count, &n);
    return n;
}
