/* The catalog of a server, the store over it, and the peers that both are for.
 *
 * Threads: main, and the peers' own, in which a courier's commands and the catalog that it brings arrive. */
#include "fs/mount/server.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/catalog/catalog.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool server_waits_for_catalog(const struct server *s)
{
    return s->config.wait_join && !(atomic_load(&s->handover->flags) & HANDOVER_FILLED);
}

static void catalog_path_in(const struct server *s, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/catalog", s->config.state);
}

static int open_store(struct server *s)
{
    const struct mount_config *c = &s->config;
    char detached[32];
    snprintf(detached, sizeof detached, "/proc/self/fd/%d", FD_RAM);
    const char *ram = c->ram_path ? c->ram_path : handover_has(FD_RAM) ? detached : NULL;
    struct store_config config = {
        .catalog = s->catalog,
        .source = FD_SOURCE,
        .tier[TIER_RAM] = {c->ram_bytes ? ram : NULL, c->ram_bytes},
        .tier[TIER_SSD] = {c->ssd_bytes ? c->ssd_path : NULL, c->ssd_bytes},
        .zstd_level = c->zstd_level,
        .source_threads = c->source_threads,
        .faults = getenv("DEALFS_SOURCE_FAULTS"),
    };
    return store_open(&config, &s->store);
}

/* Opens the catalog, the store over it, and gives both to whom they are for. `what` says what failed. */
static int open_all(struct server *s, const char *catalog, const char **what)
{
    *what = "the catalog";
    int error = catalog_open(catalog, &s->catalog);
    if (!error) {
        *what = "the store";
        error = open_store(s);
    }
    if (!error) {
        *what = "the extents";
        error = peers_fill(s->peers, s->catalog, s->store);
    }
    return error;
}

/* --- what couriers bring --- */

/* From another node. The keeper takes mounts away, this process never does. */
static void obey(void *user, enum world_command command, uint64_t token)
{
    struct server *s = user;
    if (command == WORLD_UMOUNT)
        atomic_fetch_or(&s->handover->flags, HANDOVER_LEAVE);
    else if (s->control)
        control_command(s->control, command, token);
}

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int copy_file(const char *from, const char *to)
{
    CLEANUP_CLOSE int fd = open(from, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return -errno;
    int error = file_write_atomic(AT_FDCWD, to, bytes, (size_t)st.st_size, 0600);
    munmap(bytes, (size_t)st.st_size);
    return error;
}

static int install_file(struct server *s, const char *from, char path[PATH_MAX])
{
    struct catalog *catalog;
    catalog_path_in(s, path);
    int error = catalog_open(from, &catalog);
    if (error)
        return error;
    catalog_close(catalog);
    return same_file(from, path) ? 0 : copy_file(from, path);
}

/* A courier brings the catalog that the mount waits for. */
static int install(void *user, const char *from)
{
    struct server *s = user;
    char path[PATH_MAX];
    const char *what = "the file";
    int error = install_file(s, from, path);
    if (!error)
        error = open_all(s, path, &what);
    if (!error) {
        what = "the control tree";
        error = control_fill(s->control, s->catalog, s->store);
    }
    if (error) {
        /* Half of it is open and in use by nobody knows whom: the next server begins anew. */
        log_error("open %s of the catalog that a courier brought: %s", what, strerror(-error));
        if (s->catalog)
            _exit(1);
        return error;
    }
    atomic_fetch_or(&s->handover->flags, HANDOVER_FILLED);
    gate_open(s->gate, s->catalog, s->store);
    log_info("the catalog is here: the mount serves");
    return 0;
}

/* --- start --- */

/* Nodes that differ in these read different bytes, or wait for each other for different times. */
static uint64_t options_hash(const struct mount_config *c)
{
    return hash64(&c->peer_timeout, sizeof c->peer_timeout, 0);
}

void server_make_peers(struct server *s)
{
    if (gethostname(s->host, sizeof s->host - 1))
        strcpy(s->host, "?");
    struct peers_config config = {
        .state = s->config.state,
        .id = s->config.id,
        .host = s->host,
        .options = options_hash(&s->config),
        .peer_timeout = s->config.peer_timeout,
        .mountpoint = s->config.mountpoint,
        .groups = (uint32_t)s->config.groups,
        .restarted = atomic_load(&s->handover->generation) > 1,
        .command = obey,
        .install = install,
        .user = s,
    };
    int error = peers_create(&config, &s->peers);
    if (error)
        server_refuse(s, "listen for couriers in", s->config.state, error);
}

void server_open_store(struct server *s)
{
    char path[PATH_MAX];
    const char *what;
    if (server_waits_for_catalog(s))
        return;
    catalog_path_in(s, path);
    int error = open_all(s, path, &what);
    if (error)
        server_refuse(s, "open", s->catalog ? what : path, error);
}

void server_start_peers(struct server *s)
{
    int error = peers_start(s->peers);
    if (error)
        server_refuse(s, "start", "the threads for couriers", error);
}
