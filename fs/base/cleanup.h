/* Scoped ownership: locals that free themselves, locks that unlock themselves, and the steal that keeps a local. */
#ifndef FS_BASE_CLEANUP_H
#define FS_BASE_CLEANUP_H

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_errno_(const int *saved)
{
    errno = *saved;
}

/* Afterwards errno has its old value. It is not needed for `free`, which keeps errno. */
#define KEEP_ERRNO __attribute__((cleanup(cleanup_errno_), unused)) const int saved_errno_ = errno

static inline void cleanup_free_(void *p)
{
    free(*(void **)p);
}

static inline void cleanup_close_(int *fd)
{
    KEEP_ERRNO;
    if (*fd >= 0)
        close(*fd);
}

static inline void cleanup_fclose_(FILE **f)
{
    KEEP_ERRNO;
    if (*f)
        fclose(*f);
}

static inline void cleanup_closedir_(DIR **d)
{
    KEEP_ERRNO;
    if (*d)
        closedir(*d);
}

#define CLEANUP_FREE __attribute__((cleanup(cleanup_free_), unused))
#define CLEANUP_CLOSE __attribute__((cleanup(cleanup_close_), unused))
#define CLEANUP_FCLOSE __attribute__((cleanup(cleanup_fclose_)))
#define CLEANUP_CLOSEDIR __attribute__((cleanup(cleanup_closedir_)))

static inline void cleanup_unlock_(pthread_mutex_t **lock)
{
    pthread_mutex_unlock(*lock);
}

/* Locked from here to the end of the block. */
#define LOCK_SCOPE(mutex)                                                                                              \
    __attribute__((cleanup(cleanup_unlock_))) pthread_mutex_t *scope_lock_ = (mutex);                                  \
    pthread_mutex_lock(scope_lock_)

/* Take a pointer or descriptor out of a scoped local, which then frees nothing. */
#define steal_pointer(p)                                                                                               \
    ({                                                                                                                 \
        __typeof__(p) stolen_ = (p);                                                                                   \
        (p) = NULL;                                                                                                    \
        stolen_;                                                                                                       \
    })
#define steal_fd(fd)                                                                                                   \
    ({                                                                                                                 \
        int stolen_ = (fd);                                                                                            \
        (fd) = -1;                                                                                                     \
        stolen_;                                                                                                       \
    })

#endif
