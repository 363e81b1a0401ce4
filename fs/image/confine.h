/* Rights that a process gives up permanently before it reads untrusted bytes. */
#ifndef FS_IMAGE_CONFINE_H
#define FS_IMAGE_CONFINE_H

/* Root becomes nobody; no capabilities, no way to gain rights, no core dump, no terminal. From here on the process can
 * only compute, read, write and receive with existing descriptors, allocate memory without PROT_EXEC, and end; any
 * other system call kills it (seccomp). It must have one thread, and close what it must not write to.
 *
 * 0; or -errno, with the failed step in `*what`: then nothing may be decoded. Builds with a sanitizer, which makes its
 * own calls, have no filter. */
int confine_process(const char **what);

#endif
