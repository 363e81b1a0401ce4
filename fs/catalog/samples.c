/* Sample lists: creation, counts, and selection from other lists. */
#include "fs/base/array.h"
#include "fs/base/cleanup.h"
#include "fs/catalog/glob.h"
#include "fs/catalog/samples-inside.h"

#include <sys/mman.h>

/* --- a list --- */

static struct digest files_digest(const struct samples *s)
{
    enum { BLOCK = 4096 };
    uint32_t count = s->content.count;
    struct digest d = hash128(catalog_digest(s->catalog), sizeof(struct digest), count);
    uint32_t block[BLOCK];
    for (uint64_t i = 0; i < count; i += BLOCK) {
        uint32_t n = count - i < BLOCK ? (uint32_t)(count - i) : BLOCK;
        for (uint32_t k = 0; k < n; k++)
            block[k] = samples_file(s, (uint32_t)i + k);
        struct digest pair[2] = {d, hash128(block, n * sizeof *block, digest_head(&d))};
        d = hash128(pair, sizeof pair, 0);
    }
    return d;
}

/* Of the content, however the list was made: `all` and an upload of all files in order have the same digest. */
static struct digest list_digest(const struct samples *s)
{
    const struct samples_content *content = &s->content;
    if (content->cost) {
        const struct digest costs[] = {*catalog_digest(s->catalog), content->of,
                                       hash128(content->cost, content->count * sizeof *content->cost, 0)};
        return hash128(costs, sizeof costs, content->count);
    }
    if (!content->record)
        return files_digest(s);
    struct digest parts[2] = {*catalog_digest(s->catalog)};
    parts[1] = hash128(content->record, content->count * sizeof *content->record,
                       hash64(&content->traits, sizeof content->traits, 0));
    return hash128(parts, sizeof parts, content->count);
}

static struct samples *list_make(const struct catalog *c, const struct samples_content *content)
{
    struct samples *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    atomic_init(&s->references, 1);
    pthread_mutex_init(&s->text.lock, NULL);
    s->catalog = c;
    s->content = *content;
    s->digest = list_digest(s);
    return s;
}

struct samples *samples_all(const struct catalog *c)
{
    return list_make(c, &(struct samples_content){.count = catalog_files(c)});
}

struct samples *samples_make_mapped(const struct catalog *c, const struct samples_content *content, void *map, size_t n)
{
    struct samples *s = list_make(c, content);
    if (!s) {
        munmap(map, n);
        return NULL;
    }
    s->map = map;
    s->map_length = n;
    return s;
}

struct samples *samples_make_scratch(const struct catalog *c, const struct samples_content *content,
                                     struct scratch *memory)
{
    struct samples *s = list_make(c, content);
    if (!s) {
        scratch_fini(memory);
        return NULL;
    }
    s->memory = *memory;
    *memory = (struct scratch){0};
    return s;
}

struct samples *samples_get(struct samples *s)
{
    atomic_fetch_add(&s->references, 1);
    return s;
}

void samples_put(struct samples *s)
{
    if (!s || atomic_fetch_sub(&s->references, 1) > 1)
        return;
    KEEP_ERRNO;
    if (s->map)
        munmap(s->map, s->map_length);
    scratch_fini(&s->memory);
    free(s->own);
    free(s->class);
    free(s->text.mark);
    pthread_mutex_destroy(&s->text.lock);
    free(s);
}

uint32_t samples_count(const struct samples *s)
{
    return s->content.count;
}

uint32_t samples_file(const struct samples *s, uint32_t index)
{
    const struct samples_content *content = &s->content;
    return content->record ? content->record[index].file : content->file ? content->file[index] : index;
}

uint64_t samples_offset(const struct samples *s, uint32_t index)
{
    return s->content.record ? record_offset(&s->content.record[index]) : 0;
}

uint64_t samples_length(const struct samples *s, uint32_t index)
{
    return s->content.record ? s->content.record[index].length : catalog_file(s->catalog, samples_file(s, index)).size;
}

const struct record *samples_records(const struct samples *s)
{
    return s->content.record;
}

bool samples_packed(const struct samples *s)
{
    return s->content.record || s->class;
}

struct record samples_record(const struct samples *s, uint32_t index)
{
    if (s->content.record)
        return s->content.record[index];
    uint32_t file = samples_file(s, index);
    uint64_t length = samples_length(s, index);
    return (struct record){.file = file,
                           .length = length < RECORD_LENGTH_MOST ? (uint32_t)length : RECORD_LENGTH_MOST,
                           .label = samples_class(s, file)};
}

const struct record_traits *samples_traits(const struct samples *s)
{
    return &s->content.traits;
}

const struct digest *samples_digest(const struct samples *s)
{
    return &s->digest;
}

int samples_from_costs(const struct samples *of, const void *payload, size_t n, struct samples **out, struct str *why)
{
    static const uint32_t none;
    struct samples_content content = {.count = samples_count(of), .cost = &none, .of = *samples_digest(of)};
    if (n != content.count * sizeof *content.cost)
        return str_fail(
            why, -EINVAL,
            "the payload must be one little-endian 32-bit number for each of the %u samples of the list: %zu "
            "bytes, not %zu",
            content.count, content.count * sizeof *content.cost, n);
    uint32_t *own = malloc(n + 1);
    if (!own)
        return str_no_memory(why);
    memcpy(own, payload, n);
    content.cost = own;
    *out = list_make(of->catalog, &content);
    if (!*out) {
        free(own);
        return str_no_memory(why);
    }
    (*out)->own = own;
    return 0;
}

const uint32_t *samples_costs(const struct samples *s)
{
    return s->content.cost;
}

bool samples_costs_are_of(const struct samples *s, const struct samples *list)
{
    return s->content.cost && s->content.count == samples_count(list) &&
           digest_equal(&s->content.of, samples_digest(list));
}

int files_add(struct files *f, uint32_t file)
{
    if (f->count == UINT32_MAX)
        return -EFBIG;
    if (array_reserve(f->file, f->capacity, (size_t)f->count + 1))
        return -ENOMEM;
    f->file[f->count++] = file;
    return 0;
}

int files_to_samples(struct files *f, int error, const struct catalog *c, struct samples **out)
{
    static const uint32_t none;
    uint32_t *fitting = f->count ? realloc(f->file, f->count * sizeof *f->file) : NULL;
    uint32_t *own = fitting ? fitting : f->file;
    const struct samples_content content = {.count = f->count, .file = own ? own : &none};
    struct samples *s = error ? NULL : list_make(c, &content);
    if (!s) {
        free(own);
        return error ? error : -ENOMEM;
    }
    s->own = own;
    *out = s;
    return 0;
}

int samples_from_files(const struct catalog *c, uint32_t *file, uint32_t count, struct samples **out)
{
    struct files files = {file, count, count};
    return files_to_samples(&files, 0, c, out);
}

/* --- selection --- */

struct selection {
    const struct catalog *catalog;
    uint64_t under;    /* CATALOG_ROOT: all */
    const char *match; /* NULL: all */
    bool whole_path;
    uint64_t parent; /* parent of the previous file; whether it is below `under` */
    bool parent_is_under;
    char *path;
};

static bool is_under(struct selection *s, uint64_t parent)
{
    if (s->under == CATALOG_ROOT)
        return true;
    if (parent == s->parent)
        return s->parent_is_under;
    uint64_t at = parent;
    while (at > s->under) /* parents have lower numbers */
        at = catalog_parent(s->catalog, at);
    s->parent = parent;
    s->parent_is_under = at == s->under;
    return s->parent_is_under;
}

static bool is_selected(struct selection *s, uint32_t file)
{
    uint64_t ino = catalog_file_ino(s->catalog, file);
    if (!is_under(s, catalog_parent(s->catalog, ino)))
        return false;
    if (!s->match)
        return true;
    if (s->whole_path) {
        long n = catalog_path(s->catalog, ino, s->path, CATALOG_PATH_MAX);
        return n >= 0 && glob_match(s->match, s->path, (size_t)n);
    }
    size_t n;
    const char *name = catalog_name(s->catalog, ino, &n);
    return glob_match(s->match, name, n);
}

static int find_under(struct selection *s, const char *under, struct str *why)
{
    if (!under)
        return 0;
    int error = catalog_find(s->catalog, under, strlen(under), &s->under);
    if (!error && s->under > catalog_directories(s->catalog))
        error = -ENOTDIR;
    if (error) {
        str_adds(why, "under=");
        str_add_printable(why, under, strlen(under));
        str_addf(why, ": %s", strerror(-error));
    }
    return error;
}

/* For a record list: `chosen` are numbers of its records, and are freed. Shared keys: as in `base`. */
static int select_records(const struct samples *base, struct files *chosen, int error, struct samples **out)
{
    struct samples_content content = base->content;
    struct scratch memory = {0};
    if (!error)
        error = scratch_make(NULL, chosen->count * sizeof *content.record, &memory);
    struct record *record = memory.bytes;
    for (uint32_t i = 0; !error && i < chosen->count; i++)
        record[i] = base->content.record[chosen->file[i]];
    content.count = chosen->count;
    content.record = record;
    free(chosen->file);
    if (error)
        return error;
    *out = samples_make_scratch(base->catalog, &content, &memory);
    return *out ? 0 : -ENOMEM;
}

int samples_select(const struct samples *base, const char *under, const char *match, struct samples **out,
                   struct str *why)
{
    struct selection s = {.catalog = base->catalog, .under = CATALOG_ROOT, .match = match};
    int error = find_under(&s, under, why);
    if (error)
        return error;
    s.whole_path = match && glob_has_slash(match);
    while (s.match && *s.match == '/')
        s.match++;
    CLEANUP_FREE char *path = s.path = malloc(CATALOG_PATH_MAX);
    struct files files = {0};
    error = path ? 0 : -ENOMEM;
    for (uint32_t i = 0; !error && i < samples_count(base); i++)
        if (is_selected(&s, samples_file(base, i)))
            error = files_add(&files, base->content.record ? i : samples_file(base, i));
    error = base->content.record ? select_records(base, &files, error, out)
                                 : files_to_samples(&files, error, base->catalog, out);
    if (error)
        str_addf(why, "sample list: %s", strerror(-error));
    return error;
}
