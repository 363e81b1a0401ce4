/* Threads: the session's threads answer or park requests; one thread opens the gate. The lock guards `parked` until
 * `open` is set. A request is parked or answered, never both. */
#include "fs/fuse/gate.h"

#include "fs/base/cleanup.h"
#include "fs/fuse/reply.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

enum parked_op { PARKED_LOOKUP, PARKED_GETATTR, PARKED_READLINK, PARKED_READ, PARKED_READDIR, PARKED_READDIRPLUS };

struct gate_parked {
    TAILQ_ENTRY(gate_parked) next;
    enum parked_op op;
    fuse_req_t req;
    fuse_ino_t ino;
    size_t size;
    off_t offset;
    const char *name; /* of a lookup */
    char kept[];      /* the same, once the request is parked */
};

struct gate {
    struct data_mount mount; /* first: userdata of the operations in `below` */
    struct gate_config config;
    struct timespec made;
    atomic_bool open; /* set when `mount` is complete */
    pthread_mutex_t lock;
    TAILQ_HEAD(, gate_parked) parked; /* guarded by lock */
};

static struct gate *gate_of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

static bool is_open(const struct gate *g)
{
    return atomic_load_explicit(&g->open, memory_order_acquire);
}

/* --- parked requests --- */

static void parked_answer(const struct fuse_lowlevel_ops *ops, const struct gate_parked *p)
{
    switch (p->op) {
    case PARKED_LOOKUP:
        ops->lookup(p->req, p->ino, p->name);
        break;
    case PARKED_GETATTR:
        ops->getattr(p->req, p->ino, NULL);
        break;
    case PARKED_READLINK:
        ops->readlink(p->req, p->ino);
        break;
    case PARKED_READ:
        ops->read(p->req, p->ino, p->size, p->offset, NULL);
        break;
    case PARKED_READDIR:
        ops->readdir(p->req, p->ino, p->size, p->offset, NULL);
        break;
    case PARKED_READDIRPLUS:
        ops->readdirplus(p->req, p->ino, p->size, p->offset, NULL);
        break;
    }
}

static void park(const struct gate_parked *like)
{
    struct gate *g = gate_of(like->req);
    size_t n = like->name ? strlen(like->name) + 1 : 0;
    struct gate_parked *p = malloc(sizeof *p + n);
    if (!p) {
        fuse_reply_err(like->req, ENOMEM);
        return;
    }
    memcpy(p, like, sizeof *p);
    p->name = n ? memcpy(p->kept, like->name, n) : NULL;
    pthread_mutex_lock(&g->lock);
    bool late = is_open(g);
    if (!late)
        TAILQ_INSERT_TAIL(&g->parked, p, next);
    pthread_mutex_unlock(&g->lock);
    if (late) {
        parked_answer(g->config.below, p);
        free(p);
    }
}

static void answer_or_park(const struct gate_parked *p)
{
    const struct gate *g = gate_of(p->req);
    if (is_open(g))
        parked_answer(g->config.below, p);
    else
        park(p);
}

/* --- what is known without a catalog: the root, and the mountpoint of the control mount --- */

static bool is_control(const struct gate *g, fuse_ino_t ino)
{
    return ino == data_control_ino(&g->mount);
}

static void known_stat(const struct gate *g, fuse_ino_t ino, struct stat *st)
{
    *st = (struct stat){
        .st_ino = ino,
        .st_mode = S_IFDIR | 0555,
        .st_nlink = 2,
        .st_uid = g->config.uid,
        .st_gid = g->config.gid,
        .st_mtim = g->made,
        .st_ctim = g->made,
        .st_atim = g->made,
    };
    if (is_control(g, ino))
        data_control_stat(&g->mount, st);
}

static void gate_init(void *user, struct fuse_conn_info *conn)
{
    const struct gate *g = user;
    g->config.below->init(user, conn);
}

static void gate_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    const struct gate *g = gate_of(req);
    if (!is_open(g) && parent == CATALOG_ROOT && strcmp(name, DATA_CONTROL_NAME) == 0) {
        struct fuse_entry_param e = {.ino = data_control_ino(&g->mount), .entry_timeout = DATA_FOREVER};
        known_stat(g, e.ino, &e.attr);
        fuse_reply_entry(req, &e);
    } else {
        answer_or_park(&(struct gate_parked){.op = PARKED_LOOKUP, .req = req, .ino = parent, .name = name});
    }
}

static void gate_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)fi;
    const struct gate *g = gate_of(req);
    if (!is_open(g) && (ino == CATALOG_ROOT || is_control(g, ino))) {
        struct stat st;
        known_stat(g, ino, &st);
        fuse_reply_attr(req, &st, 0);
    } else {
        answer_or_park(&(struct gate_parked){.op = PARKED_GETATTR, .req = req, .ino = ino});
    }
}

static void gate_readlink(fuse_req_t req, fuse_ino_t ino)
{
    const struct gate *g = gate_of(req);
    if (is_control(g, ino))
        g->config.below->readlink(req, ino);
    else
        answer_or_park(&(struct gate_parked){.op = PARKED_READLINK, .req = req, .ino = ino});
}

static void gate_open_file(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    gate_of(req)->config.below->open(req, ino, fi);
}

/* The flags are only available if the request was not parked. */
static void gate_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
    const struct gate *g = gate_of(req);
    if (is_open(g))
        g->config.below->read(req, ino, size, offset, fi);
    else
        park(&(struct gate_parked){.op = PARKED_READ, .req = req, .ino = ino, .size = size, .offset = offset});
}

static void gate_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
    (void)fi;
    answer_or_park(&(struct gate_parked){.op = PARKED_READDIR, .req = req, .ino = ino, .size = size, .offset = offset});
}

static void gate_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
    (void)fi;
    answer_or_park(
        &(struct gate_parked){.op = PARKED_READDIRPLUS, .req = req, .ino = ino, .size = size, .offset = offset});
}

static void gate_statfs(fuse_req_t req, fuse_ino_t ino)
{
    struct gate *g = gate_of(req);
    if (is_open(g))
        g->config.below->statfs(req, ino);
    else
        fuse_reply_statfs(req, &(struct statvfs){.f_bsize = 4096, .f_frsize = 4096, .f_namemax = 255});
}

const struct fuse_lowlevel_ops gate_ops = {
    .init = gate_init,
    .lookup = gate_lookup,
    .getattr = gate_getattr,
    .readlink = gate_readlink,
    .open = gate_open_file,
    .opendir = gate_open_file,
    .read = gate_read,
    .readdir = gate_readdir,
    .readdirplus = gate_readdirplus,
    .statfs = gate_statfs,
    .ioctl = reply_no_ioctl,
};

/* --- interface --- */

int gate_create(const struct gate_config *config, struct gate **gate)
{
    struct gate *g = calloc(1, sizeof *g);
    if (!g)
        return -ENOMEM;
    g->config = *config;
    g->mount = *config->mount;
    clock_gettime(CLOCK_REALTIME, &g->made);
    pthread_mutex_init(&g->lock, NULL);
    TAILQ_INIT(&g->parked);
    *gate = g;
    return 0;
}

static struct gate_parked *parked_take(struct gate *g)
{
    LOCK_SCOPE(&g->lock);
    struct gate_parked *p = TAILQ_FIRST(&g->parked);
    if (p)
        TAILQ_REMOVE(&g->parked, p, next);
    return p;
}

void gate_open(struct gate *g, const struct catalog *catalog, struct store *store)
{
    g->mount.catalog = catalog;
    g->mount.store = store;
    pthread_mutex_lock(&g->lock);
    atomic_store_explicit(&g->open, true, memory_order_release);
    pthread_mutex_unlock(&g->lock);
    for (struct gate_parked *p; (p = parked_take(g)); free(p))
        parked_answer(g->config.below, p);
}

void gate_close(struct gate *g)
{
    for (struct gate_parked *p; g && (p = parked_take(g)); free(p))
        fuse_reply_err(p->req, ENOTCONN);
}

void gate_destroy(struct gate *g)
{
    if (!g)
        return;
    pthread_mutex_destroy(&g->lock);
    free(g);
}
