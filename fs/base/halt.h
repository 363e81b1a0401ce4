/* Points at which tests stop or kill a process, or have a step fail. DEALFS_HALT names a directory. Where it has a file
 * that is named by the process's number, with "POINT stop" or "POINT kill", and the process comes to that point, it
 * removes the file and gets SIGSTOP or SIGKILL. With "POINT ERRNO", a number, the step fails as long as the file is
 * there. */
#ifndef FS_BASE_HALT_H
#define FS_BASE_HALT_H

void halt_at(const char *point);   /* nothing, where the variable is not set */
int halt_fault(const char *point); /* 0, or -errno: what the step is to fail with */

#endif
