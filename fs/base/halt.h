/* Points at which tests stop or kill a process, or let a step fail. DEALFS_HALT names a directory. If it has a file
 * named by the process's number that contains "POINT stop" or "POINT kill", the process removes the file at that point,
 * and gets SIGSTOP or SIGKILL. With "POINT ERRNO", a number, the step fails as long as the file exists. */
#ifndef FS_BASE_HALT_H
#define FS_BASE_HALT_H

void halt_at(const char *point);   /* does nothing if the variable is not set */
int halt_fault(const char *point); /* 0, or the -errno with which the step must fail */

#endif
