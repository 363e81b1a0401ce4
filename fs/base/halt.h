/* Points at which tests stop or kill a process. DEALFS_HALT names a directory. Where it has a file that is named by the
 * process's number, with "POINT stop" or "POINT kill", and the process comes to that point, it removes the file and
 * gets SIGSTOP or SIGKILL. */
#ifndef FS_BASE_HALT_H
#define FS_BASE_HALT_H

void halt_at(const char *point); /* nothing, where the variable is not set */

#endif
