/* The source's root can become unusable: the source's FUSE server dies, or an NFS server forgets its handles. When a
 * user mounts the source again, the root is opened again; the descriptor keeps its number. */
#ifndef FS_STORE_ROOT_H
#define FS_STORE_ROOT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Open the same directory of the same filesystem again, on the same descriptor: 0; -EXDEV: another directory is there;
 * else why it failed. */
typedef int root_open(void *user);

struct root {
    int fd;          /* borrowed */
    root_open *open; /* NULL: not possible */
    void *user;
    pthread_mutex_t lock;
    pthread_cond_t tried;
    /* guarded by lock: */
    unsigned opened; /* how often it was opened again */
    bool trying;
    uint64_t next;     /* when the next try is allowed */
    uint64_t last;     /* when it was last opened: nanoseconds, monotonic */
    int lost, refused; /* the errno that it was lost with, and that of the last try; 0: none */
};

struct root_state {
    int lost, refused;
    unsigned opened;
    uint64_t last;
};

void root_init(struct root *r, int fd, root_open *open, void *user);
void root_fini(struct root *r);
unsigned root_opened(struct root *r);
/* A read below the root failed with this error; `opened` is what root_opened() returned before. True: the root was
 * opened again, so repeat the read. Tries at most once per second; waits for another thread's try. */
bool root_regain(struct root *r, int error, unsigned opened);
void root_look(struct root *r, struct root_state *state);

#endif
