/* From pairs to lists. */
#include "fs/feed/recipe.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/hash.h"
#include "fs/base/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIST_MOST = 1 << 30 };

bool recipe_take(const struct feed *feed, unsigned slot, struct feed_plan *plan)
{
    return feed_plan_get(feed, slot, plan) && plan->number != 0 && plan->ranks > 0 && plan->ranks <= FEED_RANKS &&
           memchr(plan->pairs, 0, sizeof plan->pairs) && !strchr(plan->pairs, '/');
}

/* The decoded value of a key; NULL: not given, or no memory. */
static char *value_of(const char *pairs, const char *key)
{
    size_t n = strlen(key);
    for (const char *at = pairs; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t length = strcspn(at, ",");
        if (length <= n || strncmp(at, key, n) != 0 || at[n] != '=')
            continue;
        char *value = strndup(at + n + 1, length - n - 1);
        if (value && percent_decode(value, length - n - 1) < 0)
            free(steal_pointer(value));
        return value;
    }
    return NULL;
}

static bool differs_by_epoch(const char *pair)
{
    static const char *const keys[] = {"epoch=", "layout=", "digest=", "skip="};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strncmp(pair, keys[i], strlen(keys[i])) == 0)
            return true;
    return false;
}

/* A hash of the pairs, without those that differ between the epochs of a job. */
static uint64_t recipe_kind(const struct feed_plan *r)
{
    uint64_t kind = 0;
    for (const char *at = r->pairs; *at; at += strcspn(at, ","), at += *at == ',')
        if (!differs_by_epoch(at))
            kind = hash64(at, strcspn(at, ","), kind + 1);
    return kind;
}

/* The distance within which eight workers of a loader read, each with two batches. */
static uint32_t recipe_span(const struct feed_plan *r)
{
    enum { SPAN_LEAST = 64, BATCHES = 16, SPAN_MOST = 1 << 24 };
    CLEANUP_FREE char *text = value_of(r->pairs, "batch");
    uint64_t batch = text ? strtoull(text, NULL, 10) : 0;
    return batch < SPAN_MOST / BATCHES ? SPAN_LEAST + BATCHES * (uint32_t)batch : SPAN_MOST;
}

/* --- samples --- */

void recipe_book_fini(struct recipe_book *book)
{
    samples_put(book->samples);
    free(book->key);
    book->samples = NULL;
    book->key = NULL;
}

static int read_from(const struct recipe_book *book, const char *path, struct str *text)
{
    CLEANUP_CLOSE int desk = desk_open(&book->desk);
    return desk < 0 ? desk : file_read(desk, path, LIST_MOST, text);
}

/* -ENOENT: not a list of records. */
static int read_records(const struct recipe_book *book, const char *name, struct samples **list)
{
    CLEANUP_STR struct str path = STR_INIT, why = STR_INIT;
    struct scratch packed = {0};
    struct stat st;
    str_addf(&path, "samples.d/%s.packed", name);
    CLEANUP_CLOSE int desk = desk_open(&book->desk);
    CLEANUP_CLOSE int fd = desk < 0 || path.failed ? -1 : openat(desk, path.data, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st))
        return path.failed ? -ENOMEM : desk < 0 ? desk : -errno;
    int error = scratch_make(book->directory, (size_t)st.st_size, &packed);
    for (off_t at = 0; !error && at < st.st_size;) {
        ssize_t n = pread(fd, (char *)packed.bytes + at, (size_t)(st.st_size - at), at);
        error = n > 0 ? 0 : n < 0 ? -errno : -EIO;
        at += n;
    }
    const struct samples_upload upload = {packed.bytes, (size_t)st.st_size, '\n', NULL};
    const struct record_terms terms = {.packed = true, .directory = book->directory};
    if (!error)
        error = samples_from_records(book->catalog, &upload, &terms, list, &why);
    scratch_fini(&packed);
    return error;
}

static int read_uploaded(const struct recipe_book *book, const char *name, struct samples **list)
{
    int records = read_records(book, name, list);
    if (records != -ENOENT)
        return records;
    CLEANUP_STR struct str path = STR_INIT, text = STR_INIT, why = STR_INIT;
    str_addf(&path, "samples.d/%s", name);
    int error = path.failed ? -ENOMEM : read_from(book, path.data, &text);
    if (error)
        return error;
    const struct samples_upload upload = {text.length ? text.data : "", text.length, '\n', NULL};
    return samples_from_paths(book->catalog, &upload, list, &why);
}

static int find_samples(const struct recipe_book *book, const char *name, const char *pairs, struct samples **list)
{
    CLEANUP_FREE char *under = value_of(pairs, "under"), *match = value_of(pairs, "match");
    CLEANUP_STR struct str why = STR_INIT;
    struct samples *base = NULL;
    int error = 0;
    if (samples_built_in(name))
        base = strcmp(name, "all") == 0 ? samples_all(book->catalog) : samples_imagefolder(book->catalog);
    else
        error = read_uploaded(book, name, &base);
    if (!error && !base)
        error = -ENOMEM;
    if (error || (!under && !match)) {
        *list = base;
        return error;
    }
    error = samples_select(base, under, match, list, &why);
    samples_put(base);
    return error;
}

/* If a list is replaced by another one of its name, it becomes another file. */
static uint64_t version_of(const struct recipe_book *book, const char *name)
{
    CLEANUP_STR struct str path = STR_INIT;
    struct stat st;
    if (samples_built_in(name))
        return 0;
    CLEANUP_CLOSE int desk = desk_open(&book->desk);
    str_addf(&path, "samples.d/%s", name);
    return desk >= 0 && !path.failed && fstatat(desk, path.data, &st, 0) == 0 ? st.st_ino : 0;
}

static int choose_samples(struct recipe_book *book, const char *pairs)
{
    CLEANUP_FREE char *given = value_of(pairs, "samples"), *under = value_of(pairs, "under"),
                      *match = value_of(pairs, "match");
    CLEANUP_STR struct str key = STR_INIT;
    const char *name = given ? given : "all";
    uint64_t version = version_of(book, name);
    str_addf(&key, "%s\n%s\n%s", name, under ? under : "", match ? match : "");
    if (key.failed)
        return -ENOMEM;
    if (book->key && strcmp(book->key, key.data) == 0 && book->version == version)
        return 0;
    recipe_book_fini(book);
    struct samples *list = NULL;
    int error = find_samples(book, name, pairs, &list);
    if (error)
        return error;
    book->samples = list;
    book->version = version;
    book->key = str_steal(&key);
    return 0;
}

/* --- lists --- */

/* Read one rank's list; append it to the others. */
static int read_list(const struct recipe_book *book, const struct feed_plan *r, uint32_t rank, struct str *lists)
{
    CLEANUP_STR struct str path = STR_INIT;
    str_addf(&path, "plan/%s,rank=%u,reply=u32", r->pairs, rank);
    return path.failed ? -ENOMEM : read_from(book, path.data, lists);
}

static int number_files(const struct recipe_book *book, uint32_t *position, size_t count)
{
    uint32_t samples = samples_count(book->samples);
    for (size_t i = 0; i < count; i++) {
        if (position[i] >= samples)
            return -ESTALE;
        if (!samples_records(book->samples))
            position[i] = samples_file(book->samples, position[i]);
    }
    return 0;
}

int recipe_make(struct recipe_book *book, const struct feed_plan *r, const struct window_files *files,
                struct feed_course **course)
{
    CLEANUP_STR struct str lists = STR_INIT;
    uint32_t counts[FEED_RANKS];
    int error = choose_samples(book, r->pairs);
    for (uint32_t i = 0; !error && i < r->ranks; i++) {
        size_t before = lists.length;
        error = read_list(book, r, r->rank[i], &lists);
        counts[i] = (uint32_t)((lists.length - before) / sizeof(uint32_t));
        if (!error && (lists.length - before) % sizeof(uint32_t))
            error = -EBADMSG;
    }
    if (!error && lists.failed)
        error = -ENOMEM;
    if (error)
        return error;
    size_t count = lists.length / sizeof(uint32_t);
    uint32_t *file = (uint32_t *)(void *)str_steal(&lists);
    error = !file ? -ENOMEM : count > UINT32_MAX / 2 ? -EFBIG : number_files(book, file, count);
    if (error) {
        free(file);
        return error;
    }
    const struct course_lists of = {file, counts, r->ranks, catalog_files(book->catalog)};
    error = samples_records(book->samples) ? course_create_records(&of, book->samples, book->most, course)
                                           : course_create(&of, files, course);
    if (error)
        return error;
    (*course)->number = r->number;
    (*course)->epoch = r->epoch;
    (*course)->guessed = r->guessed;
    (*course)->span = recipe_span(r);
    (*course)->kind = recipe_kind(r);
    memcpy((*course)->rank, r->rank, sizeof r->rank);
    return 0;
}
