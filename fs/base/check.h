/* Asserts what must hold between the fields of an object; in builds with a sanitizer only. */
#ifndef FS_BASE_CHECK_H
#define FS_BASE_CHECK_H

#include <assert.h>

#ifdef DEALFS_CHECKS
#define check(condition) assert(condition)
#else
#define check(condition) ((void)sizeof(condition))
#endif

#endif
