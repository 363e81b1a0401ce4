/* Containers of a mount, parsed through it.
 *
 * Threads: `jobs` workers take the containers in their order, parse one each, and write what they find when it is that
 * container's turn. A worker whose turn has not come keeps up to HELD bytes of records and then waits. The one whose
 * turn it is never waits, so memory is bounded and the work goes on. The caller shows the progress.
 *
 * One lock guards the turn and the outcome. Only the worker whose turn it is writes the spool, outside of the lock. */
#include "cli/live/containers.h"

#include "cli/base/command.h"
#include "cli/base/interrupt.h"
#include "cli/base/progress.h"
#include "fs/base/array.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/base/thread.h"
#include "fs/catalog/glob.h"
#include "fs/catalog/record.h"
#include "fs/catalog/samples.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HELD = 4 << 20, LIST_PIECE = 1 << 20, SHOW_MS = 100, SMALL = 64 << 10 };

struct chosen_file {
    char *path;
    uint32_t file; /* its number */
    uint64_t size;
};

struct indexing {
    const struct containers_wish *wish;
    int mount, spool;
    struct chosen_file *chosen;
    size_t count, room;
    uint64_t total; /* their bytes */

    pthread_mutex_t lock;
    pthread_cond_t changed;         /* the turn, the outcome, a worker has ended */
    size_t next;                    /* lock: container to be taken */
    size_t turn;                    /* lock: container that may write; only its worker moves it */
    int working;                    /* lock */
    int error;                      /* lock: the outcome */
    struct str *why;                /* lock: of `error` */
    struct containers_found *found; /* of the worker whose turn it is */
    uint64_t written;               /* the same */
    _Atomic uint64_t seen;          /* bytes of containers that have been passed */
};

/* A container in a worker's hands. */
struct container_job {
    struct indexing *all;
    size_t number;
    const struct chosen_file *file;
    int fd;
    bool small; /* the last read was: headers are looked at */
    struct record_scan scan;
    struct str records, why;
    uint64_t count, seen;
    bool text;      /* `records` are lines of text */
    bool ours;      /* its turn has come; */
    uint64_t began; /* the spool's length then */
};

/* --- which ones --- */

static bool is_chosen(const struct containers_wish *wish, const char *path, size_t n)
{
    size_t under = wish->under ? strlen(wish->under) : 0;
    const char *match = wish->match;
    if (under > 0 && (n <= under || memcmp(path, wish->under, under) != 0 || path[under] != '/'))
        return false;
    if (!match)
        return true;
    if (glob_has_slash(match))
        return glob_match(*match == '/' ? match + 1 : match, path, n);
    const char *slash = memrchr(path, '/', n);
    const char *name = slash ? slash + 1 : path;
    return glob_match(match, name, n - (size_t)(name - path));
}

static int choose_line(struct indexing *x, const char *line, size_t n, uint32_t number, struct str *plain)
{
    struct stat st;
    str_clear(plain);
    char *path = str_reserve(plain, n + 1);
    if (!path)
        return str_no_memory(x->why);
    n = samples_text_unescape(line, n, path);
    path[n] = '\0';
    if (!is_chosen(x->wish, path, n))
        return 0;
    int error = fstatat(x->mount, path, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
    if (error) {
        str_add_printable(x->why, path, n);
        str_addf(x->why, ": %s", strerror(-error));
        return error;
    }
    char *own = array_reserve(x->chosen, x->room, x->count + 1) ? NULL : strdup(path);
    if (!own)
        return str_no_memory(x->why);
    x->chosen[x->count++] = (struct chosen_file){own, number, (uint64_t)st.st_size};
    x->total += (uint64_t)st.st_size;
    return 0;
}

/* Line i of `samples` is file i of the mount. */
static int choose_from(struct indexing *x, int list)
{
    CLEANUP_STR struct str text = STR_INIT, plain = STR_INIT;
    uint32_t number = 0;
    for (;;) {
        char *room = str_reserve(&text, LIST_PIECE);
        ssize_t n = room ? read(list, room, LIST_PIECE) : 0;
        if (!room)
            return str_no_memory(x->why);
        if (n <= 0)
            return n < 0 ? -errno : 0;
        text.length += (size_t)n;
        size_t at = 0;
        for (const char *end; (end = memchr(text.data + at, '\n', text.length - at)); number++) {
            size_t length = (size_t)(end - (text.data + at));
            int error = choose_line(x, text.data + at, length, number, &plain);
            if (error)
                return error;
            at += length + 1;
        }
        memmove(text.data, text.data + at, text.length - at);
        text.length -= at;
    }
}

static int choose_containers(struct indexing *x, const struct live *live)
{
    CLEANUP_STR struct str path = STR_INIT;
    str_addf(&path, "%s/samples", live->control);
    CLEANUP_CLOSE int list = path.failed ? -1 : open(path.data, O_RDONLY | O_CLOEXEC);
    int error = list < 0 ? -errno : choose_from(x, list);
    if (error && !x->why->length)
        str_addf(x->why, "read the list of files: %s", strerror(-error));
    if (error || x->count > 0)
        return error;
    str_addf(x->why, "no file is chosen by --under and --match");
    return -ENOENT;
}

/* --- the turn --- */

/* False: the work has ended with an error. */
static bool await_turn(struct container_job *job)
{
    struct indexing *x = job->all;
    pthread_mutex_lock(&x->lock);
    while (x->turn < job->number && !x->error)
        pthread_cond_wait(&x->changed, &x->lock);
    bool going = !x->error;
    pthread_mutex_unlock(&x->lock);
    if (going && !job->ours) {
        job->ours = true;
        job->began = x->written;
    }
    return going;
}

static void give_up_indexing(struct indexing *x, int error, const char *path, const struct str *why)
{
    pthread_mutex_lock(&x->lock);
    if (!x->error) {
        x->error = error;
        if (path) {
            str_add_printable(x->why, path, strlen(path));
            str_adds(x->why, ": ");
        }
        str_adds(x->why, command_why(why, error));
    }
    pthread_cond_broadcast(&x->changed);
    pthread_mutex_unlock(&x->lock);
}

/* One list has one format. */
static int agree_format(struct container_job *job)
{
    struct containers_found *found = job->all->found;
    const struct container_format *mine = job->scan.format;
    if (!found->format)
        found->format = mine;
    if (strcmp(found->format->stream, mine->stream) == 0)
        return 0;
    str_addf(&job->why, "this container is %s, those before are %s; choose by --match, or name the --format",
             mine->name, found->format->name);
    return -EINVAL;
}

static int flush_records(struct container_job *job)
{
    struct indexing *x = job->all;
    if (!await_turn(job))
        return -ECANCELED;
    int error = job->records.failed ? str_no_memory(&job->why) : agree_format(job);
    if (error)
        return error;
    error = file_write_all(x->spool, job->records.data, job->records.length);
    if (error)
        str_addf(&job->why, "write the records: %s", strerror(-error));
    x->found->text = job->text;
    x->written += job->records.length;
    str_clear(&job->records);
    return error;
}

/* --- one container --- */

/* Without this the kernel would read far beyond each header: of a container of another node, through the network. */
static void expect_headers(struct container_job *job, bool small)
{
    if (job->small != small)
        posix_fadvise(job->fd, 0, 0, small ? POSIX_FADV_RANDOM : POSIX_FADV_NORMAL);
    job->small = small;
}

static int read_container(void *user, void *to, size_t n, uint64_t offset)
{
    struct container_job *job = user;
    expect_headers(job, n < SMALL);
    while (n > 0) {
        ssize_t got = interrupted ? -1 : pread(job->fd, to, n, (off_t)offset);
        if (got <= 0 && (interrupted || got == 0 || errno != EINTR)) {
            int error = interrupted ? -EINTR : got == 0 ? -ESTALE : -errno;
            str_addf(&job->why, "offset %" PRIu64 ": %s", offset, strerror(-error));
            return error;
        }
        got = got < 0 ? 0 : got;
        to = (char *)to + got;
        offset += (uint64_t)got;
        n -= (size_t)got;
    }
    atomic_fetch_add(&job->all->seen, offset > job->seen ? offset - job->seen : 0);
    job->seen = offset > job->seen ? offset : job->seen;
    return 0;
}

static void add_text(struct container_job *job, const struct found_record *r)
{
    job->text = true;
    str_add_percent(&job->records, job->file->path, strlen(job->file->path));
    str_addf(&job->records, "\t%" PRIu64 "\t%" PRIu32 "%s", r->offset, r->length, r->unended ? "+" : "");
    if (r->key) {
        str_adds(&job->records, "\t\t");
        str_add_percent(&job->records, r->key, r->key_length);
    }
    str_adds(&job->records, "\n");
}

static int note_record(void *user, const struct found_record *r)
{
    struct container_job *job = user;
    if (job->all->wish->text || r->key) {
        add_text(job, r);
    } else {
        const struct record packed = {
            .file = htole32(job->file->file),
            .length = htole32(r->length),
            .place = htole64(r->offset | (r->unended ? RECORD_NEWLINE : 0)),
            .label = htole32(RECORD_NO_LABEL),
        };
        str_add(&job->records, &packed, sizeof packed);
    }
    job->count++;
    return job->records.length >= HELD || job->records.failed ? flush_records(job) : 0;
}

static int scan_file(struct container_job *job)
{
    struct indexing *x = job->all;
    CLEANUP_CLOSE int fd = openat(x->mount, job->file->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        int error = -errno;
        str_adds(&job->why, strerror(-error));
        return error;
    }
    job->fd = fd;
    job->scan = (struct record_scan){.size = job->file->size,
                                     .read = read_container,
                                     .found = note_record,
                                     .user = job,
                                     .format = x->wish->format,
                                     .row = x->wish->row,
                                     .why = &job->why};
    int error = container_scan(&job->scan);
    return error || job->records.length == 0 ? error : flush_records(job);
}

static bool is_of_container(int error)
{
    return error == -EBADMSG || error == -ENOTSUP || error == -EFBIG;
}

/* A broken container is left out, with what has been written of it. In its turn. */
static int leave_out(struct container_job *job)
{
    struct indexing *x = job->all;
    command_note(stderr, "%s: left out: %s", job->file->path, command_why(&job->why, -EBADMSG));
    x->found->left_out++;
    job->count = 0;
    if (x->written == job->began)
        return 0;
    x->written = job->began;
    int error = ftruncate(x->spool, (off_t)job->began) < 0 ? -errno : 0;
    return error || lseek(x->spool, (off_t)job->began, SEEK_SET) >= 0 ? error : -errno;
}

static void index_container(struct indexing *x, size_t number)
{
    struct container_job job = {.all = x, .number = number, .file = &x->chosen[number]};
    int error = scan_file(&job);
    bool going = await_turn(&job);
    if (going && is_of_container(error) && x->wish->skip_broken)
        error = leave_out(&job);
    if (going && error)
        give_up_indexing(x, error, job.file->path, &job.why);
    if (going && !error) {
        x->found->containers++;
        x->found->records += job.count;
        x->found->bytes += job.file->size;
        atomic_fetch_add(&x->seen, job.file->size - job.seen);
        pthread_mutex_lock(&x->lock);
        x->turn++;
        pthread_cond_broadcast(&x->changed);
        pthread_mutex_unlock(&x->lock);
    }
    str_fini(&job.records);
    str_fini(&job.why);
}

/* --- all --- */

static void *index_body(void *user)
{
    struct indexing *x = user;
    pthread_mutex_lock(&x->lock);
    while (x->next < x->count && !x->error) {
        size_t number = x->next++;
        pthread_mutex_unlock(&x->lock);
        index_container(x, number);
        pthread_mutex_lock(&x->lock);
    }
    x->working--;
    pthread_cond_broadcast(&x->changed);
    pthread_mutex_unlock(&x->lock);
    return NULL;
}

static void show_progress(struct indexing *x)
{
    struct progress_bar progress;
    progress_begin(&progress, "indexing", stderr);
    pthread_mutex_lock(&x->lock);
    while (x->working > 0) {
        const struct progress_now now = {x->turn, x->count, atomic_load(&x->seen), x->total};
        cond_wait_until(&x->changed, &x->lock, clock_now() + SHOW_MS * MILLISECOND);
        pthread_mutex_unlock(&x->lock);
        progress_show(&progress, &now);
        pthread_mutex_lock(&x->lock);
    }
    pthread_mutex_unlock(&x->lock);
    progress_end(&progress);
}

static int index_with(struct indexing *x)
{
    CLEANUP_FREE pthread_t *thread = calloc((size_t)x->wish->jobs, sizeof *thread);
    if (!thread)
        return str_no_memory(x->why);
    pthread_mutex_lock(&x->lock);
    int started = x->working = threads_start(thread, x->wish->jobs, "index", index_body, x);
    pthread_mutex_unlock(&x->lock);
    if (started == 0) {
        str_adds(x->why, "no thread could be started");
        return -EAGAIN;
    }
    show_progress(x);
    threads_join(thread, started);
    return x->error;
}

int containers_index(const struct live *live, const struct containers_wish *wish, int spool,
                     struct containers_found *found, struct str *why)
{
    struct indexing x = {.wish = wish, .spool = spool, .found = found, .why = why, .lock = PTHREAD_MUTEX_INITIALIZER};
    CLEANUP_CLOSE int mount = x.mount = open(live->mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = mount < 0 ? -errno : choose_containers(&x, live);
    cond_init(&x.changed);
    if (!error)
        error = index_with(&x);
    if (error && !why->length)
        str_adds(why, strerror(-error));
    pthread_cond_destroy(&x.changed);
    pthread_mutex_destroy(&x.lock);
    for (size_t i = 0; i < x.count; i++)
        free(x.chosen[i].path);
    free(x.chosen);
    return error;
}
