/* The crawl: threads visit the directories of a source and build a tree of what they find. */
#ifndef FS_CATALOG_CRAWL_H
#define FS_CATALOG_CRAWL_H

#include "fs/base/str.h"
#include "fs/catalog/scan-options.h"
#include "fs/catalog/tree.h"

struct crawl_worker;

enum { SETTLE_NS = 2000000000 }; /* timestamps are coarse: a later change may have the same times */

/* Work for any thread. After a stop, remaining jobs also run, to release what they hold. */
struct crawl_job {
    struct crawl_job *next; /* next in the queue */
    void (*run)(struct crawl_worker *w, struct crawl_job *job);
};

struct crawl {
    /* constant while threads run */
    int source;                /* descriptor of the source's root */
    const struct catalog *old; /* NULL: there is no catalog whose entries may be reused */
    int64_t settled;           /* changes in `old` at this time or later are not trusted */
    bool looks;                /* look at each file of a directory whose names are reused */
    uint8_t *looked;           /* per file: another node has looked at it; NULL: none */
    uint64_t shared;           /* number of these files */
    bool reuses;               /* names and modes of `old`: it respects ACLs if this scan does, and only then */
    bool insists;              /* bypass the caches of network filesystems when looking at files */
    bool ignores_ctime;
    bool acls;       /* modes respect ACLs */
    int64_t scanned; /* start of this scan */
    uint64_t delay;  /* of each look, for tests: milliseconds */
    struct attributes *attributes;
    void (*visit)(struct crawl_worker *w, struct branch *n);

    pthread_mutex_t lock;
    pthread_cond_t work; /* signals: something was queued, or all is done, or the crawl stops */
    pthread_cond_t done; /* signals: all is done, or the crawl stops */
    /* guarded by lock */
    struct branch *branches; /* stack of directories to visit */
    struct crawl_job *jobs;  /* stack of entries to look at */
    uint64_t queued;         /* branches on the stack */
    uint64_t outstanding;    /* branches and jobs that are queued or in progress */
    unsigned threads, waiting;
    int error; /* the first failure, also in words */
    struct str why;

    atomic_bool stop;
    _Atomic uint64_t without_acls; /* a filesystem, see state_limit_mode */
    atomic_bool changed;           /* something differs from `old` */
    atomic_int spare_fds;          /* number of directories that may stay open for their children */
    atomic_uint_fast64_t directories, files, bytes, reused, rewritten;
};

/* Data of one thread. */
enum { WORKER_BUFFER = 32 << 10 };
struct crawl_worker {
    struct crawl *crawl;
    struct attribute_memory memory;
    _Alignas(8) char buffer[WORKER_BUFFER]; /* for struct dirent64 */
};

/* Fill the tree from its root. The tree belongs to the caller, also after an error, which `why` explains. */
int crawl_run(struct crawl *c, struct branch *root, const struct scan_options *options, struct str *why);
struct scan_progress crawl_progress(struct crawl *c); /* any thread */

/* For threads that visit: */
void crawl_push_children(struct crawl *c, struct branch *n);
void crawl_push_job(struct crawl *c, struct crawl_job *job);
void crawl_fail(struct crawl *c, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* crawl-branch.c. */
bool branch_is_fatal(int error); /* does the error end the whole scan? */
void branch_fail(struct crawl *c, const struct branch *n, int error);
void branch_unreadable(struct crawl *c, struct branch *n, int error); /* partly or completely: reported and counted */
int branch_open(struct crawl *c, const struct branch *n, int flags);
/* by its path from the source's root */
int branch_open_path(const struct crawl *c, const struct branch *n, int flags);
/* Keep the directory open for its children, if there are enough descriptors; owns fd. */
void branch_keep(struct crawl *c, struct branch *n, int fd);
void branch_release_parent(struct crawl *c, struct branch *n); /* it no longer needs the parent's descriptor */
void branch_leave(struct crawl *c, struct branch *n);          /* undoes what visit.c has reused */

/* visit.c: handle one directory, as far as possible without waiting for other threads. */
void visit_branch(struct crawl_worker *w, struct branch *n);

/* crawl-listing.c: list a directory; owns fd. */
void listing_start(struct crawl_worker *w, struct branch *n, int fd);

/* recheck.c: look at the files of a directory whose names are reused; owns fd. */
bool recheck_is_due(const struct crawl *c, const struct branch *n);
void recheck_start(struct crawl_worker *w, struct branch *n, int fd);

/* look.c: see state_look. The mode does not respect ACLs yet. */
int look(const struct crawl *c, int fd, const char *name, int flags, struct stat *st, uint32_t *object);
uint64_t look_delay(void);                                                   /* from the environment, for tests */
void look_limit(struct crawl *c, int fd, const char *name, struct stat *st); /* state_limit_mode, if needed */
struct file_state look_state(const struct crawl *c, const struct stat *st, uint32_t object);
/* What the catalog says of a file: its state, its mode also in `st`, and the version of its bytes. `old`: the file's
 * number in the previous catalog, or NULL. */
struct look_result {
    struct file_state state;
    int64_t version;
};
struct look_result look_judge(struct crawl *c, int fd, const char *name, const uint32_t *old, uint32_t object,
                              struct stat *st);

/* portion.c: files that other nodes have looked at and found unchanged, by number; NULL: none. The caller frees it. */
uint8_t *portions_read(int fd, const struct catalog *old);

#endif
