/* The version of this build, MAJOR.MINOR.PATCH as in semver.org. etc/versions.md says what the numbers promise. */
#ifndef FS_BASE_VERSION_H
#define FS_BASE_VERSION_H

#include <stdbool.h>

enum { VERSION_TEXT = 32 };
extern const char version_text[];

/* May nodes with these versions form a world? MAJOR, MINOR and the pre-release ("-rc.1") must be equal. */
bool version_matches(const char *a, const char *b);

#endif
