/* Makes a sample list from uploaded paths. */
#include "fs/catalog/path-search.h"
#include "fs/catalog/samples-inside.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static int add_paths(const struct catalog *c, const struct samples_upload *upload, struct files *files, struct str *why)
{
    struct path_search search = {.catalog = c, .prefixes = upload->prefixes};
    bool lines = upload->separator == '\n'; /* with escapes */
    const char *rest = upload->text, *path;
    size_t left = upload->length, n;
    for (uint64_t number = 1; text_line(&rest, &left, upload->separator, &path, &n); number++) {
        uint32_t file;
        int error = (lines ? path_search_line : path_search_find)(&search, path, n, &file);
        if (error) {
            str_addf(why, "%s %" PRIu64 ": ", lines ? "line" : "path", number);
            path_search_refuse(path, n, error, why);
            return error;
        }
        error = files_add(files, file);
        if (error)
            return str_fail(why, error, "sample list: %s", strerror(-error));
    }
    return 0;
}

int samples_from_paths(const struct catalog *c, const struct samples_upload *upload, struct samples **out,
                       struct str *why)
{
    struct files files = {0};
    int error = files_to_samples(&files, add_paths(c, upload, &files, why), c, out);
    if (error == -ENOMEM && !why->length)
        str_addf(why, "sample list: %s", strerror(ENOMEM));
    return error;
}
