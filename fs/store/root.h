/* The source's root, which may be lost: the FUSE server of the source dies, an NFS server forgets its handles. Any
 * thread that mounts the source again gives a root that is opened in its place; the descriptor keeps its number. */
#ifndef FS_STORE_ROOT_H
#define FS_STORE_ROOT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Open the root again, as the very same directory of the same file system, on the same descriptor: 0; -EXDEV: what is
 * there now is another one; else why it cannot be. */
typedef int root_open(void *user);

struct root {
    int fd;          /* borrowed */
    root_open *open; /* NULL: it cannot be */
    void *user;
    pthread_mutex_t lock;
    pthread_cond_t tried;
    /* lock: */
    unsigned opened; /* how often again */
    bool trying;
    uint64_t next;     /* when it may be tried again */
    uint64_t last;     /* when it was opened last: nanoseconds, monotonic */
    int lost, refused; /* the errno it is lost for, and that of the last try; 0: none */
};

struct root_state {
    int lost, refused;
    unsigned opened;
    uint64_t last;
};

void root_init(struct root *r, int fd, root_open *open, void *user);
void root_fini(struct root *r);
unsigned root_opened(struct root *r);
/* Something below the root failed with this error, after root_opened() said `opened`. True: there is another root
 * since, so that it may be tried again. Tries at most once a second; waits for a try that is under way. */
bool root_regain(struct root *r, int error, unsigned opened);
void root_look(struct root *r, struct root_state *state);

#endif
