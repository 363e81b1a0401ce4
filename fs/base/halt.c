#include "fs/base/halt.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/str.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_MOST = 128 };

/* The action at this point; false: none. */
static bool halt_wanted(const char *point, char path[PATH_MAX], char what[8])
{
    CLEANUP_STR struct str line = STR_INIT;
    char wanted[32];
    const char *directory = getenv("DEALFS_HALT");
    if (!directory)
        return false;
    snprintf(path, PATH_MAX, "%s/%d", directory, (int)getpid());
    return !file_read(AT_FDCWD, path, LINE_MOST, &line) && line.data &&
           sscanf(line.data, "%31s %7s", wanted, what) == 2 && strcmp(wanted, point) == 0;
}

void halt_at(const char *point)
{
    char path[PATH_MAX], what[8];
    if (!halt_wanted(point, path, what))
        return;
    unlink(path);
    kill(getpid(), strcmp(what, "kill") == 0 ? SIGKILL : SIGSTOP);
}

int halt_fault(const char *point)
{
    char path[PATH_MAX], what[8];
    return halt_wanted(point, path, what) ? -atoi(what) : 0;
}
