/* The crawl: threads that visit the directories of a source and build a tree of what they find. */
#ifndef FS_CATALOG_CRAWL_H
#define FS_CATALOG_CRAWL_H

#include "fs/base/str.h"
#include "fs/catalog/scan-options.h"
#include "fs/catalog/tree.h"

struct crawl_worker;

enum { SETTLE_NS = 2000000000 }; /* clocks and time stamps are coarse: a later change may have the same times */

/* Work for any thread; when the crawl stops, what is left also runs, and gives back what it holds. */
struct crawl_job {
    struct crawl_job *next; /* in the queue */
    void (*run)(struct crawl_worker *w, struct crawl_job *job);
};

struct crawl {
    /* constant while threads run */
    int source;                /* the source's root directory */
    const struct catalog *old; /* NULL: none whose entries may be taken over */
    int64_t settled;           /* what of old changed at this time or later is not trusted */
    bool looks;                /* at each file of a directory whose names are taken over */
    uint8_t *looked;           /* by file: not at these, another node has; NULL: none */
    uint64_t shared;           /* how many these are */
    bool insists;              /* on what files are: what a network file system remembers of them may be what is kept */
    bool ignores_ctime;
    int64_t scanned; /* when this scan began */
    uint64_t delay;  /* of every look, for tests: milliseconds */
    struct attributes *attributes;
    void (*visit)(struct crawl_worker *w, struct branch *n);

    pthread_mutex_t lock;
    pthread_cond_t work; /* something was queued, or all is done, or the crawl stops */
    pthread_cond_t done; /* all is done, or the crawl stops */
    /* under lock */
    struct branch *branches; /* stack of directories to visit */
    struct crawl_job *jobs;  /* stack of entries to look at */
    uint64_t queued;         /* branches on the stack */
    uint64_t outstanding;    /* branches and jobs queued or in progress */
    unsigned threads, waiting;
    int error; /* why it stopped: the first, and in words */
    struct str why;

    atomic_bool stop;
    atomic_bool changed;  /* something is not as in old */
    atomic_int spare_fds; /* directories that may be held open for their children */
    atomic_uint_fast64_t directories, files, bytes, reused, rewritten;
};

/* What one thread has for itself. */
enum { WORKER_BUFFER = 32 << 10 };
struct crawl_worker {
    struct crawl *crawl;
    struct attribute_memory memory;
    _Alignas(8) char buffer[WORKER_BUFFER]; /* for struct dirent64 */
};

/* Fill the tree from its root on. The tree is the caller's, also after an error, which `why` explains. */
int crawl_run(struct crawl *c, struct branch *root, const struct scan_options *options, struct str *why);
struct scan_progress crawl_progress(struct crawl *c); /* any thread */

/* For those who visit. */
void crawl_push_children(struct crawl *c, struct branch *n);
void crawl_push_job(struct crawl *c, struct crawl_job *job);
void crawl_fail(struct crawl *c, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* crawl-branch.c. */
bool branch_is_fatal(int error); /* to the whole scan */
void branch_fail(struct crawl *c, const struct branch *n, int error);
void branch_unreadable(struct crawl *c, struct branch *n, int error); /* in part or as a whole: said, counted */
int branch_open(struct crawl *c, const struct branch *n, int flags);
int branch_open_path(const struct crawl *c, const struct branch *n, int flags); /* from the source's root down */
/* Hold the directory open for its children if that is affordable; takes fd over. */
void branch_keep(struct crawl *c, struct branch *n, int fd);
void branch_release_parent(struct crawl *c, struct branch *n); /* which it needs open no more */
void branch_leave(struct crawl *c, struct branch *n);          /* undoes what visit.c took over from before */

/* visit.c: one directory, as far as it can be done at once. */
void visit_branch(struct crawl_worker *w, struct branch *n);

/* crawl-listing.c: read a directory; takes fd over. */
void listing_start(struct crawl_worker *w, struct branch *n, int fd);

/* recheck.c: look at the files of a directory whose names were taken over; takes fd over. */
bool recheck_is_due(const struct crawl *c, const struct branch *n);
void recheck_start(struct crawl_worker *w, struct branch *n, int fd);

/* look.c: stat, asking for no more than the catalog needs; name NULL: of fd itself. 0 or -errno. */
int look(const struct crawl *c, int fd, const char *name, int flags, struct stat *st);
uint64_t look_delay(void); /* which the environment asks for, for tests */
struct file_state look_state(const struct crawl *c, const struct stat *st);
/* The version of a file's bytes; `old`: its number in the catalog of before, if it has one. */
int64_t look_version(struct crawl *c, const uint32_t *old, const struct file_state *now);

/* portion.c: what other nodes have looked at and found as it was, by file; NULL: nothing. The caller frees. */
uint8_t *portions_read(int fd, const struct catalog *old);

#endif
