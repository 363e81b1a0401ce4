/* Stubs for calls that the scheduler cannot handle, in parts of the product that are linked and that no world uses: the
 * processes that decode images, and reads of the unit tests' datasets. */
#include "tests/sim/sched.h"

#include <semaphore.h>
#include <sys/socket.h>
#include <time.h>

int __wrap_sem_timedwait(sem_t *semaphore, const struct timespec *until);
int __wrap_sem_timedwait(sem_t *semaphore, const struct timespec *until)
{
    (void)semaphore, (void)until;
    sim_fail("sem_timedwait is called, and is not simulated");
}

ssize_t __wrap_recv(int socket, void *bytes, size_t n, int flags);
ssize_t __wrap_recv(int socket, void *bytes, size_t n, int flags)
{
    (void)socket, (void)bytes, (void)n, (void)flags;
    sim_fail("recv is called, and is not simulated");
}

ssize_t __wrap_send(int socket, const void *bytes, size_t n, int flags);
ssize_t __wrap_send(int socket, const void *bytes, size_t n, int flags)
{
    (void)socket, (void)bytes, (void)n, (void)flags;
    sim_fail("send is called, and is not simulated");
}
