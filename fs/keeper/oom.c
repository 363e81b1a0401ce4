/* When memory runs out, the kernel adds oom_score_adj, in thousandths of all memory, to each process's memory, and
 * kills the largest. Root sets the keeper's score to the minimum: then the kernel never kills it, even if
 * memory.oom.group kills the rest of a group. Other users may not lower it: dealfs-mounter, if there is one, lowers it
 * by half as much; otherwise the children's score is raised. */
#include "fs/keeper/oom.h"

#include "fs/attach/mounter.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/wire/handover.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { KEEPER_OOM = -1000, ABOVE_KEEPER = 100, MOST_OOM = 1000 };

static const char path[] = "/proc/self/oom_score_adj", variable[] = "DEALFS_OOM_SCORE";

static int write_score(int score)
{
    char text[OOM_TEXT];
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    int n = snprintf(text, sizeof text, "%d", score);
    return fd < 0 ? -errno : file_write_all(fd, text, (size_t)n);
}

void oom_set(const char *score)
{
    if (score[0])
        write_score(atoi(score));
}

/* The score with which the mount's first keeper was started. Later keepers start with that of a standby or of a server;
 * they find the first one's score in the environment. */
static int first_score(void)
{
    CLEANUP_STR struct str now = STR_INIT;
    const char *known = getenv(variable);
    if (known)
        return atoi(known);
    if (file_read(AT_FDCWD, path, OOM_TEXT - 1, &now) || !now.data)
        return 0;
    setenv(variable, now.data, 1);
    return atoi(now.data);
}

static bool ask_mounter(void)
{
    CLEANUP_STR struct str ignored = STR_INIT;
    return handover_has(FD_MOUNTER) && mounter_do(FD_MOUNTER, MOUNTER_PROTECT, 0, &ignored) == 0;
}

void oom_protect(char children[OOM_TEXT])
{
    int first = first_score();
    int raised = first + ABOVE_KEEPER < MOST_OOM ? first + ABOVE_KEEPER : MOST_OOM;
    bool lowered = write_score(KEEPER_OOM) == 0 || ask_mounter();
    if (!lowered)
        write_score(first); /* a keeper that a server started has the server's score */
    snprintf(children, OOM_TEXT, "%d", lowered ? first : raised);
}
