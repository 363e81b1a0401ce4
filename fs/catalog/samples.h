/* Sample lists: named orders of the catalog's files, or of records, which are ranges of files.
 *
 * `all` is the catalog's own order and needs no memory; others are an array of file numbers, or of records. Immutable
 * and reference-counted, so that a list can be replaced while it is being read. */
#ifndef FS_CATALOG_SAMPLES_H
#define FS_CATALOG_SAMPLES_H

#include "fs/base/str.h"
#include "fs/catalog/catalog.h"
#include "fs/catalog/record.h"

#include <sys/types.h>

struct samples;

struct samples *samples_all(const struct catalog *c);
/* Files below top-level directories with the extensions of torchvision's images (.jpg .jpeg .png .ppm .bmp .pgm .tif
 * .tiff .webp, any case): index i of ImageFolder over the mount is sample i. Its label is the class's index. */
struct samples *samples_imagefolder(const struct catalog *c);
/* The files of `base` below directory `under` (NULL: all) whose path matches the glob (NULL: all; `*` does not match a
 * slash, `**` does; a glob without slash is matched against the name only). */
int samples_select(const struct samples *base, const char *under, const char *match, struct samples **out,
                   struct str *why);
/* Uploaded paths, separated by '\n' or '\0': relative, or absolute below one of the prefixes. The last separator
 * may be missing. With newlines, CRLF and the escapes of samples_text_read are accepted; with NUL, paths are taken
 * literally. */
struct samples_upload {
    const char *text;
    size_t length;
    char separator;
    const char *const *prefixes; /* ends with NULL; or NULL: none */
};
/* Paths may repeat. An empty text gives an empty list. `why` names the first path that is not a file, with its line:
 * -ENOENT, -ENOTDIR, -EISDIR, -EINVAL (a symlink, or an empty line), -EXDEV (absolute, below no prefix). */
int samples_from_paths(const struct catalog *c, const struct samples_upload *upload, struct samples **out,
                       struct str *why);

/* The files with these numbers; owns the array, which must be malloc'd. */
int samples_from_files(const struct catalog *c, uint32_t *file, uint32_t count, struct samples **out);

/* Records, one per line: path TAB offset TAB length [TAB label [TAB key]]. In a path, TAB, newline, carriage return and
 * % are percent-encoded; a `+` after the length stands for RECORD_NEWLINE. Either all lines have a key, or none. `why`
 * names the first rejected line (packed: record): errors as above; -EINVAL: malformed; -ERANGE: the range is not within
 * the file, or has 4 GiB or more. */
struct record_terms {
    enum record_format format;
    bool packed;           /* the text is an array of struct record */
    const char *directory; /* directory for a scratch file; or NULL */
};
int samples_from_records(const struct catalog *c, const struct samples_upload *upload, const struct record_terms *terms,
                         struct samples **out, struct str *why);

/* The costs of another list's samples, one number each: in the same table, but without samples. `payload`: n bytes of
 * little-endian numbers, as many as that list has samples; else -EINVAL. */
int samples_from_costs(const struct samples *of, const void *payload, size_t n, struct samples **out, struct str *why);
const uint32_t *samples_costs(const struct samples *s); /* NULL: a list of samples */
bool samples_costs_are_of(const struct samples *s, const struct samples *list);

struct samples *samples_get(struct samples *s);
void samples_put(struct samples *s);
static inline void cleanup_samples_(struct samples **s)
{
    samples_put(*s);
}
#define CLEANUP_SAMPLES __attribute__((cleanup(cleanup_samples_)))
uint32_t samples_count(const struct samples *s);
uint32_t samples_file(const struct samples *s, uint32_t index);
uint64_t samples_offset(const struct samples *s, uint32_t index); /* offset in its file */
uint64_t samples_length(const struct samples *s, uint32_t index); /* its bytes, without that of RECORD_NEWLINE */
const struct record *samples_records(const struct samples *s);    /* NULL: a list of files */
/* Sample i of a list of records, or of `imagefolder`: the whole file, up to RECORD_LENGTH_MOST bytes. */
bool samples_packed(const struct samples *s); /* is it one of these? */
struct record samples_record(const struct samples *s, uint32_t index);
const struct record_traits *samples_traits(const struct samples *s);
const struct digest *samples_digest(const struct samples *s);
/* Of path, range and size of each sample, so that it is the same in other catalogs in which these are. It is computed
 * once. 0 or -ENOMEM. */
int samples_path_digest(struct samples *s, struct digest *digest);

/* Stored on disk across servers. -ESTALE: for another catalog; -EPROTO: of another format version. `version`: of the
 * name's content. `samples_hold` keeps the same bytes in memory. */
enum { SAMPLES_HEADER = 88 };
int samples_save(const struct samples *s, uint64_t version, const char *path);
int samples_hold(const struct samples *s, uint64_t version, struct samples **out);
int samples_load(const struct catalog *c, const char *path, struct samples **out, uint64_t *version);
int samples_load_fd(const struct catalog *c, int fd, struct samples **out, uint64_t *version);

/* As text: one path per line, or a record without its key, for the samples files of the control mount: the total
 * length, and any slice, in short time. In a path, newline, carriage return and backslash are written \n, \r and
 * \\, so that a line is always one path. The length is 0 if memory runs out. samples_text_read appends n bytes;
 * fewer at the end. */
uint64_t samples_text_length(struct samples *s);
int samples_text_read(struct samples *s, uint64_t offset, size_t n, struct str *out);
/* Only the escapes: append a path with them, or remove them from a line, in which other backslashes are literal. `path`
 * has room for n bytes, or is the line itself; returns its length. */
void samples_text_escape(const char *path, size_t n, struct str *out);
size_t samples_text_unescape(const char *line, size_t n, char *path);

/* All lists of a mount by name; any thread. `all` and `imagefolder` always exist, and are created on first use. */
bool samples_built_in(const char *name);
struct samples_table;
int samples_table_create(const struct catalog *c, const char *directory, struct samples_table **table);
void samples_table_destroy(struct samples_table *table);
struct samples *samples_table_find(struct samples_table *table, const char *name);  /* a reference, or NULL */
struct samples *samples_table_costs(struct samples_table *table, const char *name); /* the same for costs */
/* Names have 1 to 64 of A-Za-z0-9._- and do not begin with a dot; the built-in names are -EEXIST. Owns the reference.
 * -ENOTUNIQ: a list of samples and one of costs would have the same name. -EDQUOT: there are SAMPLES_LISTS already;
 * -E2BIG: together they would have more than samples_table_most entries. The version becomes higher than `after`. */
int samples_table_put(struct samples_table *table, const char *name, uint64_t after, struct samples *s);
/* 0: no list of this name was uploaded */
uint64_t samples_table_version(struct samples_table *table, const char *name);
int samples_table_remove(struct samples_table *table, const char *name, bool costs); /* -ENOENT */
int samples_table_names(struct samples_table *table, bool costs, struct str *names); /* NUL-separated, sorted */
enum { SAMPLES_LISTS = 64, SAMPLES_RECORDS = 2 * SAMPLES_LISTS, SAMPLES_NAME = 64 };
uint64_t samples_table_most(const struct samples_table *table);
uint64_t samples_table_record_count(struct samples_table *table);       /* of all record lists */
const char *samples_table_directory(const struct samples_table *table); /* NULL: lists are not stored */
/* Records and costs have separate limits. */
#define SAMPLES_RECORDS_MOST (UINT64_C(50) << 20)
#define SAMPLES_UPLOAD_MOST (UINT64_C(1) << 30) /* bytes of an uploaded list */

/* What nodes tell each other about their lists and about removed names. */
struct samples_record {
    char name[SAMPLES_NAME + 8]; /* filled up with NULs */
    uint64_t version;
    uint64_t count; /* 0: removed, the digest is zero */
    struct digest digest;
};
/* All uploaded and removed ones; returns their number. */
uint32_t samples_table_records(struct samples_table *table, struct samples_record record[SAMPLES_RECORDS]);
/* Orders two records with the same name: > 0 if `a` replaces `b`. The higher version wins. Nodes without contact may
 * give one version to different lists: then the higher digest wins. */
int samples_record_compare(const struct samples_record *a, const struct samples_record *b);
/* Is it newer than this table's record? Nothing in it is trusted: false if it is malformed. */
bool samples_table_wants(struct samples_table *table, const struct samples_record *record);
/* Apply another node's record. `fd` has the list's bytes, unless it was removed. Also 0 if a newer record arrived
 * meanwhile. -EBADMSG: the bytes are of another list. */
int samples_table_take(struct samples_table *table, const struct samples_record *record, int fd);
/* Copy up to n bytes at `offset` of the list whose digest has the head `key`; returns how many, and the total length.
 * -ENOENT: there is no such list, or it ends before. */
ssize_t samples_table_bytes(struct samples_table *table, uint64_t key, uint64_t offset, void *to, size_t n,
                            uint64_t *length);

#endif
