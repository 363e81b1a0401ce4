/* What dealfs knows of Open MPI: how mpirun and couriers are told what to do, and what both leave behind. Versions 4.1
 * and 5.0 have other names for the same. Each ignores names that it does not know, so both are used, without asking
 * which version it is. */
#ifndef FS_BASE_MPI_VERSIONS_H
#define FS_BASE_MPI_VERSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Call these in the process that then executes mpirun. */
void open_mpi_start(void);               /* root may run it; a host that falls silent is noticed after a minute */
void open_mpi_start_by(const char *rsh); /* the program that starts its daemons on other hosts, called like ssh */

/* Call it before MPI_Init. Parameters that the user has set are kept. `owned`: the process will become another user. */
void open_mpi_prepare(bool owned);
/* The first number of the version: that of the mpirun that started this process, 0: not known; and the one in a text
 * like "Open MPI v5.0.7, …". */
unsigned open_mpi_of_mpirun(void);
unsigned open_mpi_in(const char *text);

/* A segment of shared memory, by its file's name in /dev/shm. */
bool open_mpi_is_segment(const char *name);
/* Directories of mpirun and its daemons, in a temporary directory. 4.1 has them in one per user, by this name. Both
 * functions return the process that one belongs to, by the name of the directory; 0: it is none. */
void open_mpi_sessions(const char *host, uid_t uid, char *name, size_t n);
pid_t open_mpi_session_in(const char *name);
pid_t open_mpi_session(const char *name, const char *host, uid_t uid); /* of 5.0 */

#endif
