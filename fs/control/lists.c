/* Sample lists: their inode numbers, which are computed and not stored; the list that a plan uses; and the verb
 * `samples`, which uploads any files of the catalog in any order. */
#include "fs/control/lists.h"

#include "fs/control/control-private.h"
#include "fs/control/entries.h"
#include "fs/control/list-sharing.h"
#include "fs/control/verbs.h"

#include "fs/base/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static const char packed_end[] = ".packed";

/* Length of the name without `.packed`; 0: it has no such ending. */
static size_t before_packed(const char *name)
{
    size_t n = strlen(name), end = strlen(packed_end);
    return n > end && strcmp(name + n - end, packed_end) == 0 ? n - end : 0;
}

uint64_t list_ino(const char *name, const struct samples *list, bool packed)
{
    const struct digest *digest = samples_digest(list);
    size_t n = packed && before_packed(name) ? before_packed(name) : strlen(name);
    uint64_t hash = hash64(digest, sizeof *digest, hash64(name, n, 0));
    return (hash & ~INO_PACKED) | INO_LIST | (packed ? INO_PACKED : 0);
}

struct samples *lists_named(struct control *control, const char *name, bool *packed)
{
    struct samples *list = samples_table_find(control->samples, name);
    *packed = !list && before_packed(name);
    if (!*packed)
        return list;
    CLEANUP_FREE char *plain = strndup(name, before_packed(name));
    list = plain ? samples_table_find(control->samples, plain) : NULL;
    if (!list || samples_packed(list))
        return list;
    samples_put(list);
    return NULL;
}

struct samples *lists_find(struct control *control, uint64_t ino)
{
    CLEANUP_STR struct str names = STR_INIT;
    struct samples_table *table = control_filled(control) ? control->samples : NULL;
    if (table && ino == INO_SAMPLES)
        return samples_table_find(table, "all");
    if (!table || !(ino & INO_LIST) || samples_table_names(table, false, &names) != 0)
        return NULL;
    for (size_t at = 0; at < names.length; at += strlen(names.data + at) + 1) {
        struct samples *list = samples_table_find(table, names.data + at);
        if (list && list_ino(names.data + at, list, ino & INO_PACKED) == ino)
            return list;
        samples_put(list);
    }
    return NULL;
}

/* --- the list of a plan --- */

/* The first directory with `wanted` samples of the list below it; 0: none. A child has a higher number than its parent,
 * so the sums are computed from the last directory to the root. */
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

/* The keys that choose it, or nothing. `named`: it is the list that the request names. */
static void add_choosing_keys(const struct catalog *c, const char *name, bool named, uint64_t directory,
                              struct str *why)
{
    CLEANUP_FREE char *path = malloc(CATALOG_PATH_MAX);
    long n = path ? catalog_path(c, directory, path, CATALOG_PATH_MAX) : -1;
    if (n < 0)
        return;
    str_adds(why, "; `");
    if (!named || strcmp(name, "all") != 0)
        str_addf(why, "samples=%s%s", name, n > 0 ? " " : "");
    if (n > 0) {
        str_adds(why, "under=");
        str_add_percent(why, path, (size_t)n);
    }
    str_adds(why, "` has that many");
}

/* The list is longer or shorter than the loader's. Suggest keys that choose a list of that length: a directory with
 * that many files is usually the loader's. */
static void refuse_count(struct control *control, const struct plan_request *wanted, uint32_t count, struct str *why)
{
    const struct catalog *c = control->config.catalog;
    CLEANUP_STR struct str names = STR_INIT;
    uint64_t directory = 0;
    str_addf(why, "`count=%" PRIu64 "`: the list has %" PRIu32 " samples", wanted->count, count);
    if (wanted->count > 0 && !wanted->match && samples_table_names(control->samples, false, &names) == 0)
        for (size_t at = 0; at < names.length && !directory; at += strlen(names.data + at) + 1) {
            CLEANUP_SAMPLES struct samples *list = samples_table_find(control->samples, names.data + at);
            directory = list ? find_directory(c, list, wanted->count) : 0;
            if (directory)
                add_choosing_keys(c, names.data + at, strcmp(names.data + at, wanted->samples) == 0, directory, why);
        }
    if (!directory)
        str_adds(why, "; `under=DIR`, `match=GLOB` or `samples=NAME` choose those that the loader has");
}

int lists_absent(int looked, bool costs, const char *name, struct str *why)
{
    static const char *const said[2][2] = {
        {"there is no sample list `", "there is no cost list `"},
        {"this node does not have the sample list `", "this node does not have the cost list `"}};
    str_adds(why, said[looked != 0][costs]);
    str_add_printable(why, name, strlen(name));
    str_adds(why, "`");
    if (!looked)
        return -ENOENT;
    bool lost = looked == -ENOTCONN || looked == -EHOSTUNREACH;
    return str_fail(why, -EHOSTUNREACH, ", and could not get the lists of all other nodes: %s",
                    lost ? "see `dealfs status`" : strerror(-looked));
}

int lists_get(struct control *control, const char *name, const struct asker *asker, struct samples **list)
{
    int looked = 0;
    *list = samples_table_find(control->samples, name);
    if (!*list) { /* perhaps put on another node while this one was away */
        looked = sharing_look(control, asker);
        *list = samples_table_find(control->samples, name);
    }
    if (*list)
        return 0;
    int error = lists_absent(looked, false, name, asker->why);
    if (error == -ENOENT)
        str_adds(asker->why, "; `samples.d` contains the existing ones");
    return error;
}

static int check_catalog(const struct control *control, const struct plan_request *wanted, struct str *why)
{
    char is[DIGEST_TEXT], wants[DIGEST_TEXT];
    const struct digest *digest = catalog_digest(control->config.catalog);
    if (!wanted->cataloged || digest_equal(digest, &wanted->catalog))
        return 0;
    return str_fail(why, -EINVAL, "`catalog=%s`: the mount has another dataset, whose `catalog.digest` is %s",
                    digest_format(&wanted->catalog, wants), digest_format(digest, is));
}

int lists_choose(struct control *control, const struct plan_request *wanted, const struct asker *asker,
                 struct charge *charge, struct samples **list)
{
    struct samples *base;
    int error = check_catalog(control, wanted, asker->why);
    if (!error)
        error = lists_get(control, wanted->samples, asker, &base);
    if (error)
        return error;
    if (wanted->under || wanted->match) {
        uint64_t each = samples_records(base) ? sizeof(uint32_t) + sizeof(struct record) : sizeof(uint32_t);
        error = charge_add(charge, samples_count(base) * each, asker->why);
        if (!error)
            error = samples_select(base, wanted->under, wanted->match, list, asker->why);
        samples_put(base);
    } else {
        *list = base;
    }
    if (!error && wanted->count != UINT64_MAX && wanted->count != samples_count(*list)) {
        refuse_count(control, wanted, samples_count(*list), asker->why);
        error = -EINVAL;
    }
    return error;
}

/* --- an upload --- */

enum { KEY_NAME, KEY_FORM, KEY_FORMAT, KEY_SEP, KEY_ACTION };
enum { FORM_PATHS, FORM_RECORDS, FORM_PACKED };
enum { ACTION_PUT, ACTION_REMOVE, ACTION_LOOK };
static const struct key keys[] = {[KEY_NAME] = {.name = "name", .value = "NAME", .required = true},
                                  [KEY_FORM] = {.name = "form", .choices = "paths|records|packed"},
                                  [KEY_FORMAT] = {.name = "format", .choices = RECORD_FORMATS},
                                  [KEY_SEP] = REQUEST_SEP,
                                  [KEY_ACTION] = {.name = "action", .choices = "put|remove|look"},
                                  {0}};

_Static_assert(SAMPLES_UPLOAD_MOST == PAYLOAD_MOST, "what `dealfs index` makes can be uploaded");

static const char *verb_of(bool costs)
{
    return costs ? "costs" : "samples";
}

/* The limit on lists, or on bytes, was reached. */
static int refuse_more(struct control *control, int error, bool costs, struct str *why)
{
    CLEANUP_STR struct str names = STR_INIT;
    if (error == -EDQUOT)
        str_addf(why, "there are %d uploaded lists, which is the maximum", SAMPLES_LISTS);
    else
        str_addf(why,
                 "the uploaded lists together would exceed the maximum of %" PRIu64 " files or %" PRIu64 " records",
                 samples_table_most(control->samples), SAMPLES_RECORDS_MOST);
    str_addf(why, ": remove one with `%s name=NAME action=remove`; the lists are", verb_of(costs));
    if (samples_table_names(control->samples, costs, &names) == 0)
        for (size_t at = 0; at < names.length; at += strlen(names.data + at) + 1)
            if (!samples_built_in(names.data + at))
                str_addf(why, " %s", names.data + at);
    return error;
}

static int refuse_name(int error, const char *name, bool costs, struct str *why)
{
    if (error == -EINVAL)
        str_adds(why, "a name consists of 1 to 64 of A-Za-z0-9._- and does not begin with a dot, unlike `");
    else if (error == -EEXIST)
        str_adds(why, "this list is built in and cannot be replaced: `");
    else if (error == -ENOTUNIQ)
        str_addf(why, "a %s list has this name: `", costs ? "sample" : "cost");
    else
        str_addf(why, "%s: save the list `", strerror(-error));
    str_add_printable(why, name, strlen(name));
    return str_fail(why, error, "`");
}

/* Takes the list over. */
static int keep_list(struct control *control, const struct list_put *put, struct str *reply, struct str *why)
{
    struct samples *list = put->list;
    char digest[DIGEST_TEXT];
    uint32_t count = samples_count(list);
    bool costs = samples_costs(list);
    digest_format(samples_digest(list), digest);
    if (count == 0) {
        samples_put(list);
        return str_fail(why, -EINVAL, "`%s` needs %s after its first line", verb_of(costs),
                        costs ? "numbers" : "paths or records");
    }
    int error = samples_table_put(control->samples, put->name, put->after, list);
    if (error == -EDQUOT || error == -E2BIG)
        return refuse_more(control, error, costs, why);
    if (error)
        return refuse_name(error, put->name, costs, why);
    str_addf(reply, "%u\t%s\n", count, digest);
    return 0;
}

static const char *format_name(const struct samples *list)
{
    static const char *const name[] = {[RECORDS_PLAIN] = "-",
                                       [RECORDS_TAR] = "tar",
                                       [RECORDS_TFRECORD] = "tfrecord",
                                       [RECORDS_LINES] = "lines",
                                       [RECORDS_FIXED] = "fixed"};
    return samples_records(list) ? name[samples_traits(list)->format] : "-";
}

static int look_list(struct control *control, const char *name, const struct asker *asker)
{
    char digest[DIGEST_TEXT];
    CLEANUP_SAMPLES struct samples *list = NULL;
    int error = lists_get(control, name, asker, &list);
    if (error)
        return error;
    digest_format(samples_digest(list), digest);
    str_addf(asker->reply, "%u\t%s\t%s\n", samples_count(list), digest, format_name(list));
    return 0;
}

int lists_put(struct control *control, const struct list_put *put, const struct asker *asker)
{
    CLEANUP_FREE struct spreading *spreading = NULL;
    int error = sharing_prepare(control, &spreading, asker->why);
    if (error) {
        samples_put(put->list);
        return error;
    }
    error = keep_list(control, put, asker->reply, asker->why);
    return error ? error : sharing_spread(spreading, put->name, asker);
}

int lists_remove(struct control *control, const struct request *request, const struct asker *asker)
{
    bool costs = request->verb == &verb_costs;
    const char *name = request->value[KEY_NAME].text;
    if (!request_only_line_ends(request->payload, request->payload_length))
        return str_fail(asker->why, -EINVAL, "with `action=remove` nothing may follow the first line of `%s`",
                        verb_of(costs));
    CLEANUP_FREE struct spreading *spreading;
    int error = sharing_prepare(control, &spreading, asker->why);
    if (error)
        return error;
    int looked = 0;
    error = samples_table_remove(control->samples, name, costs);
    if (error == -ENOENT) { /* perhaps put on another node while this one was away */
        looked = sharing_look(control, asker);
        error = samples_table_remove(control->samples, name, costs);
    }
    if (error == -ENOENT)
        return lists_absent(looked, costs, name, asker->why);
    if (error)
        return refuse_name(error, name, costs, asker->why);
    str_adds(asker->reply, "removed\n");
    return sharing_spread(spreading, name, asker);
}

/* What the keys say about the payload, or why they contradict each other. */
static int describe_upload(struct control *control, const struct request *request, struct samples_upload *upload,
                           struct record_terms *terms, struct str *why)
{
    const struct key_value *value = request->value;
    bool records = value[KEY_FORM].choice != FORM_PATHS;
    if (value[KEY_FORMAT].text && !records)
        str_adds(why, "`format` needs `form=records` or `form=packed`");
    else if (value[KEY_SEP].choice != 0 && records)
        str_adds(why, "`sep=nul` needs `form=paths`");
    *upload = (struct samples_upload){.text = request->payload,
                                      .length = request->payload_length,
                                      .separator = request_separator(&value[KEY_SEP]),
                                      .prefixes = control->prefixes};
    *terms = (struct record_terms){.format = value[KEY_FORMAT].text ? RECORDS_TAR + value[KEY_FORMAT].choice : 0,
                                   .packed = value[KEY_FORM].choice == FORM_PACKED,
                                   .directory = samples_table_directory(control->samples)};
    return why->length ? -EINVAL : 0;
}

static int make_list(struct control *control, const struct request *request, const struct asker *asker,
                     struct samples **list)
{
    const struct catalog *c = control->config.catalog;
    CLEANUP_CHARGE struct charge charge = charge_like(asker->charge);
    struct samples_upload upload;
    struct record_terms terms;
    int error = describe_upload(control, request, &upload, &terms, asker->why);
    if (error)
        return error;
    if (request->value[KEY_FORM].choice != FORM_PATHS)
        return samples_from_records(c, &upload, &terms, list, asker->why);
    size_t most = text_lines_most(upload.text, upload.length, upload.separator);
    error = charge_add(&charge, most * sizeof(uint32_t), asker->why);
    return error ? error : samples_from_paths(c, &upload, list, asker->why);
}

static int put_list(struct control *control, const struct request *request, const struct asker *asker)
{
    struct samples *list;
    int error = make_list(control, request, asker, &list);
    return error ? error : lists_put(control, &(struct list_put){request->value[KEY_NAME].text, list, 0}, asker);
}

static int samples_run(struct control *control, const struct request *request, const struct asker *asker)
{
    int action = request->value[KEY_ACTION].choice;
    if (action == ACTION_LOOK)
        return look_list(control, request->value[KEY_NAME].text, asker);
    return action == ACTION_REMOVE ? lists_remove(control, request, asker) : put_list(control, request, asker);
}

const struct verb verb_samples = {
    .name = "samples",
    .about = "upload a sample list: paths or records; reply: number of samples, digest. For all nodes",
    .keys = keys,
    .payload_most = PAYLOAD_MOST,
    .run = samples_run,
};
