/* Images of a mount that waits for its first world: dealfs-resizer makes this node's part of them before there is a
 * catalog. The result, or what the world already has, is that catalog.
 *
 * Threads: the peers' own. */
#include "fs/server/server.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/catalog/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TO_STATE = 3, TO_SOURCE, TO_RAM, TO_COURIER, TO_LAST = TO_COURIER };

/* --- the program --- */

/* The descriptors are first moved above their targets, so that none is overwritten before its turn. */
static int spawn_resizer(const char *program, char *const argv[], int courier, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, usual;
    sigemptyset(&none);
    sigfillset(&usual);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, handover_has(FD_LOG) ? FD_LOG : STDERR_FILENO, STDERR_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, FD_STATE, TO_STATE);
    posix_spawn_file_actions_adddup2(&actions, FD_SOURCE, TO_SOURCE);
    posix_spawn_file_actions_adddup2(&actions, handover_has(FD_RAM) ? FD_RAM : FD_STATE, TO_RAM);
    posix_spawn_file_actions_adddup2(&actions, courier, TO_COURIER);
    posix_spawn_file_actions_addclosefrom_np(&actions, TO_LAST + 1);
    int error = -posix_spawn(pid, program, &actions, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return error;
}
_Static_assert((int)FD_RAM > (int)TO_LAST && (int)FD_SOURCE > (int)TO_LAST && (int)FD_STATE > (int)TO_LAST,
               "from above");

static int start_resizer(struct server *s, int courier)
{
    const struct mount_config *c = &s->config;
    char program[PATH_MAX], text[5][32], detached[32];
    char *argv[] = {"dealfs-resizer",
                    text[0],
                    text[1],
                    c->ram_path ? c->ram_path : detached,
                    text[2],
                    c->ssd_path ? c->ssd_path : "",
                    text[3],
                    text[4],
                    NULL};
    snprintf(text[0], sizeof text[0], "%d", c->resize);
    snprintf(text[1], sizeof text[1], "%d", c->quality);
    snprintf(text[2], sizeof text[2], "%" PRIu64, c->ram_bytes);
    snprintf(text[3], sizeof text[3], "%" PRIu64, c->ssd_bytes);
    snprintf(text[4], sizeof text[4], "%d", TO_COURIER);
    snprintf(detached, sizeof detached, "/proc/self/fd/%d", TO_RAM);
    int error = handover_find_program("dealfs-resizer", program, sizeof program);
    return error ? error : spawn_resizer(program, argv, courier, &s->resizer);
}

/* It ends by itself when its courier hangs up, which the courier does before its next request. Storing results, or a
 * hanging source, may delay that. */
static void await_resizer(struct server *s, bool end)
{
    if (s->resizer <= 0)
        return;
    if (end)
        kill(s->resizer, SIGTERM);
    while (waitpid(s->resizer, NULL, 0) < 0 && errno == EINTR)
        ;
    s->resizer = 0;
}

/* --- stored for the next mount --- */

static int state_file(const struct server *s, const char *name, struct str *path)
{
    str_addf(path, "%s/%s", s->config.state, name);
    return path->failed ? -ENOMEM : 0;
}

static int keep_file(const struct server *s, const char *name, int from)
{
    CLEANUP_STR struct str path = STR_INIT;
    struct stat a, b;
    int error = state_file(s, name, &path);
    if (!error && fstat(from, &a) == 0 && stat(path.data, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
        return 0;
    if (!error)
        error = lseek(from, 0, SEEK_SET) < 0 ? -errno : 0;
    return error ? error : file_copy_atomic(from, path.data);
}

int server_resize(void *user, const char *catalog, int courier)
{
    struct server *s = user;
    CLEANUP_CLOSE int fd = open(catalog, O_RDONLY | O_CLOEXEC);
    if (!s->config.resize || !handover_has(FD_STATE))
        return -EINVAL;
    if (fd < 0)
        return -errno;
    await_resizer(s, true);
    int error = keep_file(s, "catalog", fd);
    return error ? error : start_resizer(s, courier);
}

static int keep_original(const struct server *s, const struct derived *d)
{
    CLEANUP_STR struct str path = STR_INIT;
    struct catalog *kept;
    int error = state_file(s, "catalog", &path);
    bool same = !error && catalog_open(path.data, &kept) == 0;
    if (same) {
        same = memcmp(catalog_versions(kept), catalog_versions(d->original), sizeof(struct digest)) == 0;
        catalog_close(kept);
    }
    return error || same ? error : derived_write_original(d, path.data);
}

int server_take_resized(struct server *s, int from, struct str *why)
{
    struct derived *d;
    await_resizer(s, false);
    int error = derived_open(from, &d);
    if (error)
        return error;
    bool ours = d->terms.side == (uint32_t)s->config.resize && d->terms.quality == (uint32_t)s->config.quality;
    error = ours ? server_check_acls(s, d->original, why) : -ESTALE;
    if (!error)
        error = keep_file(s, "resized", from);
    if (!error)
        error = keep_original(s, d);
    derived_close(d);
    if (!error)
        error = lseek(from, 0, SEEK_SET) < 0 ? -errno : copy_fill_derived(FD_RESIZED, from, UINT64_MAX - 1);
    if (!error)
        error = derived_open(FD_RESIZED, &d);
    if (error)
        return error;
    error = copy_derive(FD_CATALOG, d);
    derived_close(d);
    return error;
}
