/* Writes a tree as a catalog file: section by section through one buffer, then the hashes, then the header, which makes
 * the file valid. */
#include "fs/base/file.h"
#include "fs/catalog/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct writer {
    int fd;
    int error;   /* the first error; nothing is written after it */
    uint64_t at; /* offset of the next byte */
    size_t used;
    char *buffer;
    const struct tree_order *order;
    uint64_t names;                     /* bytes of names assigned so far */
    uint32_t *canonical;                /* per attribute of the scan: its number in the file + 1; 0: not used yet */
    struct format_attribute *attribute; /* in the order of the file */
    uint32_t attributes;
    const struct attributes *from;
};
enum { BUFFER = 1 << 20 };

static void writer_flush(struct writer *w)
{
    if (!w->error)
        w->error = file_write_all(w->fd, w->buffer, w->used);
    w->used = 0;
}

static void writer_put(struct writer *w, const void *bytes, size_t n)
{
    const char *p = bytes;
    w->at += n;
    while (n > 0) {
        size_t some = n < BUFFER - w->used ? n : BUFFER - w->used;
        memcpy(w->buffer + w->used, p, some);
        w->used += some;
        p += some;
        n -= some;
        if (w->used == BUFFER)
            writer_flush(w);
    }
}

static void writer_align(struct writer *w)
{
    static const char zero[FORMAT_ALIGNMENT];
    writer_put(w, zero, -w->at & (FORMAT_ALIGNMENT - 1));
}

static uint32_t attribute_number(struct writer *w, uint32_t id)
{
    if (!w->canonical[id]) {
        w->attribute[w->attributes] = w->from->list[id];
        w->canonical[id] = ++w->attributes;
    }
    return w->canonical[id] - 1;
}

static uint64_t next_name(struct writer *w, size_t length)
{
    uint64_t name = name_pack(w->names, length);
    w->names += length + 1;
    return name;
}

static void put_scan(struct writer *w)
{
    for (uint64_t i = 0; i < w->order->directories; i++) {
        const struct branch *n = w->order->by_number[i];
        struct format_scan r = {
            .ctime = n->ctime,
            .specials = n->specials,
            .links_to_files = n->links_to_files,
            .flags = (n->unreadable ? SCAN_UNREADABLE : 0u) | (n->hides ? SCAN_HIDDEN : 0u) |
                     (n->lacking ? SCAN_LACKING : 0u),
        };
        writer_put(w, &r, sizeof r);
    }
}

static void put_versions(struct writer *w)
{
    for (uint64_t i = 0; i < w->order->directories; i++) {
        const struct branch *n = w->order->by_path[i];
        writer_put(w, n->version, n->files * sizeof *n->version);
    }
}

static void put_seen(struct writer *w)
{
    for (uint64_t i = 0; i < w->order->directories; i++) {
        const struct branch *n = w->order->by_path[i];
        writer_put(w, n->seen, n->files * sizeof *n->seen);
    }
}

static void put_directories(struct writer *w)
{
    for (uint64_t i = 0; i < w->order->directories; i++) {
        const struct branch *n = w->order->by_number[i];
        struct format_directory r = {
            .mtime = n->mtime,
            .name = next_name(w, n->name_length),
            .parent = n->parent ? n->parent->number : CATALOG_ROOT,
            .attribute = attribute_number(w, n->attribute),
            .first_directory = n->first_directory,
            .directories = n->alive,
            .first_file = n->first_file,
            .files = n->files,
            .first_link = n->first_link,
            .links = n->links,
        };
        writer_put(w, &r, sizeof r);
    }
}

static void put_files(struct writer *w)
{
    for (uint64_t i = 0; i < w->order->directories; i++) {
        const struct branch *n = w->order->by_path[i];
        for (uint32_t f = 0; f < n->files; f++) {
            struct format_file r = n->file[f];
            r.name = next_name(w, name_length(r.name));
            r.parent = n->number;
            r.attribute = attribute_number(w, r.attribute);
            writer_put(w, &r, sizeof r);
        }
    }
}

static void put_links(struct writer *w)
{
    /* link targets follow all names, so count the links' own names first */
    uint64_t target = w->names;
    for (uint64_t i = 0; i < w->order->directories; i++)
        for (uint32_t l = 0; l < w->order->by_number[i]->links; l++)
            target += name_length(w->order->by_number[i]->link[l].name) + 1;
    for (uint64_t i = 0; i < w->order->directories; i++) {
        const struct branch *n = w->order->by_number[i];
        for (uint32_t l = 0; l < n->links; l++) {
            struct format_link r = n->link[l];
            r.name = next_name(w, name_length(r.name));
            r.target = name_pack(target, name_length(r.target));
            target += name_length(r.target) + 1;
            r.parent = n->number;
            r.attribute = attribute_number(w, r.attribute);
            writer_put(w, &r, sizeof r);
        }
    }
}

static void put_string(struct writer *w, const struct branch *n, uint64_t name)
{
    writer_put(w, n->names + name_offset(name), name_length(name));
    writer_put(w, "", 1);
}

static void put_names(struct writer *w)
{
    const struct tree_order *o = w->order;
    for (uint64_t i = 0; i < o->directories; i++) {
        writer_put(w, o->by_number[i]->name, o->by_number[i]->name_length);
        writer_put(w, "", 1);
    }
    for (uint64_t i = 0; i < o->directories; i++)
        for (uint32_t f = 0; f < o->by_path[i]->files; f++)
            put_string(w, o->by_path[i], o->by_path[i]->file[f].name);
    for (uint64_t i = 0; i < o->directories; i++)
        for (uint32_t l = 0; l < o->by_number[i]->links; l++)
            put_string(w, o->by_number[i], o->by_number[i]->link[l].name);
    for (uint64_t i = 0; i < o->directories; i++)
        for (uint32_t l = 0; l < o->by_number[i]->links; l++)
            put_string(w, o->by_number[i], o->by_number[i]->link[l].target);
}

static void put_sections(struct writer *w, struct format_section section[PARTS])
{
    static void (*const part[PARTS])(struct writer *) = {
        [PART_SCAN] = put_scan,   [PART_VERSIONS] = put_versions,
        [PART_SEEN] = put_seen,   [PART_DIRECTORIES] = put_directories,
        [PART_FILES] = put_files, [PART_LINKS] = put_links,
        [PART_NAMES] = put_names,
    };
    for (int i = 0; i < PARTS; i++) {
        writer_align(w);
        uint64_t begin = w->at;
        if (part[i])
            part[i](w);
        else
            writer_put(w, w->attribute, w->attributes * sizeof *w->attribute);
        section[i].count = (w->at - begin) / format_size[i];
    }
    writer_flush(w);
}

/* Compute the hashes of the written file, and put them into its header. */
static int seal(int fd, struct format_header *header)
{
    char *map = mmap(NULL, header->length, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
        return -errno;
    memcpy(map, header, sizeof *header);
    header->digest = format_digest(map);
    memcpy(map, header, sizeof *header);
    header->versions = format_versions(map);
    memcpy(map, header, sizeof *header);
    header->checksum = format_checksum(map);
    munmap(map, header->length);
    ssize_t n = pwrite(fd, header, sizeof *header, 0);
    return n == (ssize_t)sizeof *header ? 0 : n < 0 ? -errno : -EIO;
}

static int write_all(struct writer *w, uint64_t scanned)
{
    struct format_header header = {
        .magic = FORMAT_MAGIC,
        .version = FORMAT_VERSION,
        .endian = FORMAT_ENDIAN,
        .scanned = scanned,
        .notes = w->order->notes,
        .bytes = w->order->bytes,
    };
    static const struct format_header blank;
    writer_put(w, &blank, sizeof blank);
    put_sections(w, header.section);
    if (w->error)
        return w->error;
    header.length = format_layout(header.section);
    return header.length == w->at ? seal(w->fd, &header) : -EFBIG;
}

int tree_write(int fd, const struct tree_order *order, const struct attributes *attributes, uint64_t scanned)
{
    struct writer w = {.fd = fd, .order = order, .from = attributes};
    w.buffer = malloc(BUFFER);
    w.canonical = calloc(attributes->count + 1, sizeof *w.canonical);
    w.attribute = calloc(attributes->count + 1, sizeof *w.attribute);
    int error = w.buffer && w.canonical && w.attribute ? write_all(&w, scanned) : -ENOMEM;
    free(w.buffer);
    free(w.canonical);
    free(w.attribute);
    return error;
}
