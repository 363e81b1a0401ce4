/* The source as a layer.
 *
 * Threads: any number read concurrently. The only state is counters and the handles, which have their own lock.
 *
 * Nothing is trusted: the file is opened beneath the root without following links; it must be a regular file with the
 * catalog's size, mtime and ctime before and after the read, and must return every requested byte. If its mode, owner
 * or links explain a new ctime, the witness gives a cached value, which is compared. The check after the read asks the
 * server of a network filesystem, not its cache: another machine may have written to the file. */
#include "fs/store/source.h"

#include "fs/base/beneath.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/str.h"
#include "fs/store/handles.h"
#include "fs/store/proof.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

enum { VECTOR = PIECE_BYTES / VALUE_BYTES + 1, LOG_BURST = 10 };

struct source {
    struct layer layer;
    const struct catalog *catalog;
    struct root root;
    struct handles handles;
    atomic_bool atime; /* O_NOATIME was refused once: the files belong to another user */
    struct source_counts *counts, own;
    struct source_witness witness;
    struct modes *modes; /* NULL: not noted */
};

static struct source *source_of(struct layer *layer)
{
    return (struct source *)layer;
}

/* Log one line with path and cause. Returns the error. */
static int complain(struct source *s, uint32_t file, int error, const char *cause)
{
    char path[CATALOG_PATH_MAX];
    long n = catalog_path(s->catalog, catalog_file_ino(s->catalog, file), path, sizeof path);
    CLEANUP_STR struct str name = STR_INIT;
    str_add_printable(&name, path, n < 0 ? 0 : (size_t)n);
    log_limited(LOG_LEVEL_WARNING, LOG_BURST, "read %.1000s from the source: %s%s%s", name.data ? name.data : "?",
                cause, *cause ? ": " : "", strerror(-error));
    return error;
}

/* Errors that mean "not the catalog's file any more" become ESTALE; errors that may pass keep their errno. */
static int open_error(int error, const char **cause)
{
    *cause = "";
    switch (error) {
    case -ENOENT:
        *cause = "it no longer exists";
        return -ESTALE;
    case -ELOOP:
    case -ENOTDIR:
    case -EXDEV:
    case -ENXIO:
    case -ENODEV:
        *cause = "it or a folder above it was replaced";
        return -ESTALE;
    default:
        return error;
    }
}

/* Open a file with a lease: a blocking open makes the holder give it up. Only for regular files. */
static int open_leased(int root, const char *path, int flags)
{
    struct stat st;
    char name[64];
    CLEANUP_CLOSE int seen = beneath_open(root, path, O_PATH | O_CLOEXEC);
    if (seen < 0)
        return seen;
    if (fstat(seen, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EBUSY;
    snprintf(name, sizeof name, "/proc/self/fd/%d", seen);
    int fd = open(name, flags & ~O_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

static void note_mode(struct source *s, uint32_t file, const struct stat *st)
{
    if (s->modes)
        modes_note(s->modes, catalog_file_ino(s->catalog, file), st);
}

/* A file that this user may not read any more. */
static void note_denied(struct source *s, uint32_t file, const char *path)
{
    struct stat st;
    CLEANUP_CLOSE int seen = s->modes ? beneath_open(s->root.fd, path, O_PATH | O_CLOEXEC) : -1;
    if (seen < 0 || state_look(seen, NULL, 0, &st, NULL))
        return;
    state_limit_mode(seen, NULL, &st, NULL);
    note_mode(s, file, &st);
}

/* O_NONBLOCK: a fifo in the file's place must not block us. */
static int open_file(struct source *s, uint32_t file, struct handle *handle)
{
    char path[CATALOG_PATH_MAX];
    long n = catalog_path(s->catalog, catalog_file_ino(s->catalog, file), path, sizeof path);
    if (n < 0)
        return complain(s, file, (int)n, "");
    int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    bool atime = atomic_load_explicit(&s->atime, memory_order_relaxed);
    int fd = beneath_open(s->root.fd, path, flags | (atime ? 0 : O_NOATIME));
    if (fd == -EPERM && !atime) {
        atomic_store_explicit(&s->atime, true, memory_order_relaxed);
        fd = beneath_open(s->root.fd, path, flags);
        atime = true;
    }
    if (fd == -EAGAIN)
        fd = open_leased(s->root.fd, path, flags | (atime ? 0 : O_NOATIME));
    if (fd == -EACCES)
        note_denied(s, file, path);
    if (fd < 0) {
        const char *cause;
        int error = open_error(fd, &cause);
        return complain(s, file, error, cause);
    }
    atomic_fetch_add_explicit(&s->counts->samples, 1, memory_order_relaxed);
    *handle = (struct handle){.fd = fd, .file = file, .opened = clock_now()};
    return 0;
}

static int read_bytes(struct source *s, const struct handle *handle, const struct span *span, const struct iovec *into,
                      int count);

/* -ESTALE: the file has other bytes than a cached value of it. */
static int compare_cached(struct source *s, const struct handle *handle)
{
    struct answer cached;
    struct span span;
    answer_init(&cached);
    int error = s->witness.draw ? s->witness.draw(s->witness.user, handle->file, &span, &cached) : -ENOENT;
    if (error == -ENOENT)
        return 0;
    if (error)
        return complain(s, handle->file, error, "its mode, owner or links have changed, and its bytes may have");
    CLEANUP_FREE char *bytes = malloc(span.length);
    error = bytes ? read_bytes(s, handle, &span, &(struct iovec){bytes, span.length}, 1) : -ENOMEM;
    bool differs = !error && !proof_equal(&cached, bytes, span.length);
    answer_release(&cached);
    if (!differs)
        return error;
    s->witness.differs(s->witness.user, handle->file);
    return -ESTALE;
}

/* `state` is the expected state, and is updated: a harmless change of it must not excuse a later one. */
static int check_file(struct source *s, const struct handle *handle, int flags, struct file_state *state)
{
    struct file_state want = *state;
    char cause[96];
    struct stat st;
    uint32_t object = 0;
    int error = state_look(handle->fd, NULL, flags, &st, want.ctime ? &object : NULL);
    if (error)
        return complain(s, handle->file, error, "");
    if (!S_ISREG(st.st_mode))
        return complain(s, handle->file, -ESTALE, "it is no longer a regular file");
    *state = state_like(&want, catalog_notes(s->catalog)->acls, handle->fd, NULL, &st, object);
    st.st_mode = S_IFREG | state->mode;
    note_mode(s, handle->file, &st);
    if (!want.ctime)
        state->ctime = 0;
    switch (state_compare(&want, state)) {
    case STATE_SAME:
        return 0;
    case STATE_EXCUSED:
        return compare_cached(s, handle);
    case STATE_SIZE:
        snprintf(cause, sizeof cause, "its size was %" PRIu64 " and is %" PRIu64, want.size, state->size);
        return complain(s, handle->file, -ESTALE, cause);
    case STATE_CTIME:
        return complain(s, handle->file, -ESTALE,
                        "its ctime has changed since the scan, although its mtime has not (see identity=mtime)");
    case STATE_MTIME:
        break;
    }
    return complain(s, handle->file, -ESTALE, "it has changed since the scan");
}

/* Remove the first `n` bytes of a vector. */
static int vector_advance(struct iovec *v, int count, size_t n)
{
    int done = 0;
    while (done < count && n >= v[done].iov_len)
        n -= v[done++].iov_len;
    memmove(v, v + done, (size_t)(count - done) * sizeof *v);
    if (done < count) {
        v[0].iov_base = (char *)v[0].iov_base + n;
        v[0].iov_len -= n;
    }
    return count - done;
}

static int read_bytes(struct source *s, const struct handle *handle, const struct span *span, const struct iovec *into,
                      int count)
{
    struct iovec left[VECTOR];
    memcpy(left, into, (size_t)count * sizeof *into);
    /* one request for exactly these bytes, instead of readahead that guesses */
    if (span->length > VALUE_BYTES)
        posix_fadvise(handle->fd, (off_t)span->offset, span->length, POSIX_FADV_WILLNEED);
    for (uint64_t at = 0; at < span->length;) {
        ssize_t n = preadv(handle->fd, left, count, (off_t)(span->offset + at));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return complain(s, handle->file, -errno, "");
        if (n == 0)
            return complain(s, handle->file, -ESTALE, "it ends before its size");
        atomic_fetch_add_explicit(&s->counts->bytes, (uint64_t)n, memory_order_relaxed);
        count = vector_advance(left, count, (size_t)n);
        at += (uint64_t)n;
    }
    return 0;
}

static int read_checked(struct source *s, const struct handle *handle, const struct span *span,
                        const struct iovec *into, int count)
{
    struct file_state state = catalog_state(s->catalog, handle->file);
    int error = check_file(s, handle, 0, &state);
    if (!error)
        error = read_bytes(s, handle, span, into, count);
    return error ? error : check_file(s, handle, AT_STATX_FORCE_SYNC, &state);
}

static bool arguments_fit(struct source *s, const struct span *span, const struct iovec *into, int count)
{
    if (span->file >= catalog_files(s->catalog) || count < 1 || count > VECTOR)
        return false;
    uint64_t size = catalog_file(s->catalog, span->file).size, room = 0;
    for (int i = 0; i < count; i++)
        room += into[i].iov_len;
    return room == span->length && span->length > 0 && span->offset <= size && span->length <= size - span->offset;
}

/* A cached handle, if its file still has a name. */
static bool take_kept(struct source *s, uint32_t file, struct handle *handle)
{
    struct stat st;
    if (handles_take(&s->handles, file, handle) < 0)
        return false;
    if (fstat(handle->fd, &st) == 0 && st.st_nlink > 0)
        return true;
    close(steal_fd(handle->fd));
    return false;
}

/* `again`: open the path, ignore cached handles. */
static int read_file(struct source *s, const struct span *span, const struct iovec *into, int count, bool again)
{
    bool whole = span->length == catalog_file(s->catalog, span->file).size;
    struct handle handle = {.fd = -1};
    bool kept = !whole && !again && take_kept(s, span->file, &handle);
    int error = kept ? 0 : open_file(s, span->file, &handle);
    if (!error)
        error = read_checked(s, &handle, span, into, count);
    if (error && kept) {
        /* the path may lead to another file now, which may be as in the catalog */
        close(steal_fd(handle.fd));
        error = open_file(s, span->file, &handle);
        if (!error)
            error = read_checked(s, &handle, span, into, count);
    }
    if (!error && !whole)
        handles_give(&s->handles, handle);
    else if (handle.fd >= 0)
        close(handle.fd);
    return error;
}

static int source_read(struct layer *layer, const struct span *span, const struct iovec *into, int count)
{
    struct source *s = source_of(layer);
    if (!arguments_fit(s, span, into, count))
        return -EINVAL;
    unsigned opened = root_opened(&s->root);
    int error = read_file(s, span, into, count, false);
    if (error && root_regain(&s->root, error, opened))
        error = read_file(s, span, into, count, true);
    return error == -EAGAIN ? -EBUSY : error; /* here, EAGAIN would mean that an answer follows */
}

static int source_get(struct layer *layer, const struct span *span, struct answer *answer)
{
    CLEANUP_FREE char *bytes = malloc(span->length);
    if (!bytes)
        return -ENOMEM;
    int error = source_read(layer, span, &(struct iovec){bytes, span->length}, 1);
    if (error)
        return error;
    answer_pin(answer, free, bytes);
    answer_add(answer, steal_pointer(bytes), span->length);
    return 0;
}

static void source_idle(struct layer *layer)
{
    handles_expire(&source_of(layer)->handles);
}

static void source_destroy(struct layer *layer)
{
    struct source *s = source_of(layer);
    handles_fini(&s->handles);
    root_fini(&s->root);
    free(s);
}

static const struct layer_ops source_ops = {
    .get = source_get,
    .read = source_read,
    .idle = source_idle,
    .destroy = source_destroy,
};

int source_create(const struct catalog *catalog, int root, root_open *reopen, void *user, struct layer **layer)
{
    struct source *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->layer.ops = &source_ops;
    s->catalog = catalog;
    s->counts = &s->own;
    root_init(&s->root, root, reopen, user);
    handles_init(&s->handles);
    *layer = &s->layer;
    return 0;
}

void source_count_in(struct layer *layer, struct source_counts *counts)
{
    struct source *s = source_of(layer);
    s->counts = counts;
}

void source_set_witness(struct layer *layer, const struct source_witness *witness)
{
    source_of(layer)->witness = *witness;
}

void source_note_modes(struct layer *layer, struct modes *modes)
{
    struct source *s = source_of(layer);
    s->modes = modes;
}

void source_root(struct layer *layer, struct root_state *root)
{
    struct source *s = source_of(layer);
    root_look(&s->root, root);
}
