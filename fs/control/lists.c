/* Sample lists: their inode numbers, computed and never kept; the list that a plan is of; and the verb `samples`, which
 * uploads one, of any files of the catalog in any order. */
#include "fs/control/lists.h"

#include "fs/control/control-private.h"
#include "fs/control/entries.h"
#include "fs/control/list-sharing.h"
#include "fs/control/verbs.h"

#include "fs/base/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

uint64_t list_ino(const char *name, const struct samples *list)
{
    const struct digest *digest = samples_digest(list);

    return hash64(digest, sizeof *digest, hash64(name, strlen(name), 0)) | INO_LIST;
}

struct samples *lists_find(struct control *control, uint64_t ino)
{
    CLEANUP_STR struct str names = STR_INIT;
    struct samples_table *table = control_filled(control) ? control->samples : NULL;

    if (table && ino == INO_SAMPLES)
        return samples_table_find(table, "all");
    if (!table || !(ino & INO_LIST) || samples_table_names(table, &names) != 0)
        return NULL;
    for (size_t at = 0; at < names.length; at += strlen(names.data + at) + 1) {
        struct samples *list = samples_table_find(table, names.data + at);
        if (list && list_ino(names.data + at, list) == ino)
            return list;
        samples_put(list);
    }
    return NULL;
}

/* ---- the list of a plan ---- */

/* The first directory with `wanted` samples of the list below it; 0: none. A child's number is above its parent's, so
 * that what lies below each is summed up from the last one to the root. */
static uint64_t find_directory(const struct catalog *c, const struct samples *list, uint64_t wanted)
{
    uint64_t directories = catalog_directories(c);
    CLEANUP_FREE uint32_t *below = calloc(directories + 1, sizeof *below);

    if (!below)
        return 0;
    for (uint32_t i = 0; i < samples_count(list); i++)
        below[catalog_parent(c, catalog_file_ino(c, samples_file(list, i)))]++;
    for (uint64_t d = directories; d > CATALOG_ROOT; d--)
        below[catalog_parent(c, d)] += below[d];
    for (uint64_t d = CATALOG_ROOT; d <= directories; d++)
        if (below[d] == wanted)
            return d;
    return 0;
}

/* The keys that choose it, or nothing. */
static void add_choosing_keys(const struct catalog *c, const char *name, uint64_t directory, struct str *why)
{
    CLEANUP_FREE char *path = malloc(CATALOG_PATH_MAX);
    long n = path ? catalog_path(c, directory, path, CATALOG_PATH_MAX) : -1;

    if (n < 0)
        return;
    str_adds(why, "; as many has `");
    if (strcmp(name, "all") != 0)
        str_addf(why, "samples=%s%s", name, n > 0 ? " " : "");
    if (n > 0) {
        str_adds(why, "under=");
        str_add_percent(why, path, (size_t)n);
    }
    str_adds(why, "`");
}

/* A list that is longer or shorter than the loader's: which keys would choose one of that length? A directory whose
 * files are as many is mostly the one that the loader was given. */
static void refuse_count(struct control *control, const struct plan_request *wanted, uint32_t count, struct str *why)
{
    const struct catalog *c = control->config.catalog;
    CLEANUP_STR struct str names = STR_INIT;
    uint64_t directory = 0;

    str_addf(why, "`count=%" PRIu64 "`: the list has %" PRIu32 " samples", wanted->count, count);
    if (wanted->count > 0 && !wanted->match && samples_table_names(control->samples, &names) == 0)
        for (size_t at = 0; at < names.length && !directory; at += strlen(names.data + at) + 1) {
            struct samples *list = samples_table_find(control->samples, names.data + at);
            directory = list ? find_directory(c, list, wanted->count) : 0;
            samples_put(list);
            if (directory)
                add_choosing_keys(c, names.data + at, directory, why);
        }
    if (!directory)
        str_adds(why, "; `under=DIR`, `match=GLOB` or `samples=NAME` choose those that the loader has");
}

int lists_choose(struct control *control, const struct plan_request *wanted, const struct asker *asker,
                 struct charge *charge, struct samples **list, struct str *why)
{
    struct samples *base = samples_table_find(control->samples, wanted->samples);
    int error = 0;

    if (!base) { /* put on another node while this one was away? */
        sharing_look(control, asker);
        base = samples_table_find(control->samples, wanted->samples);
    }
    if (!base) {
        str_adds(why, "there is no sample list `");
        str_add_printable(why, wanted->samples, strlen(wanted->samples));
        str_adds(why, "`; samples.d has those that there are");
        return -ENOENT;
    }
    if (wanted->under || wanted->match) {
        error = charge_add(charge, samples_count(base) * sizeof(uint32_t), why);
        if (!error)
            error = samples_select(base, wanted->under, wanted->match, list, why);
        samples_put(base);
    } else {
        *list = base;
    }
    if (!error && wanted->count != UINT64_MAX && wanted->count != samples_count(*list)) {
        refuse_count(control, wanted, samples_count(*list), why);
        error = -EINVAL;
    }
    return error;
}

/* ---- an upload ---- */

enum { KEY_NAME, KEY_SEP, KEY_ACTION };
static const struct key keys[] = {[KEY_NAME] = {.name = "name", .value = "NAME", .required = true},
                                  [KEY_SEP] = REQUEST_SEP,
                                  [KEY_ACTION] = {.name = "action", .choices = "put|remove"},
                                  {0}};

/* Too many, or too much. */
static int refuse_more(struct control *control, int error, struct str *why)
{
    CLEANUP_STR struct str names = STR_INIT;

    if (error == -EDQUOT)
        str_addf(why, "%d uploaded lists are kept, which is the most", SAMPLES_LISTS);
    else
        str_addf(why, "the uploaded lists together would have more than %" PRIu64 " entries, which is the most",
                 samples_table_most(control->samples));
    str_adds(why, ": remove one with `samples name=NAME action=remove`; there are");
    if (samples_table_names(control->samples, &names) == 0)
        for (size_t at = 0; at < names.length; at += strlen(names.data + at) + 1)
            if (!samples_built_in(names.data + at))
                str_addf(why, " %s", names.data + at);
    return error;
}

static int refuse_name(int error, const char *name, struct str *why)
{
    if (error == -EINVAL)
        str_adds(why, "a name is 1 to 64 of A-Za-z0-9._- and does not begin with a dot, unlike `");
    else if (error == -EEXIST)
        str_adds(why, "this list is always there and cannot be replaced: `");
    else if (error == -ENOENT)
        str_adds(why, "there is no sample list `");
    else
        str_addf(why, "%s: cannot keep the list `", strerror(-error));
    str_add_printable(why, name, strlen(name));
    str_adds(why, "`");
    return error;
}

/* Takes the list over. */
static int keep_list(struct control *control, const char *name, struct samples *list, struct str *reply,
                     struct str *why)
{
    char digest[DIGEST_TEXT];
    uint32_t count = samples_count(list);
    digest_format(samples_digest(list), digest);
    if (count == 0) {
        samples_put(list);
        str_adds(why, "`samples` needs paths after its first line");
        return -EINVAL;
    }
    int error = samples_table_put(control->samples, name, list);
    if (error == -EDQUOT || error == -E2BIG)
        return refuse_more(control, error, why);
    if (error)
        return refuse_name(error, name, why);
    str_addf(reply, "%u\t%s\n", count, digest);
    return 0;
}

static uint64_t count_paths(const char *payload, size_t n, char separator)
{
    const char *end = payload + n;
    uint64_t records = 1;

    while (payload < end && (payload = memchr(payload, separator, (size_t)(end - payload)))) {
        payload++;
        records++;
    }
    return records;
}

static int remove_list(struct control *control, const struct request *request, const struct asker *asker,
                       struct str *reply, struct str *why)
{
    const char *name = request->value[KEY_NAME].text;

    if (!request_only_line_ends(request->payload, request->payload_length)) {
        str_adds(why, "with `action=remove` nothing may follow the first line of `samples`");
        return -EINVAL;
    }
    int error = samples_table_remove(control->samples, name);
    if (error == -ENOENT) { /* put on another node while this one was away? */
        sharing_look(control, asker);
        error = samples_table_remove(control->samples, name);
    }
    if (error)
        return refuse_name(error, name, why);
    str_adds(reply, "removed\n");
    return sharing_spread(control, name, asker, why);
}

static int put_list(struct control *control, const struct request *request, const struct asker *asker,
                    struct str *reply, struct str *why)
{
    const struct samples_upload upload = {request->payload, request->payload_length,
                                          request_separator(&request->value[KEY_SEP]), control->prefixes};
    struct charge charge = charge_like(asker->charge);
    struct samples *list;
    uint64_t paths = count_paths(upload.text, upload.length, upload.separator);
    int error = charge_add(&charge, paths * sizeof(uint32_t), why);

    if (!error)
        error = samples_from_paths(control->config.catalog, &upload, &list, why);
    if (!error)
        error = keep_list(control, request->value[KEY_NAME].text, list, reply, why);
    charge_fini(&charge);
    return error ? error : sharing_spread(control, request->value[KEY_NAME].text, asker, why);
}

static int samples_run(struct control *control, const struct request *request, const struct asker *asker,
                       struct str *reply, struct str *why)
{
    bool removes = request->value[KEY_ACTION].choice == 1;

    return (removes ? remove_list : put_list)(control, request, asker, reply, why);
}

const struct verb verb_samples = {
    .name = "samples",
    .about = "payload: paths; reply: their number, the list's digest. Kept on all nodes",
    .keys = keys,
    .payload_most = PAYLOAD_MOST,
    .run = samples_run,
};
