/* The version of this build, MAJOR.MINOR.PATCH as semver.org defines it. etc/versions.md says what the numbers promise.
 */
#ifndef FS_BASE_VERSION_H
#define FS_BASE_VERSION_H

#include <stdbool.h>

enum { VERSION_TEXT = 32 };
extern const char version_text[];

/* Nodes of the two versions may form a world: MAJOR, MINOR and the pre-release ("-rc.1") are the same. */
bool version_matches(const char *a, const char *b);

#endif
