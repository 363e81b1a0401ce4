/* Scoped ownership: locals that free themselves, locks that unlock themselves, and the steal that keeps a local. */
#ifndef FS_BASE_CLEANUP_H
#define FS_BASE_CLEANUP_H

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free_(void *p)
{
    int saved = errno;
    free(*(void **)p);
    errno = saved;
}

static inline void cleanup_close_(int *fd)
{
    int saved = errno;
    if (*fd >= 0)
        close(*fd);
    errno = saved;
}

static inline void cleanup_fclose_(FILE **f)
{
    int saved = errno;
    if (*f)
        fclose(*f);
    errno = saved;
}

static inline void cleanup_closedir_(DIR **d)
{
    int saved = errno;
    if (*d)
        closedir(*d);
    errno = saved;
}

#define CLEANUP_FREE __attribute__((cleanup(cleanup_free_)))
#define CLEANUP_CLOSE __attribute__((cleanup(cleanup_close_)))
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
