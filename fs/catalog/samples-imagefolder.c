/* The list `imagefolder`: the samples of torchvision's ImageFolder, in its order.
 *
 * ImageFolder sorts top-level directories by name, then the directories in each by path, then the files in each by
 * name, all as Python strings. The catalog has the same order by bytes if all names are UTF-8. To Python, other bytes
 * are characters between U+D7FF and U+E000; if there are any, everything is sorted again. */
#include "fs/base/cleanup.h"
#include "fs/base/utf8.h"
#include "fs/catalog/catalog-inside.h"
#include "fs/catalog/samples-inside.h"

#include <string.h>

static unsigned char ascii_lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* No letter beyond ASCII has one of these letters as its lower case. */
static bool is_image(const char *name, size_t n)
{
    static const char *const extension[] = {".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"};
    for (size_t i = 0; i < sizeof extension / sizeof extension[0]; i++) {
        size_t length = strlen(extension[i]), same = 0;
        while (n >= length && same < length &&
               ascii_lower(name[n - length + same]) == (unsigned char)extension[i][same])
            same++;
        if (same == length)
            return true;
    }
    return false;
}

static int add_images(const struct catalog *c, const struct format_directory *d, struct files *files)
{
    for (uint32_t f = d->first_file; f < d->first_file + d->files; f++) {
        uint64_t name = c->file[f].name;
        int error = is_image(catalog_string(c, name), name_length(name)) ? files_add(files, f) : 0;
        if (error)
            return error;
    }
    return 0;
}

/* --- all names are UTF-8 --- */

static bool all_valid(const struct catalog *c)
{
    if (c->files == 0)
        return true;
    /* names of directories and files come first, each with a NUL, so they are checked as one text */
    uint64_t last = c->file[c->files - 1].name;
    return utf8_valid(c->names, name_offset(last) + name_length(last));
}

static int add_in_order(const struct catalog *c, struct files *files)
{
    for (uint32_t f = 0; f < c->files;) {
        uint32_t parent = c->file[f].parent;
        const struct format_directory *d = catalog_dir(c, parent);
        int error = parent == CATALOG_ROOT ? 0 : add_images(c, d, files);
        if (error)
            return error;
        f += d->files;
    }
    return 0;
}

/* --- some are not --- */

struct class_directory {
    uint32_t directory;
    size_t top, length; /* lengths of its first component and of the whole path */
    char *path;
};

static int class_compare(const void *a, const void *b)
{
    const struct class_directory *x = a, *y = b;
    int order = utf8_compare(x->path, x->top, y->path, y->top);
    return order ? order : utf8_compare(x->path, x->length, y->path, y->length);
}

static int file_compare(const void *a, const void *b, void *catalog)
{
    const struct catalog *c = catalog;
    uint64_t x = c->file[*(const uint32_t *)a].name, y = c->file[*(const uint32_t *)b].name;
    return utf8_compare(catalog_string(c, x), name_length(x), catalog_string(c, y), name_length(y));
}

static int list_classes(const struct catalog *c, struct class_directory *class, size_t *count)
{
    CLEANUP_FREE char *path = malloc(CATALOG_PATH_MAX);
    if (!path)
        return -ENOMEM;
    for (uint32_t d = CATALOG_ROOT + 1; d <= c->directories; d++) {
        if (catalog_dir(c, d)->files == 0)
            continue;
        long n = catalog_path(c, d, path, CATALOG_PATH_MAX);
        char *own = n < 0 ? NULL : strdup(path);
        if (!own)
            return n < 0 ? (int)n : -ENOMEM;
        class[(*count)++] = (struct class_directory){d, strcspn(path, "/"), (size_t)n, own};
    }
    return 0;
}

static int add_sorted(const struct catalog *c, struct files *files)
{
    struct class_directory *class = calloc(c->directories, sizeof *class);
    size_t count = 0;
    int error = class ? list_classes(c, class, &count) : -ENOMEM;
    if (!error)
        qsort(class, count, sizeof *class, class_compare);
    for (size_t i = 0; !error && i < count; i++) {
        uint32_t before = files->count;
        error = add_images(c, catalog_dir(c, class[i].directory), files);
        if (files->count > before)
            qsort_r(files->file + before, files->count - before, sizeof *files->file, file_compare, (void *)c);
    }
    for (size_t i = 0; i < count; i++)
        free(class[i].path);
    free(class);
    return error;
}

/* --- classes --- */

static int top_compare(const void *a, const void *b, void *catalog)
{
    const struct catalog *c = catalog;
    uint32_t first = catalog_dir(c, CATALOG_ROOT)->first_directory;
    uint64_t x = catalog_dir(c, first + *(const uint32_t *)a)->name,
             y = catalog_dir(c, first + *(const uint32_t *)b)->name;
    return utf8_compare(catalog_string(c, x), name_length(x), catalog_string(c, y), name_length(y));
}

/* Per top-level directory: its position in ImageFolder's order. NULL: no memory. */
static uint32_t *number_classes(const struct catalog *c)
{
    uint32_t count = catalog_dir(c, CATALOG_ROOT)->directories;
    CLEANUP_FREE uint32_t *sorted = calloc(count + 1ul, sizeof *sorted);
    uint32_t *class = calloc(count + 1ul, sizeof *class);
    for (uint32_t i = 0; sorted && i < count; i++)
        sorted[i] = i;
    if (sorted && class)
        qsort_r(sorted, count, sizeof *sorted, top_compare, (void *)c);
    for (uint32_t i = 0; sorted && class && i < count; i++)
        class[sorted[i]] = i;
    if (!sorted)
        cleanup_free_(&class);
    return class;
}

uint32_t samples_class(const struct samples *s, uint32_t file)
{
    const struct catalog *c = s->catalog;
    uint32_t top = c->file[file].parent;
    if (!s->class || top == CATALOG_ROOT)
        return RECORD_NO_LABEL;
    while (catalog_dir(c, top)->parent != CATALOG_ROOT)
        top = catalog_dir(c, top)->parent;
    return s->class[top - catalog_dir(c, CATALOG_ROOT)->first_directory];
}

struct samples *samples_imagefolder(const struct catalog *c)
{
    struct files files = {0};
    struct samples *s = NULL;
    int error = all_valid(c) ? add_in_order(c, &files) : add_sorted(c, &files);
    files_to_samples(&files, error, c, &s);
    if (s && !(s->class = number_classes(c)))
        samples_put(steal_pointer(s));
    return s;
}
