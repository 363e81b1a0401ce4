/* No other file depends on the version at compile time, except the greeting of `dealfs launch`. */
#include "fs/base/version.h"

#include <string.h>

const char version_text[] = DEALFS_VERSION;
_Static_assert(sizeof DEALFS_VERSION <= VERSION_TEXT, "messages have room for it");

static size_t series_length(const char *v)
{
    size_t major = strcspn(v, ".");
    return v[major] ? major + 1 + strcspn(v + major + 1, ".-+") : major;
}

/* "": none. The part after a '+' names a build, and is ignored. */
static const char *pre_release(const char *v, size_t *n)
{
    v += strcspn(v, "-+");
    *n = *v == '-' ? strcspn(v, "+") : 0;
    return v;
}

bool version_matches(const char *a, const char *b)
{
    size_t n = series_length(a), pre_a, pre_b;
    const char *of_a = pre_release(a, &pre_a), *of_b = pre_release(b, &pre_b);
    return n > 0 && n == series_length(b) && memcmp(a, b, n) == 0 && pre_a == pre_b && memcmp(of_a, of_b, pre_a) == 0;
}
