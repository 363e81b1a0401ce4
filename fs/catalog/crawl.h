/* The crawl: threads that visit the directories of a source and build a tree of what they find. */
#ifndef FS_CATALOG_CRAWL_H
#define FS_CATALOG_CRAWL_H

#include "fs/base/str.h"
#include "fs/catalog/scan.h"
#include "fs/catalog/tree.h"

struct chunk;

struct crawl {
    /* constant while threads run */
    int source;                /* the source's root directory */
    const struct catalog *old; /* NULL: none whose entries may be taken over */
    int64_t settled;           /* a directory of old that changed at this time or later counts as changed */
    struct attributes *attributes;

    pthread_mutex_t lock;
    pthread_cond_t work; /* something was queued, or all is done, or the crawl stops */
    pthread_cond_t done; /* all is done, or the crawl stops */
    /* under lock */
    struct branch *branches; /* stack of directories to visit */
    struct chunk *chunks;    /* stack of entries to look at */
    uint64_t queued;         /* branches on the stack */
    uint64_t outstanding;    /* branches and chunks queued or in hand */
    unsigned threads, waiting;
    int error; /* why it stopped: the first, and in words */
    struct str why;

    atomic_bool stop;
    atomic_bool changed;  /* something is not as in old */
    atomic_int spare_fds; /* directories that may be held open for their children */
    atomic_uint_fast64_t directories, files, bytes, reused;
};

/* What one thread has for itself. */
struct worker {
    struct crawl *crawl;
    struct attribute_memory memory;
    char *buffer;
};
enum { WORKER_BUFFER = 32 << 10 };

/* Fill the tree from its root on. The tree is the caller's, also after an error, which `why` explains. */
int crawl_run(struct crawl *c, struct branch *root, const struct scan_options *options, struct str *why);

/* For those who visit. */
void crawl_push_children(struct crawl *c, struct branch *n);
void crawl_push_chunk(struct crawl *c, struct chunk *chunk);
void crawl_fail(struct crawl *c, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* visit.c: one directory, as far as it can be done at once. */
void visit_branch(struct worker *w, struct branch *n);
void visit_unreadable(struct crawl *c, struct branch *n, int error); /* in part or as a whole: said, counted */
/* Hold the directory open for its children if that is affordable; takes fd over. */
void visit_keep(struct crawl *c, struct branch *n, int fd);

/* listing.c: read a directory; takes fd over. */
void listing_start(struct worker *w, struct branch *n, int fd);
void listing_chunk(struct worker *w, struct chunk *chunk);
struct chunk **chunk_next(struct chunk *chunk); /* its link in the queue */

/* look.c: stat, asking for no more than the catalog needs; name NULL: of fd itself. 0 or -errno. */
int look(int fd, const char *name, int flags, struct stat *st);
int64_t look_time(struct timespec t);                         /* nanoseconds since 1970, clamped to what fits */
int look_open(int source, const struct branch *n, int flags); /* a directory, from the root down, through no symlink */

#endif
