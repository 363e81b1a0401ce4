/* What a process lays down before it looks at bytes that somebody else chose, for good. */
#ifndef FS_IMAGE_CONFINE_H
#define FS_IMAGE_CONFINE_H

/* Root becomes nobody; no capabilities, no way to win rights, no core, no terminal; and from here on the process can
 * only compute: read, write and receive over descriptors that it has, take memory without PROT_EXEC, and end. Any
 * other system call kills it (seccomp). It must have one thread, and close what it is not to write into.
 *
 * 0; or -errno, with what failed in `*what`: then nothing is to be decoded. Builds with a sanitizer, which makes calls
 * of its own, have no filter. */
int confine_process(const char **what);

#endif
