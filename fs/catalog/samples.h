/* Sample lists: named orders of the catalog's files, or of records, which are ranges of files.
 *
 * `all` is the catalog's own order and costs no memory; others are an array of file numbers, or of records. Immutable
 * once made and counted by reference, so that a list can be replaced while somebody reads it. */
#ifndef FS_CATALOG_SAMPLES_H
#define FS_CATALOG_SAMPLES_H

#include "fs/base/str.h"
#include "fs/catalog/catalog.h"
#include "fs/catalog/record.h"

#include <string.h>
#include <sys/types.h>

struct samples;

struct samples *samples_all(const struct catalog *c);
/* Files below top-level directories whose names end like torchvision's images (.jpg .jpeg .png .ppm .bmp .pgm .tif
 * .tiff .webp, any case): index i of ImageFolder over the mount is sample i. Its label is the class's index. */
struct samples *samples_imagefolder(const struct catalog *c);
/* Of `base`, the files below directory `under` (NULL: all) whose path matches the glob (NULL: all; `*` does not
 * cross a slash, `**` does; a glob without a slash is matched against the name alone). */
int samples_select(const struct samples *base, const char *under, const char *match, struct samples **out,
                   struct str *why);
/* Paths that somebody uploads, separated by '\n' or '\0': relative, or absolute below one of the prefixes. A missing
 * last separator is accepted. With newlines, so are CRLF and the escapes of samples_text_read; with NUL a path is what
 * it is. */
struct samples_upload {
    const char *text;
    size_t length;
    char separator;
    const char *const *prefixes; /* NULL-terminated; or NULL: none */
};
/* Paths may repeat. An empty text gives an empty list. `why` names the first path that is not a file, with its line:
 * -ENOENT, -ENOTDIR, -EISDIR, -EINVAL (a symlink, or an empty line), -EXDEV (absolute, below no prefix). */
int samples_from_paths(const struct catalog *c, const struct samples_upload *upload, struct samples **out,
                       struct str *why);

/* The files of these numbers; takes the array over, which malloc has made. */
int samples_from_files(const struct catalog *c, uint32_t *file, uint32_t count, struct samples **out);

/* Records, each a line: path TAB offset TAB length [TAB label [TAB key]], where TAB, newline, carriage return and % in
 * a path are percent-encoded; a `+` behind the length stands for RECORD_NEWLINE. Either all lines have a key or none.
 * `why` names the first line (packed: record) that is refused: as above; -EINVAL: it is not of this form; -ERANGE: the
 * range does not lie in the file, or is 4 GiB or longer. */
struct record_terms {
    enum record_format format;
    bool packed;           /* the text is an array of struct record */
    const char *directory; /* where there may be a scratch file; or NULL */
};
int samples_from_records(const struct catalog *c, const struct samples_upload *upload, const struct record_terms *terms,
                         struct samples **out, struct str *why);

/* What the samples of another list cost, one number for each: a list in the same table, but of no samples. `payload`: n
 * bytes of little-endian numbers, as many as that list has samples, or -EINVAL. */
int samples_from_costs(const struct catalog *c, const struct samples *of, const void *payload, size_t n,
                       struct samples **out, struct str *why);
const uint32_t *samples_costs(const struct samples *s); /* NULL: it is a list of samples */
bool samples_costs_are_of(const struct samples *s, const struct samples *list);

struct samples *samples_get(struct samples *s);
void samples_put(struct samples *s);
uint32_t samples_count(const struct samples *s);
uint32_t samples_file(const struct samples *s, uint32_t index);
uint64_t samples_offset(const struct samples *s, uint32_t index); /* where it begins in its file */
uint64_t samples_length(const struct samples *s, uint32_t index); /* its bytes, RECORD_NEWLINE's not among them */
const struct record *samples_records(const struct samples *s);    /* NULL: a list of files */
/* Sample i of a list of records, or of `imagefolder`: all of the file, whose length is RECORD_LENGTH_MOST at most. */
bool samples_packed(const struct samples *s); /* it is one of these */
struct record samples_record(const struct samples *s, uint32_t index);
const struct record_traits *samples_traits(const struct samples *s);
const struct digest *samples_digest(const struct samples *s);

/* Kept on disk across servers; refused with -ESTALE when the catalog's digest is another, with -EPROTO when the file is
 * of another version of its format. `version`: which list of its name this is. `samples_hold` keeps the same bytes in
 * memory. */
enum { SAMPLES_HEADER = 88 };
int samples_save(const struct samples *s, uint64_t version, const char *path);
int samples_hold(const struct samples *s, uint64_t version, struct samples **out);
int samples_load(const struct catalog *c, const char *path, struct samples **out, uint64_t *version);
int samples_load_fd(const struct catalog *c, int fd, struct samples **out, uint64_t *version);

/* As text, a path per line, or a record without its key, for samples files in the control mount: length of the whole,
 * and any slice of it, fast.
 * In a path, newline, carriage return and backslash are written \n, \r and \\, so that a line is always one path.
 * The length is 0 when memory runs out. What is read is appended; less than n at the end. */
uint64_t samples_text_length(struct samples *s);
int samples_text_read(struct samples *s, uint64_t offset, size_t n, struct str *out);
/* Those escapes alone: add a path with them, and take them out of a line, where other backslashes stand for themselves.
 * `path` has room for n bytes, or is the line; returns its length. */
void samples_text_escape(const char *path, size_t n, struct str *out);
size_t samples_text_unescape(const char *line, size_t n, char *path);

/* All lists of a mount by name; any thread. `all` and `imagefolder` are always there, made when first asked for. */
bool samples_built_in(const char *name);
struct samples_table;
int samples_table_create(const struct catalog *c, const char *directory, struct samples_table **table);
void samples_table_destroy(struct samples_table *table);
struct samples *samples_table_find(struct samples_table *table, const char *name);  /* a reference, or NULL */
struct samples *samples_table_costs(struct samples_table *table, const char *name); /* the same of costs */
/* Names are 1…64 of A-Za-z0-9._- and do not begin with a dot; those two are -EEXIST. Takes the reference over.
 * -ENOTUNIQ: a list of samples and one of costs would have the same name. -EDQUOT: there are SAMPLES_LISTS already;
 * -E2BIG: they would have more than samples_table_most entries together. */
int samples_table_put(struct samples_table *table, const char *name, struct samples *s);
/* The same, with a version higher than `after`. */
int samples_table_put_after(struct samples_table *table, const char *name, uint64_t after, struct samples *s);
uint64_t samples_table_version(struct samples_table *table, const char *name);       /* 0: no list was uploaded */
int samples_table_remove(struct samples_table *table, const char *name, bool costs); /* -ENOENT */
int samples_table_names(struct samples_table *table, bool costs, struct str *names); /* NUL-separated, sorted */
enum { SAMPLES_LISTS = 64, SAMPLES_RECORDS = 2 * SAMPLES_LISTS, SAMPLES_NAME = 64 };
uint64_t samples_table_most(const struct samples_table *table);
uint64_t samples_table_record_count(struct samples_table *table);       /* of all record lists */
const char *samples_table_directory(const struct samples_table *table); /* NULL: lists are not kept */
/* Records are counted by themselves, and so are costs. */
#define SAMPLES_RECORDS_MOST (UINT64_C(50) << 20)

/* What nodes tell each other about their lists, and about names that were removed. */
struct samples_record {
    char name[SAMPLES_NAME + 8]; /* NULs follow */
    uint64_t version;
    uint64_t count; /* 0: removed, the digest is zero */
    struct digest digest;
};
/* All uploaded and removed ones; returns their number. */
uint32_t samples_table_records(struct samples_table *table, struct samples_record record[SAMPLES_RECORDS]);
/* Orders two records of one name: > 0 if `a` replaces `b`. The higher version does. Nodes that could not hear each
 * other may give one version to different lists: then the higher digest does. */
int samples_record_compare(const struct samples_record *a, const struct samples_record *b);
/* Is it newer than what this table has? Nothing in it is trusted: also false when it is malformed. */
bool samples_table_wants(struct samples_table *table, const struct samples_record *record);
/* What such a record says, from now on also here. `fd` has the list's bytes where it is none of a removed one; 0 also
 * when something newer has come meanwhile. -EBADMSG: the bytes are of another list. */
int samples_table_take(struct samples_table *table, const struct samples_record *record, int fd);
/* The bytes of a list by the beginning of its digest: up to n of them from `offset` on, and how many there are in all.
 * -ENOENT: there is no such list, or it ends before. */
ssize_t samples_table_bytes(struct samples_table *table, uint64_t key, uint64_t offset, void *to, size_t n,
                            uint64_t *length);
static inline uint64_t samples_key(const struct digest *digest)
{
    uint64_t key;
    memcpy(&key, digest->byte, sizeof key);
    return key;
}

#endif
