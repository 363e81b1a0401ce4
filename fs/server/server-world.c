/* The server's catalog, the store over it, and the peers.
 *
 * Threads: main; and the peers' own, in which a courier's commands and catalog arrive. */
#include "fs/server/server.h"

#include "fs/attach/attach.h"
#include "fs/base/beneath.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/catalog/catalog.h"
#include "fs/catalog/copy.h"
#include "fs/resize/remake.h"
#include "fs/wire/feed.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool server_waits_for_catalog(const struct server *s)
{
    return s->config.wait_join && !file_is_sealed(FD_CATALOG);
}

/* The folder that the mount has locked since its start, wherever its path leads now. */
static struct tier_config ssd_config(const struct mount_config *c)
{
    struct tier_config ssd = {.directory = c->ssd_bytes ? c->ssd_path : NULL, .capacity = c->ssd_bytes};
    struct stat st;
    if (handover_has(FD_SSD) && fstat(FD_SSD, &st) == 0) {
        ssd.device = st.st_dev;
        ssd.inode = st.st_ino;
    }
    return ssd;
}

/* The path may lead anywhere by now, even to a user's folder: it is only accepted if it is the same directory. */
static int reopen_source(void *user)
{
    const struct mount_config *c = &((struct server *)user)->config;
    CLEANUP_STR struct str identity = STR_INIT;
    CLEANUP_CLOSE int top = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (top < 0)
        return -errno;
    if (!c->source_identity || !c->source[1])
        return -EOPNOTSUPP;
    CLEANUP_CLOSE int fd = beneath_open(top, c->source + 1, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = fd < 0 ? fd : attach_identify(fd, &identity);
    if (!error && strcmp(identity.data, c->source_identity) != 0)
        error = -EXDEV;
    if (!error && dup2(fd, FD_SOURCE) < 0)
        error = -errno;
    return error;
}

/* For a mount with resize=: a layer over the source. */
static int put_remaker(void *user, struct layer *below, struct layer **layer)
{
    struct server *s = user;
    char program[PATH_MAX];
    int error = handover_find_program("dealfs-resizer", program, sizeof program);
    return error ? error : remake_create(s->derived, program, &s->remade, below, layer);
}

static int open_store(struct server *s)
{
    const struct mount_config *c = &s->config;
    char detached[32];
    snprintf(detached, sizeof detached, "/proc/self/fd/%d", FD_RAM);
    const char *ram = c->ram_path ? c->ram_path : handover_has(FD_RAM) ? detached : NULL;
    _Static_assert((int)STORE_COUNTS <= (int)COUNTS_ROOM, "the store's counts have room");
    struct store_config config = {
        .catalog = s->catalog,
        .source = FD_SOURCE,
        .source_reopen = reopen_source,
        .source_user = s,
        .original = s->derived ? s->derived->original : NULL,
        .over_source = s->derived ? put_remaker : NULL,
        .tier[TIER_RAM] = {.directory = c->ram_bytes ? ram : NULL,
                           .capacity = c->ram_bytes,
                           .verify_once = c->verify_once},
        .tier[TIER_SSD] = ssd_config(c),
        .zstd_level = c->zstd_level,
        .admits_others = c->allow_other,
        .source_threads = c->source_threads,
        .source_rate = c->source_rate,
        .disk_callers = server_data_threads(s) - 2, /* the last two stay free for cached data */
        .faults = getenv("DEALFS_SOURCE_FAULTS"),
        .counts = handover_counts(s->handover),
        .served = &handover_feed(s->handover)->served,
    };
    for (int i = 0; i < TIERS; i++)
        config.tier[i].shut = atomic_load(&s->handover->level) >= LEVEL_NO_TIERS;
    return store_open(&config, &s->store);
}

/* A mode was reduced in the source: the kernel enforces what it caches. */
static void drop_mode(void *user, uint64_t ino)
{
    session_drop_attributes(((struct server *)user)->data_session, ino);
}

static unsigned count_nodes(void *user)
{
    struct world_view view;
    if (peers_view(((struct server *)user)->peers, &view))
        return 1;
    unsigned nodes = view.nodes;
    peers_view_release(&view);
    return nodes;
}

void server_watch_modes(struct server *s)
{
    int error = store_watch_modes(s->store, &(struct store_watch){drop_mode, count_nodes, s});
    if (error) /* files are still looked at when they are read */
        log_error("start the thread that looks at the source's directories: %s", strerror(-error));
}

/* Opens the catalog and the store over it, and passes them on. `what`: what failed. */
static int open_all(struct server *s, const char **what)
{
    *what = "the catalog";
    int error = catalog_open_fd(FD_CATALOG, &s->catalog);
    if (!error && handover_has(FD_RESIZED)) {
        *what = "the list of resized images";
        error = derived_open(FD_RESIZED, &s->derived);
    }
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

/* --- from couriers --- */

/* A command of another node. The keeper unmounts, never this process. */
static void obey_world(void *user, enum world_command command, uint64_t token)
{
    struct server *s = user;
    if (command == WORLD_UMOUNT)
        atomic_fetch_or(&s->handover->flags, HANDOVER_LEAVE);
    else if (s->control)
        control_command(s->control, command, token);
}

static void tell_joined(void *user)
{
    struct server *s = user;
    if (s->control)
        control_joined(s->control);
}

static ssize_t give_blob(void *user, const struct blob_question *question, void *to, size_t room, uint64_t *length)
{
    struct server *s = user;
    return s->control ? control_blob(s->control, question, to, room, length) : -ENOENT;
}

/* For the next mount of this source, which is then quick. This mount does not need the file. */
static void keep_catalog(struct server *s, int from)
{
    CLEANUP_STR struct str path = STR_INIT;
    struct stat a, b;
    str_addf(&path, "%s/catalog", s->config.state);
    if (path.failed ||
        (fstat(from, &a) == 0 && stat(path.data, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino))
        return;
    int error = lseek(from, 0, SEEK_SET) < 0 ? -errno : file_copy_atomic(from, path.data);
    if (error)
        log_warning("save the catalog in %s: %s", s->config.state, strerror(-error));
}

int server_check_acls(const struct server *s, const struct catalog *catalog, struct str *why)
{
    if (!s->config.allow_other || catalog_notes(catalog)->acls)
        return 0;
    return str_fail(why, -EPERM,
                    "the first node's scan ignored ACLs, which matter with allow_other: mount all nodes with "
                    "allow_other, or none");
}

/* The copy cannot be changed any more: so check before. */
static int take_catalog(struct server *s, int from, struct str *why)
{
    struct catalog *catalog;
    int error = catalog_open_fd(from, &catalog);
    if (error)
        return error;
    error = server_check_acls(s, catalog, why);
    catalog_close(catalog);
    if (!error && lseek(from, 0, SEEK_SET) < 0)
        error = -errno;
    return error ? error : copy_fill(FD_CATALOG, from, UINT64_MAX - 1, NULL);
}

/* A courier brings the catalog that the mount waits for. */
static int install_catalog(void *user, const char *from, struct str *why)
{
    struct server *s = user;
    const char *what = "the file";
    CLEANUP_CLOSE int fd = open(from, O_RDONLY | O_CLOEXEC);
    int error = fd < 0 ? -errno : s->config.resize ? server_take_resized(s, fd, why) : take_catalog(s, fd, why);
    if (!error)
        error = open_all(s, &what);
    if (!error) {
        what = "the control tree";
        error = control_fill(s->control, s->catalog, s->store, s->derived);
    }
    if (error) {
        /* some of it is in use by other threads already: let the next server start from scratch */
        log_error("install the catalog that a courier brought: open %s: %s", what,
                  why->length ? why->data : strerror(-error));
        if (s->catalog)
            _exit(1);
        return error;
    }
    if (!s->config.resize)
        keep_catalog(s, fd);
    server_watch_modes(s);
    gate_open(s->gate, s->catalog, s->store);
    log_info("the catalog has arrived: the mount is ready");
    return 0;
}

/* --- start --- */

/* Nodes with different values would use different timeouts, or different rules for layouts. */
static uint64_t options_hash(const struct mount_config *c)
{
    const uint64_t alike[] = {c->peer_timeout, c->exchange};
    return hash64(alike, sizeof alike, 0);
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
        .exchange = s->config.exchange,
        .exchange_rate = s->config.exchange_rate,
        .mountpoint = s->config.mountpoint,
        .groups = (uint32_t)s->config.groups,
        .restarted = atomic_load(&s->handover->generation) > 1,
        .mark = &s->handover->mark,
        .command = obey_world,
        .joined = tell_joined,
        .blob = give_blob,
        .install = install_catalog,
        .resize = (uint32_t)s->config.resize,
        .quality = (uint32_t)s->config.quality,
        .resizes = server_resize,
        .user = s,
    };
    int error = peers_create(&config, &s->peers);
    if (error)
        server_refuse(s, "listen for couriers in", s->config.state, error);
}

void server_open_store(struct server *s)
{
    const char *what;
    if (server_waits_for_catalog(s))
        return;
    int error = open_all(s, &what);
    if (error)
        server_refuse(s, "open", what, error);
}

void server_start_peers(struct server *s)
{
    int error = peers_start(s->peers);
    if (error)
        server_refuse(s, "start", "the threads for couriers", error);
}
