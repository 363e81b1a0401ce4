/* `samples`: upload a sample list, any files of the catalog in any order. */
#include "fs/catalog/samples.h"

#include "fs/mount/control/inside.h"

#include <errno.h>
#include <string.h>

static int refuse_name(int error, const char *name, struct str *why)
{
    if (error == -EINVAL)
        str_adds(why, "a name is 1 to 64 of A-Za-z0-9._- and does not begin with a dot, unlike `");
    else if (error == -EEXIST)
        str_adds(why, "this list is always there and cannot be replaced: `");
    else
        str_addf(why, "%s: cannot keep the list `", strerror(-error));
    str_add_printable(why, name, strlen(name));
    str_adds(why, "`");
    return error;
}

static int run(struct control *control, const struct request *request, const struct asker *asker, struct str *reply,
               struct str *why)
{
    const char *name = request_text(request, "name", "");
    char digest[DIGEST_TEXT];
    struct samples *list;
    int error = samples_from_paths(control->config.catalog, request->payload, request->payload_length,
                                   request_separator(request), control->prefixes, &list, why);

    (void)asker;
    if (error)
        return error;
    uint32_t count = samples_count(list);
    digest_format(samples_digest(list), digest);
    if (count == 0) {
        samples_put(list);
        str_adds(why, "`samples` needs paths after its first line");
        return -EINVAL;
    }
    error = samples_table_put(control->samples, name, list);
    if (error)
        return refuse_name(error, name, why);
    str_addf(reply, "%u\t%s\n", count, digest);
    return 0;
}

static const struct request_key keys[] = {
    {.name = "name", .required = true}, {.name = "sep", .choices = "lf|nul"}, {0}};

const struct verb verb_samples = {
    .name = "samples",
    .usage = "samples name=NAME [sep=lf|nul]     payload: paths; reply: their number, the list's digest",
    .keys = keys,
    .payload_most = REQUEST_MOST,
    .run = run,
};
