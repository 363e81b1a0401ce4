/* Writes segments, and finds where each value is in its file. After each put, RocksDB reports how far the file has been
 * written: that is where the current block begins. The offset within the block follows from the format of blocks
 * without shared keys. Two values per file are read back to verify this. Everything that RocksDB reads when it ingests
 * the file is checked. */
#include "fs/store/rocks-inside.h"

#include "fs/base/cleanup.h"
#include "fs/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum {
    STORED_KEY = 16, /* including 8 bytes of RocksDB */
    HEAD = 16,       /* enough bytes to recognise a value */
};

/* A value to be read back. */
struct sample {
    uint64_t at;
    size_t n;
    char head[HEAD];
};

struct rocks_writer {
    struct rocks *rocks;
    rocksdb_sstfilewriter_t *writer;
    uint32_t segment;
    char *path;
    uint64_t block; /* where the current block begins */
    uint64_t used;  /* bytes of entries in it */
    struct sample first, last;
};

int rocks_write_begin(struct rocks *r, uint32_t segment, struct rocks_writer **out)
{
    CLEANUP_STR struct str path = STR_INIT;
    str_addf(&path, "%s/new-%u.sst", r->directory, segment);
    struct rocks_writer *w = calloc(1, sizeof *w);
    if (!w || path.failed) {
        free(w);
        return -ENOMEM;
    }
    *w = (struct rocks_writer){
        .rocks = r,
        .writer = rocksdb_sstfilewriter_create(r->env, r->options),
        .segment = segment,
        .path = str_steal(&path),
    };
    char *words = NULL;
    rocksdb_sstfilewriter_open(w->writer, w->path, &words);
    int error = rocks_log_error(words, "write", w->path);
    if (error)
        rocks_write_cancel(w);
    else
        *out = w;
    return error;
}

static unsigned varint_bytes(size_t n)
{
    unsigned bytes = 1;
    while (n >>= 7)
        bytes++;
    return bytes;
}

/* An entry of a block: three varints (key bytes shared with the previous key: 0; other key bytes; length of the value),
 * the key, the value. */
static uint64_t note_put(struct rocks_writer *w, const void *bytes, size_t n)
{
    uint64_t written = 0;
    rocksdb_sstfilewriter_file_size(w->writer, &written);
    if (written != w->block) {
        w->block = written;
        w->used = 0;
    }
    uint64_t at = w->block + w->used + 2 + varint_bytes(n) + STORED_KEY;
    w->used = at + n - w->block;
    w->last = (struct sample){at, n, ""};
    memcpy(w->last.head, bytes, n < HEAD ? n : HEAD);
    if (!w->first.at)
        w->first = w->last;
    return at;
}

int rocks_write_put(struct rocks_writer *w, uint32_t place, const void *bytes, size_t n, uint32_t *at)
{
    struct rocks_key key = rocks_key(w->segment, place);
    char *words = NULL;
    rocksdb_sstfilewriter_put(w->writer, (char *)&key, sizeof key, bytes, n, &words);
    int error = rocks_log_error(words, "write", w->path);
    uint64_t where = error ? 0 : note_put(w, bytes, n);
    *at = (uint32_t)where;
    return where > UINT32_MAX ? -EFBIG : error;
}

static int look_for(int fd, const struct sample *s)
{
    char head[HEAD];
    size_t n = s->n < HEAD ? s->n : HEAD;
    ssize_t got = pread(fd, head, n, (off_t)s->at);
    if (got < 0)
        return -errno;
    return (size_t)got == n && memcmp(head, s->head, n) == 0 ? 0 : -ENOTSUP;
}

/* Check what RocksDB is about to read from the disk. */
static int check_file(const struct rocks_writer *w)
{
    CLEANUP_CLOSE int fd = rocks_open_path(w->rocks, w->path);
    int error = fd < 0 ? fd : rocks_check_table(fd, true);
    if (error != -EBADMSG)
        return error;
    log_error("%s: the disk returned other bytes than were written", w->path);
    return -EIO;
}

static int check_samples(const struct rocks_writer *w)
{
    CLEANUP_CLOSE int fd = open(w->path, O_RDONLY | O_CLOEXEC);
    int error = fd < 0 ? -errno : look_for(fd, &w->first);
    if (!error)
        error = look_for(fd, &w->last);
    if (error == -ENOTSUP)
        log_error("%s: this RocksDB stores values at unexpected positions", w->path);
    return error;
}

int rocks_write_end(struct rocks_writer *w, struct rocks_file *file)
{
    char *words = NULL;
    rocksdb_sstfilewriter_finish(w->writer, &words);
    int error = rocks_log_error(words, "write", w->path);
    if (!error)
        error = check_samples(w);
    if (!error)
        error = check_file(w);
    if (!error) {
        const char *const list[] = {w->path};
        rocksdb_ingest_external_file(w->rocks->db, list, 1, w->rocks->ingest, &words);
        error = rocks_log_error(words, "store", w->path);
    }
    if (!error && (error = rocks_find(w->rocks, w->segment, file)))
        rocks_drop(w->rocks, w->segment);
    rocks_write_cancel(w);
    return error;
}

void rocks_write_cancel(struct rocks_writer *w)
{
    if (!w)
        return;
    rocksdb_sstfilewriter_destroy(w->writer);
    if (w->path)
        unlink(w->path); /* fails if it was ingested: the file has moved */
    free(w->path);
    free(w);
}
