/* What a mount consists of while processes come and go: descriptors with fixed numbers, and shared memory.
 *
 * The command opens or makes them all and executes `dealfs-keeper STATE`; the keeper executes `dealfs-server STATE`,
 * and each starts the other again with the same descriptors when it dies. A number that a mount does not need is
 * closed. */
#ifndef FS_WIRE_HANDOVER_H
#define FS_WIRE_HANDOVER_H

#include "fs/base/version.h"
#include "fs/wire/endings.h"
#include "fs/wire/node.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum handover_fd {
    FD_DATA = 3,    /* /dev/fuse of the data mount */
    FD_CONTROL = 4, /* /dev/fuse of the control mount */
    FD_SHARED = 5,  /* memfd: struct handover; made by the first keeper where absent */
    FD_LOCK = 6,    /* STATE/lock, flock held: one mount for a state directory */
    FD_READY = 7, /* write end of a pipe to the command, until the mount is up. One line: "ready", or what went wrong */
    FD_LIFE = 8,  /* read end of a pipe; when it hangs up the keeper takes the mount away (run, -f) */
    FD_RAM = 9,   /* the root of the RAM tier's detached tmpfs; or its folder, flock held */
    FD_SOURCE = 10,  /* the source's root */
    FD_LOG = 11,     /* the log */
    FD_SSD = 12,     /* the SSD tier's folder, flock held: one mount for a shard */
    FD_CONFIG = 13,  /* sealed memory: struct mount_config as text. All that a keeper goes by */
    FD_CATALOG = 14, /* the mount's own copy of its catalog: fs/catalog/copy.h */
    FD_STATE = 15,   /* the state directory, flock held, which cleaners of temporary directories respect */
    FD_RESIZED = 16, /* sealed memory: what the catalog was derived of (fs/catalog/derived.h); none: it was not */
    /* The two mounts until the keeper has put them in their places, when a server answers; no server has these. */
    FD_DATA_MOUNT = 17,
    FD_CONTROL_MOUNT = 18,
    FD_MOUNTER = 19, /* a socket of dealfs-mounter, which stays root for them (fs/attach/mounter.h) */
    FD_PROGRAM = 20, /* the program of the last server that lived long enough (fs/keeper/program.h) */
    FD_TRIAL = 21,   /* that of the running server, while it is on trial */
    FD_LAST = FD_TRIAL
};

/* Exit statuses of the server that mean something to the keeper. */
enum { SERVER_ENDED = 0, SERVER_REFUSED = 2 /* it said why: where the mount is not up yet, do not restart */ };

enum handover_flags {
    HANDOVER_READY = 1,      /* a server answers */
    HANDOVER_ENDED = 2,      /* the data mount is gone */
    HANDOVER_REFUSED = 4,    /* as SERVER_REFUSED, for a keeper that is not the server's parent; of the last server */
    HANDOVER_LEAVE = 16,     /* the keeper is to take the mount away */
    HANDOVER_UP = 64,        /* the mounts are in their places, and the command knows */
    HANDOVER_ABANDONED = 32, /* the mount was taken away, and those who are inside wait in vain: the server is to end */
};

/* Staging that was begun, which the next server goes on with; unless it is what servers die of. */
struct staging {
    _Atomic uint64_t round;  /* 0: none, or it was stopped */
    _Atomic uint32_t deaths; /* of servers since */
};

enum { SERVER_PATIENCE_S = 30 }; /* of a keeper with a server that does nothing, and of requests with no server */

/* What a server does without after others died (fs/keeper/backoff.h). */
enum server_level { LEVEL_WHOLE, LEVEL_NO_TIERS, LEVEL_NO_PEERS /* nor tiers */ };

/* What the running server is (fs/keeper/program.h); `status` shows these names. */
enum program_state {
    PROGRAM_INSTALLED, /* the installed program */
    PROGRAM_ASKED,     /* an upgrade was requested, and has not begun */
    PROGRAM_TRIAL,     /* the installed program, which has not lived long enough yet */
    PROGRAM_PREVIOUS,  /* the previous one: a server of the installed program died in its trial */
    PROGRAM_REFUSED,   /* the previous one: the installed program is missing, or other users may write it */
};

/* What a server lets its keeper and those who ask for `status` know while it runs. */
struct pulse {
    _Atomic uint64_t beats; /* grows a few times per second while its readers take requests; 0: it does not serve yet */
    _Atomic uint64_t oldest; /* since when the request of the data mount waits that waits longest; 0: none does */
};

/* A thread of theirs hangs in the kernel. While there are this many no other server is started. */
enum { LINGERING_MOST = 4 };

/* The numbers that a keeper and a server leave to those after them. The server's user can write all of it: a keeper
 * that is root goes by none of it but to do what that user could do as well. The lanes (fs/wire/lane.h), with the
 * requests themselves, follow it in the same memory. Everything in it may be cut off between any two stores by a kill
 * -9. */
struct handover {
    uint32_t magic, form;
    uint64_t size;
    _Atomic uint32_t keeper, server; /* process ids; keeper: 0 while a server starts one */
    _Atomic uint32_t generation;     /* servers started so far: the running one's number, from 1 */
    _Atomic uint32_t flags;          /* enum handover_flags */
    _Atomic uint32_t failures;       /* servers in a row that died before they answered a request */
    _Atomic uint64_t started;        /* when the running one was: nanoseconds, monotonic */
    _Atomic uint64_t answered;       /* requests that those before it had answered */
    struct staging staging;
    struct pulse pulse;
    struct endings endings;
    _Atomic uint32_t standby;                   /* process id: fs/keeper/standby.h */
    _Atomic uint32_t level;                     /* enum server_level, of the running server */
    _Atomic uint32_t lingering[LINGERING_MOST]; /* killed servers that cannot end yet: process ids, then zeros */
    _Atomic uint64_t stranded;                  /* requests that the keeper answered with EIO because no server lived */
    _Atomic uint64_t stranded_at;               /* the last one: nanoseconds, of the day's clock */
    struct world_mark mark;
    _Atomic uint32_t program;   /* enum program_state */
    char release[VERSION_TEXT]; /* of the server that serves, or did last: version.h */
};

struct feed;
struct lane;

enum { COUNTS_ROOM = 64 << 10 };

/* Map FD_SHARED, after making and laying it out when `create` is set and the descriptor is closed. -ESTALE: of another
 * form (a server of another version). */
int handover_open(bool create, struct handover **handover);
void handover_close(struct handover *handover);
unsigned handover_lingering(const struct handover *handover); /* how many */
void *handover_counts(struct handover *handover); /* COUNTS_ROOM bytes, zeros at first: what the store has counted */
struct feed *handover_feed(struct handover *handover); /* fs/wire/feed.h */
struct lane *handover_data(struct handover *handover);
struct lane *handover_control(struct handover *handover);
uint64_t handover_answered(struct handover *handover); /* requests, by all servers so far */

/* The binary that stands beside this one, or in ../libexec/dealfs seen from it: dealfs-keeper, dealfs-server. Returns 0
 * or -ENOENT. */
int handover_find_program(const char *name, char *path, unsigned long n);
/* Put a close-on-exec placeholder on each number of the list above that is closed, so that nothing else ever gets it.
 */
int handover_reserve(void);
bool handover_has(int fd);  /* open, and not a placeholder */
void handover_drop(int fd); /* close it; a placeholder takes its number */
/* A line for the process that waits for the mount to come up. False: nobody does, or does any more. */
bool handover_tell(const char *line);
/* All but the log and the mounter, for a child of the keeper: so that it cannot keep alive what it takes away. One that
 * `puts_up` the mounts keeps these and FD_READY. */
void handover_let_go(bool puts_up);
/* Close what is above FD_LAST, for a child that is about to execute a program with the descriptors of a mount. */
void handover_close_others(void);

#endif
