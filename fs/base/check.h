/* Asserts relations between the fields of an object, only in builds with a sanitizer. */
#ifndef FS_BASE_CHECK_H
#define FS_BASE_CHECK_H

#include <assert.h>

#ifdef DEALFS_CHECKS
#define check(condition) assert(condition)
#else
#define check(condition) ((void)sizeof(condition))
#endif

#endif
