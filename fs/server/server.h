/* What the files of dealfs-server share: what it has, and how its start fails. */
#ifndef FS_SERVER_SERVER_H
#define FS_SERVER_SERVER_H

#include "fs/attach/config.h"
#include "fs/catalog/derived.h"
#include "fs/control/control.h"
#include "fs/fuse/data.h"
#include "fs/fuse/gate.h"
#include "fs/wire/handover.h"
#include "fs/base/process.h"
#include "fs/fuse/session.h"
#include "fs/store/store.h"
#include "fs/world/peers.h"

#include <limits.h>

struct server {
    struct mount_config config;
    struct handover *handover;
    char host[HOST_NAME_MAX + 1];
    struct peers *peers;
    struct derived *derived; /* NULL: files are as the source has them */
    struct derived_counts remade;
    pid_t resizer;           /* while it waits for its first world, by the peers' thread; 0: none */
    struct catalog *catalog; /* these two by the peers' thread in a mount that waits for its first world */
    struct store *store;
    struct control *control;
    struct data_mount data;
    struct reads *reads;
    struct gate *gate; /* NULL: there was a catalog from the beginning */
    struct session *data_session, *control_session;
    struct process keeper;
    int ended;            /* eventfd: the data session has ended */
    atomic_int end_error; /* why, set before */
};

/* Ends the process: `what` could not be done on `on`. */
void server_refuse(struct server *s, const char *what, const char *on, int error) __attribute__((noreturn));

/* The catalog, the store over it, and the peers that both are for; each refuses when it fails. The catalog and the
 * store are opened later, by the peers' thread, where the mount waits for its first world. */
int server_data_threads(const struct server *s); /* that read /dev/fuse */
bool server_waits_for_catalog(const struct server *s);
void server_make_peers(struct server *s);
void server_open_store(struct server *s);
void server_start_peers(struct server *s);

/* While it waits: peers_config's `resizes`; and what comes of it, or was brought, becomes the mount's catalog. */
int server_resize(void *server, const char *catalog, int courier);
int server_take_resized(struct server *s, int from);

#endif
