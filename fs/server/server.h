/* Shared by the files of dealfs-server: its state, and how its start fails. */
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
    struct derived *derived; /* NULL: files are as in the source */
    struct derived_counts remade;
    pid_t resizer;           /* used by the peers' thread while it waits for its first world; 0: none */
    struct catalog *catalog; /* set by the peers' thread in a mount that waits for its first world */
    struct store *store;
    struct control *control;
    struct data_mount data;
    struct reads *reads;
    struct gate *gate; /* NULL: there was a catalog from the start */
    struct session *data_session, *control_session;
    struct process keeper;
    int ended;            /* eventfd: the data session has ended */
    atomic_int end_error; /* the reason, set before */
};

/* Ends the process: `what` could not be done on `on`. */
void server_refuse(struct server *s, const char *what, const char *on, int error) __attribute__((noreturn));

/* Opens the catalog, the store over it, and the peers; a failure ends the process. In a mount that waits for its first
 * world, the peers' thread opens catalog and store later. */
int server_data_threads(const struct server *s); /* number of threads that read /dev/fuse */
bool server_waits_for_catalog(const struct server *s);
void server_make_peers(struct server *s);
void server_open_store(struct server *s);
void server_start_peers(struct server *s);
/* When catalog, store and data session exist. */
void server_watch_modes(struct server *s);

/* For such a mount: peers_config's `resizes`; and its result, or one that a courier brought, becomes the mount's
 * catalog. */
int server_resize(void *server, const char *catalog, int courier);
int server_take_resized(struct server *s, int from, struct str *why);
/* May the mount show this catalog? -EPERM: other users may use the mount, and the catalog ignores ACLs. */
int server_check_acls(const struct server *s, const struct catalog *catalog, struct str *why);

#endif
