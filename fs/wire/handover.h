/* What a mount consists of while processes come and go: descriptors with fixed numbers, and shared memory.
 *
 * The command opens or creates all of them and executes `dealfs-keeper STATE`; the keeper executes `dealfs-server
 * STATE`. Each of the two restarts the other with the same descriptors when it dies. Numbers that a mount does not need
 * are closed. */
#ifndef FS_WIRE_HANDOVER_H
#define FS_WIRE_HANDOVER_H

#include "fs/base/version.h"
#include "fs/wire/endings.h"
#include "fs/wire/node.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum handover_fd {
    FD_DATA = 3,     /* /dev/fuse of the data mount */
    FD_CONTROL = 4,  /* /dev/fuse of the control mount */
    FD_SHARED = 5,   /* memfd: struct handover; the first keeper creates it */
    FD_LOCK = 6,     /* STATE/lock, flock held: one mount per state directory */
    FD_READY = 7,    /* write end of a pipe to the command, until the mount is up. One line: "ready", or the error */
    FD_LIFE = 8,     /* read end of a pipe; when it hangs up, the keeper unmounts (run, -f) */
    FD_RAM = 9,      /* the root of the RAM tier's detached tmpfs; or its folder, flock held */
    FD_SOURCE = 10,  /* the source's root */
    FD_LOG = 11,     /* the log */
    FD_SSD = 12,     /* the SSD tier's folder, flock held: one mount per shard */
    FD_CONFIG = 13,  /* sealed memory: struct mount_config as text; the keeper's only configuration */
    FD_CATALOG = 14, /* the mount's own copy of its catalog: fs/catalog/copy.h */
    FD_STATE = 15,   /* the state directory, flock held, which cleaners of temporary directories respect */
    FD_RESIZED = 16, /* sealed memory: the original of a derived catalog (fs/catalog/derived.h); only with resize= */
    /* The two mounts until a server answers and the keeper attaches them to the tree; servers do not have these. */
    FD_DATA_MOUNT = 17,
    FD_CONTROL_MOUNT = 18,
    FD_MOUNTER = 19, /* a socket to dealfs-mounter, which stays root for them (fs/attach/mounter.h) */
    FD_PROGRAM = 20, /* the program of the last server that lived long enough (fs/keeper/program.h) */
    FD_TRIAL = 21,   /* the program of the running server, while it is on trial */
    FD_LAST = FD_TRIAL
};

/* Exit statuses of the server with a meaning for the keeper. */
enum { SERVER_ENDED = 0, SERVER_REFUSED = 2 /* it printed why; if the mount is not up yet, do not restart it */ };

enum handover_flags {
    HANDOVER_READY = 1,      /* a server answers */
    HANDOVER_ENDED = 2,      /* the data mount was removed */
    HANDOVER_REFUSED = 4,    /* like SERVER_REFUSED, for a keeper that is not the server's parent; of the last server */
    HANDOVER_LEAVE = 16,     /* tells the keeper to unmount */
    HANDOVER_UP = 64,        /* the mounts are attached */
    HANDOVER_KILLED = 128,   /* the last server did not die by itself, as far as anybody saw */
    HANDOVER_ABANDONED = 32, /* the mount was unmounted while processes inside still wait: the server must end */
};

/* Staging in progress, which the next server resumes, unless it is what servers die of. */
struct staging {
    _Atomic uint64_t round;  /* 0: none, or it was stopped */
    _Atomic uint32_t deaths; /* of servers since it began */
};

/* how long the keeper waits for a server that does nothing, and requests wait without a server */
enum { SERVER_PATIENCE_S = 30 };

/* What a server does not use after others have died (fs/keeper/backoff.h). */
enum server_level { LEVEL_WHOLE, LEVEL_NO_TIERS, LEVEL_NO_PEERS /* also without tiers */ };

/* Which program the running server is (fs/keeper/program.h); `status` shows these names. */
enum program_state {
    PROGRAM_INSTALLED, /* the installed program */
    PROGRAM_ASKED,     /* an upgrade was requested, and has not begun */
    PROGRAM_TRIAL,     /* the installed program, on trial */
    PROGRAM_PREVIOUS,  /* the previous one: a server of the installed program died on trial */
    PROGRAM_REFUSED,   /* the previous one: the installed program is missing, or other users may write it */
};

/* State of a running server, for its keeper and for `status`. */
struct pulse {
    /* grows several times per second while its readers take requests; 0: it does not serve yet */
    _Atomic uint64_t beats;
    _Atomic uint64_t oldest; /* since when the longest waiting request of the data mount waits; 0: none waits */
};

/* Killed servers with a thread that hangs in the kernel. With this many, no other server is started. */
enum { LINGERING_MOST = 4 };

/* State that keepers and servers leave to their successors. The server's user can write all of it, so a keeper that is
 * root uses it only for what that user could do as well. The lanes (fs/wire/lane.h), with the requests themselves,
 * follow in the same memory. A kill -9 can interrupt any change between two stores. */
struct handover {
    uint32_t magic, form;
    uint64_t size;
    _Atomic uint32_t keeper, server; /* process ids; keeper: 0 while a server starts one */
    _Atomic uint32_t generation;     /* number of servers started; that of the running one, from 1 */
    _Atomic uint32_t flags;          /* enum handover_flags */
    _Atomic uint32_t failures;       /* consecutive servers that died before they answered a request */
    _Atomic uint64_t started;        /* start time of the running server: nanoseconds, monotonic */
    _Atomic uint64_t answered;       /* requests that earlier servers had answered */
    struct staging staging;
    struct pulse pulse;
    struct endings endings;
    _Atomic uint32_t standby;                   /* process id: fs/keeper/standby.h */
    _Atomic uint32_t level;                     /* enum server_level of the running server */
    _Atomic uint32_t lingering[LINGERING_MOST]; /* process ids of killed servers that cannot end yet, then zeros */
    _Atomic uint64_t stranded;                  /* requests that the keeper answered with EIO because no server lived */
    _Atomic uint64_t stranded_at;               /* time of the last one: nanoseconds, real time */
    struct world_mark mark;
    _Atomic uint32_t program;   /* enum program_state */
    char release[VERSION_TEXT]; /* version of the last server that served: version.h */
};

struct feed;
struct lane;

enum { COUNTS_ROOM = 64 << 10 };

/* Map FD_SHARED. With `create`, create and initialise it if the descriptor is closed. -ESTALE: another form (a server
 * of another version). */
int handover_open(bool create, struct handover **handover);
void handover_close(struct handover *handover);
unsigned handover_lingering(const struct handover *handover); /* number of lingering servers */
void *handover_counts(struct handover *handover);      /* COUNTS_ROOM bytes, zeros at first: the store's counters */
struct feed *handover_feed(struct handover *handover); /* fs/wire/feed.h */
struct lane *handover_data(struct handover *handover);
struct lane *handover_control(struct handover *handover);
uint64_t handover_answered(struct handover *handover); /* requests answered by all servers so far */

/* Find a program, such as dealfs-keeper, next to this one, or in ../libexec/dealfs relative to it. Returns 0 or
 * -ENOENT. */
int handover_find_program(const char *name, char *path, unsigned long n);
/* Put a close-on-exec placeholder on each closed number of the list above, so that nothing else gets it. */
int handover_reserve(void);
bool handover_has(int fd);  /* open, and not a placeholder */
void handover_drop(int fd); /* close it; a placeholder takes its number */
/* Send a line to the process that waits for the mount to come up. False: nobody waits (any more). */
bool handover_tell(const char *line);
/* Close all but the log and the mounter, in a child of the keeper, so that it does not keep alive what it unmounts. A
 * child that `puts_up` the mounts keeps these and FD_READY. */
void handover_let_go(bool puts_up);
/* Close all above FD_LAST, in a child that will execute a program with the descriptors of a mount. */
void handover_close_others(void);

#endif
