/* Checks a catalog completely when it is opened; nothing in it is trusted before.
 *
 * Afterwards every index, offset and length in the file is valid, names are names, and walks up or down the tree end: a
 * directory's children have higher numbers than itself, every inode except the root is the child of exactly one
 * directory, and that directory is its parent. So no other file of this folder checks again. A correct checksum is not
 * enough: a catalog may come from another node. */
#include "fs/catalog/catalog-inside.h"

#include <errno.h>
#include <string.h>

static bool check_header(const struct format_header *header, size_t n)
{
    if (n < sizeof *header || memcmp(header->magic, FORMAT_MAGIC, sizeof header->magic) != 0 ||
        header->version != FORMAT_VERSION || header->endian != FORMAT_ENDIAN || header->length != n)
        return false;
    struct format_section section[PARTS];
    memcpy(section, header->section, sizeof section);
    return format_layout(section) == n && memcmp(section, header->section, sizeof section) == 0;
}

static bool check_hashes(const void *bytes)
{
    const struct format_header *header = bytes;
    struct digest digest = format_digest(bytes), versions = format_versions(bytes), checksum = format_checksum(bytes);
    return digest_equal(&digest, &header->digest) && memcmp(&versions, &header->versions, sizeof versions) == 0 &&
           memcmp(&checksum, &header->checksum, sizeof checksum) == 0;
}

static void find_sections(struct catalog *c, const char *bytes)
{
    const struct format_section *section = ((const struct format_header *)bytes)->section;
    c->header = (const void *)bytes;
    c->scan = (const void *)(bytes + section[PART_SCAN].offset);
    c->version = (const void *)(bytes + section[PART_VERSIONS].offset);
    c->seen = (const void *)(bytes + section[PART_SEEN].offset);
    c->directory = (const void *)(bytes + section[PART_DIRECTORIES].offset);
    c->file = (const void *)(bytes + section[PART_FILES].offset);
    c->link = (const void *)(bytes + section[PART_LINKS].offset);
    c->attribute = (const void *)(bytes + section[PART_ATTRIBUTES].offset);
    c->names = bytes + section[PART_NAMES].offset;
    c->directories = (uint32_t)section[PART_DIRECTORIES].count;
    c->files = (uint32_t)section[PART_FILES].count;
    c->links = (uint32_t)section[PART_LINKS].count;
    c->attributes = section[PART_ATTRIBUTES].count;
    c->name_bytes = section[PART_NAMES].count;
}

static bool check_attributes(const struct catalog *c)
{
    for (uint64_t i = 0; i < c->attributes; i++)
        if (c->attribute[i].mode > 07777)
            return false;
    return true;
}

/* The children of directory d are the next ones of each kind that no earlier directory has claimed, and d itself was
 * claimed before. So the slices cover everything once, and the directories form a tree. */
static bool check_directories(const struct catalog *c)
{
    uint64_t next = CATALOG_ROOT + 1, link = 0, files = 0;
    for (uint64_t d = CATALOG_ROOT; d <= c->directories; d++) {
        const struct format_directory *r = catalog_dir(c, d);
        if (d >= next || r->attribute >= c->attributes)
            return false;
        if (r->first_directory != next || r->directories > c->directories + 1 - next)
            return false;
        if (r->first_link != link || r->links > c->links - link)
            return false;
        if (r->first_file > c->files || r->files > c->files - r->first_file)
            return false;
        for (uint64_t child = next; child < next + r->directories; child++)
            if (catalog_dir(c, child)->parent != d)
                return false;
        next += r->directories;
        link += r->links;
        files += r->files;
    }
    return next == (uint64_t)c->directories + 1 && link == c->links && files == c->files &&
           catalog_dir(c, CATALOG_ROOT)->parent == CATALOG_ROOT;
}

/* Names are in the order of inodes, each with a NUL. */
struct name_walk {
    const struct catalog *c;
    uint64_t next;   /* where the next name must begin */
    uint64_t names;  /* number so far */
    uint64_t before; /* the previous name in the same directory, which must sort before this one; UINT64_MAX: none */
};

static inline bool walk_string(struct name_walk *w, uint64_t name)
{
    uint64_t offset = name_offset(name);
    size_t length = name_length(name);
    if (offset != w->next || length >= w->c->name_bytes - w->next || w->c->names[offset + length] != '\0')
        return false;
    w->next += length + 1;
    w->names++;
    return true;
}

static inline bool walk_name(struct name_walk *w, uint64_t name, bool first)
{
    if (!walk_string(w, name))
        return false;
    const char *text = catalog_string(w->c, name);
    size_t length = name_length(name);
    if (length <= 2 && (length == 0 || (text[0] == '.' && (length == 1 || text[1] == '.'))))
        return false;
    bool sorted = first || strcmp(w->c->names + w->before, text) < 0;
    w->before = name_offset(name);
    return sorted;
}

static bool walk_directories(struct name_walk *w)
{
    const struct catalog *c = w->c;
    uint64_t root = catalog_dir(c, CATALOG_ROOT)->name;
    if (name_length(root) != 0 || !walk_string(w, root))
        return false;
    uint32_t parent = 0;
    for (uint64_t d = CATALOG_ROOT + 1; d <= c->directories; d++) {
        const struct format_directory *r = catalog_dir(c, d);
        if (!walk_name(w, r->name, r->parent != parent))
            return false;
        parent = r->parent;
    }
    return true;
}

/* The files of a directory are one run, where its slice says. Together with check_directories' sums, no slice lacks
 * its run. */
static bool walk_files(struct name_walk *w, uint64_t *bytes)
{
    const struct catalog *c = w->c;
    uint64_t sum = 0;
    for (uint32_t f = 0; f < c->files;) {
        uint32_t parent = c->file[f].parent, first = f;
        if (parent < CATALOG_ROOT || parent > c->directories || catalog_dir(c, parent)->first_file != f ||
            catalog_dir(c, parent)->files == 0)
            return false;
        for (uint32_t end = f + catalog_dir(c, parent)->files; f < end; f++) {
            const struct format_file *r = &c->file[f];
            if (r->parent != parent || r->attribute >= c->attributes || r->size > INT64_MAX ||
                !walk_name(w, r->name, f == first))
                return false;
            sum = format_sum(sum, r->size);
        }
    }
    *bytes = sum;
    return true;
}

static bool walk_links(struct name_walk *w)
{
    const struct catalog *c = w->c;
    for (uint64_t d = CATALOG_ROOT; d <= c->directories; d++) {
        const struct format_directory *r = catalog_dir(c, d);
        for (uint32_t i = 0; i < r->links; i++) {
            const struct format_link *l = &c->link[r->first_link + i];
            if (l->parent != d || l->attribute >= c->attributes || !walk_name(w, l->name, i == 0))
                return false;
        }
    }
    return true;
}

static bool walk_targets(struct name_walk *w)
{
    for (uint32_t l = 0; l < w->c->links; l++)
        if (name_length(w->c->link[l].target) == 0 || !walk_string(w, w->c->link[l].target))
            return false;
    return true;
}

static uint64_t count_byte(const char *bytes, uint64_t n, char byte)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < n;) {
        /* short inner loops with a narrow counter allow the compiler to use whole vectors */
        uint8_t some = 0;
        for (uint64_t end = n - i < 255 ? n : i + 255; i < end; i++)
            some = (uint8_t)(some + (bytes[i] == byte));
        count += some;
    }
    return count;
}

static bool check_names(const struct catalog *c)
{
    struct name_walk w = {.c = c, .before = UINT64_MAX};
    if (c->names[c->name_bytes - 1] != '\0') /* so that strcmp ends */
        return false;
    uint64_t bytes = 0;
    if (!walk_directories(&w) || !walk_files(&w, &bytes) || !walk_links(&w) || bytes != c->header->bytes)
        return false;
    uint64_t names_end = w.next;
    if (memchr(c->names, '/', names_end) || !walk_targets(&w) || w.next != c->name_bytes)
        return false;
    return count_byte(c->names, c->name_bytes, '\0') == w.names; /* no NUL inside a name */
}

/* Two sorted slices have no common name. */
static bool disjoint(const struct catalog *c, struct slice a, struct slice b)
{
    for (uint32_t i = 0, k = 0; i < a.count && k < b.count;) {
        int order = strcmp(catalog_string(c, slice_name(&a, i)), catalog_string(c, slice_name(&b, k)));
        if (order == 0)
            return false;
        i += order < 0;
        k += order > 0;
    }
    return true;
}

static bool check_unique(const struct catalog *c)
{
    for (uint64_t d = CATALOG_ROOT; d <= c->directories; d++) {
        const struct format_directory *r = catalog_dir(c, d);
        if (!disjoint(c, slice_directories(c, r), slice_files(c, r)) ||
            !disjoint(c, slice_directories(c, r), slice_links(c, r)) ||
            !disjoint(c, slice_files(c, r), slice_links(c, r)))
            return false;
    }
    return true;
}

int catalog_check(struct catalog *c, const void *bytes, size_t n)
{
    if (!check_header(bytes, n) || !check_hashes(bytes))
        return -EBADMSG;
    find_sections(c, bytes);
    c->length = n;
    return check_attributes(c) && check_directories(c) && check_names(c) && check_unique(c) ? 0 : -EBADMSG;
}
