/* Parses the containers of a mount through the mount.
 *
 * Threads: `jobs` workers take the containers in order and parse one each. A worker writes its records when it is that
 * container's turn. Before, it keeps up to HELD bytes of records and then waits. The worker whose turn it is never
 * waits, so memory is bounded and progress is guaranteed. The caller shows the progress.
 *
 * One lock guards the turn and the result. Only the worker whose turn it is writes the spool, without the lock. */
#include "cli/live/containers.h"
#include "cli/live/owner-ask.h"

#include "cli/base/command.h"
#include "cli/base/interrupt.h"
#include "cli/base/progress.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/base/thread.h"
#include "fs/catalog/record.h"
#include "fs/catalog/samples.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HELD = 4 << 20, SHOW_MS = 100, SMALL = 64 << 10 };

struct indexing {
    const struct containers_wish *wish;
    const struct live *live;
    bool ask; /* other nodes parse the containers that they own */
    int mount, spool;
    struct chosen_files files;

    pthread_mutex_t lock;
    pthread_cond_t changed;         /* signals: the turn, the result, or the end of a worker */
    size_t next;                    /* lock: container to be taken */
    size_t turn;                    /* lock: container that may write; only its worker advances it */
    int working;                    /* guarded by lock */
    int error;                      /* lock: the result */
    struct str *why;                /* lock: explains `error` */
    struct containers_found *found; /* used by the worker whose turn it is */
    uint64_t written;               /* used by the worker whose turn it is */
    _Atomic uint64_t seen;          /* bytes of containers parsed so far */
};

/* A container that a worker parses. */
struct container_job {
    struct indexing *all;
    size_t number;
    const struct chosen_file *file;
    int fd;
    bool small; /* the last read was small: only headers are read */
    struct record_scan scan;
    struct str records, why;
    uint64_t count, seen;
    bool text;      /* `records` are lines of text */
    bool ours;      /* it is its turn */
    uint64_t began; /* length of the spool before it */
};

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
    LOCK_SCOPE(&x->lock);
    if (!x->error) {
        x->error = error;
        if (path) {
            str_add_printable(x->why, path, strlen(path));
            str_adds(x->why, ": ");
        }
        str_adds(x->why, command_why(why, error));
    }
    pthread_cond_broadcast(&x->changed);
}

/* All containers of a list must have one format. */
static int agree_format(struct container_job *job)
{
    struct containers_found *found = job->all->found;
    const struct container_format *mine = job->scan.format;
    if (!found->format)
        found->format = mine;
    if (strcmp(found->format->stream, mine->stream) == 0)
        return 0;
    return str_fail(&job->why, -EINVAL,
                    "this container is %s, the earlier ones are %s: select one format by --match, or set --format",
                    mine->name, found->format->name);
}

/* The list that the records become has limits, which hold for all containers together. */
static int check_limits(struct container_job *job)
{
    static const char remedy[] = ": make several lists, with --under or --match";
    const struct indexing *x = job->all;
    if (x->found->records + job->count > SAMPLES_RECORDS_MOST)
        return str_fail(&job->why, -E2BIG, "with this container the list has more than %" PRIu64 " records%s",
                        SAMPLES_RECORDS_MOST, remedy);
    if (!x->wish->text && x->written + job->records.length > SAMPLES_UPLOAD_MOST)
        return str_fail(&job->why, -E2BIG, "with this container the list has more than %" PRIu64 " bytes%s",
                        SAMPLES_UPLOAD_MOST, remedy);
    return 0;
}

static int flush_records(struct container_job *job)
{
    struct indexing *x = job->all;
    if (!await_turn(job))
        return -ECANCELED;
    int error = job->records.failed ? str_no_memory(&job->why) : agree_format(job);
    if (!error)
        error = check_limits(job);
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

/* Otherwise the kernel would read far ahead of each header, for another node's container through the network. */
static void expect_headers(struct container_job *job, bool small)
{
    if (job->small != small)
        posix_fadvise(job->fd, 0, 0, small ? POSIX_FADV_RANDOM : POSIX_FADV_NORMAL);
    job->small = small;
}

static void note_seen(struct container_job *job, uint64_t seen)
{
    atomic_fetch_add(&job->all->seen, seen > job->seen ? seen - job->seen : 0);
    job->seen = seen > job->seen ? seen : job->seen;
}

static int read_container(void *user, void *to, size_t n, uint64_t offset)
{
    struct container_job *job = user;
    expect_headers(job, n < SMALL);
    while (n > 0) {
        ssize_t got = interrupted ? -1 : pread(job->fd, to, n, (off_t)offset);
        if (got <= 0 && (interrupted || got == 0 || errno != EINTR)) {
            int error = interrupted ? -EINTR : got == 0 ? -ESTALE : -errno;
            return str_fail(&job->why, error, "offset %" PRIu64 ": %s", offset, strerror(-error));
        }
        got = got < 0 ? 0 : got;
        to = (char *)to + got;
        offset += (uint64_t)got;
        n -= (size_t)got;
    }
    note_seen(job, offset);
    return 0;
}

static int note_record(void *user, const struct found_record *r)
{
    struct container_job *job = user;
    const struct record record = {
        .file = job->file->file,
        .length = r->length,
        .place = r->offset | (r->unended ? RECORD_NEWLINE : 0),
        .label = RECORD_NO_LABEL,
    };
    job->text = job->all->wish->text || r->key;
    if (job->text)
        record_add_text(&record, job->file->path, r->key, r->key_length, &job->records);
    else
        record_add_packed(&record, &job->records);
    job->count++;
    return job->records.length >= HELD || job->records.failed ? flush_records(job) : 0;
}

/* Remove its records from the spool. Only in its turn. */
static int take_back(struct container_job *job)
{
    struct indexing *x = job->all;
    str_clear(&job->records);
    job->count = 0;
    if (!job->ours || x->written == job->began)
        return 0;
    x->written = job->began;
    int error = ftruncate(x->spool, (off_t)job->began) < 0 ? -errno : 0;
    return error || lseek(x->spool, (off_t)job->began, SEEK_SET) >= 0 ? error : -errno;
}

static int take_asked(void *user, const struct index_answer *answer, const char *bytes, size_t n)
{
    struct container_job *job = user;
    job->scan.format = container_format_find(answer->format);
    job->text = answer->text;
    job->count = answer->records;
    str_add(&job->records, bytes, n);
    return !job->scan.format ? -EREMOTE : job->records.length >= HELD || job->records.failed ? flush_records(job) : 0;
}

static bool job_gave_up(void *user)
{
    struct container_job *job = user;
    LOCK_SCOPE(&job->all->lock);
    return job->all->error || interrupted;
}

static bool asked_seen(void *user, uint64_t seen)
{
    struct container_job *job = user;
    note_seen(job, seen < job->file->size ? seen : job->file->size);
    return !job_gave_up(job);
}

/* Ask the node that owns it. -EREMOTE: parse it here. */
static int ask_file(struct container_job *job)
{
    const struct containers_wish *wish = job->all->wish;
    const struct owner_question question = {.live = job->all->live,
                                            .file = job->file->file,
                                            .format = wish->format ? wish->format->name : "any",
                                            .text = wish->text,
                                            .take = take_asked,
                                            .seen = asked_seen,
                                            .user = job};
    int error = owner_ask(&question, &job->why);
    if (error == -EREMOTE) {
        str_clear(&job->why);
        int worse = take_back(job);
        return worse ? worse : error;
    }
    return error || job->records.length == 0 ? error : flush_records(job);
}

static int scan_file(struct container_job *job)
{
    struct indexing *x = job->all;
    CLEANUP_CLOSE int fd = openat(x->mount, job->file->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        int error = -errno;
        return str_fail(&job->why, error, "%s", strerror(-error));
    }
    job->fd = fd;
    job->scan = (struct record_scan){.size = job->file->size,
                                     .read = read_container,
                                     .found = note_record,
                                     .gave_up = job_gave_up,
                                     .user = job,
                                     .most = SAMPLES_RECORDS_MOST,
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

/* Skip a broken container. Only in its turn. */
static int leave_out(struct container_job *job)
{
    struct indexing *x = job->all;
    command_note(stderr, "%s: left out: %s", job->file->path, command_why(&job->why, -EBADMSG));
    x->found->left_out++;
    return take_back(job);
}

static void index_container(struct indexing *x, size_t number)
{
    struct container_job job = {.all = x, .number = number, .file = &x->files.chosen[number]};
    int error = x->ask ? ask_file(&job) : -EREMOTE;
    if (error == -EREMOTE)
        error = scan_file(&job);
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

/* --- all containers --- */

static void *index_body(void *user)
{
    struct indexing *x = user;
    pthread_mutex_lock(&x->lock);
    while (x->next < x->files.count && !x->error) {
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
        const struct progress_now now = {x->turn, x->files.count, atomic_load(&x->seen), x->files.total};
        cond_wait_until(&x->changed, &x->lock, clock_now() + SHOW_MS * MILLISECOND);
        pthread_mutex_unlock(&x->lock);
        progress_show(&progress, &now);
        pthread_mutex_lock(&x->lock);
    }
    pthread_mutex_unlock(&x->lock);
    progress_end(&progress);
}

/* Ask each other node for more containers than one thread could parse. */
static int count_jobs(struct indexing *x)
{
    enum { JOBS_HERE = 4, JOBS_OTHER = 8 };
    const struct container_format *format = x->wish->format;
    uint32_t nodes = owner_nodes(x->live);
    x->ask = nodes > 1 && !(format && (format == &container_npy || format == &container_fixed));
    uint64_t jobs = JOBS_HERE + (x->ask ? (nodes - 1) * (uint64_t)JOBS_OTHER : 0);
    return x->wish->jobs ? x->wish->jobs : jobs < CONTAINER_JOBS ? (int)jobs : CONTAINER_JOBS;
}

static int index_with(struct indexing *x)
{
    int jobs = count_jobs(x);
    CLEANUP_FREE pthread_t *thread = calloc((size_t)jobs, sizeof *thread);
    if (!thread)
        return str_no_memory(x->why);
    pthread_mutex_lock(&x->lock);
    int started = x->working = threads_start(thread, jobs, "index", index_body, x);
    pthread_mutex_unlock(&x->lock);
    if (started == 0)
        return str_fail(x->why, -EAGAIN, "no thread could be started");
    show_progress(x);
    threads_join(thread, started);
    return x->error;
}

int containers_index(const struct live *live, const struct containers_wish *wish, int spool,
                     struct containers_found *found, struct str *why)
{
    struct indexing x = {
        .wish = wish, .live = live, .spool = spool, .found = found, .why = why, .lock = PTHREAD_MUTEX_INITIALIZER};
    CLEANUP_CLOSE int mount = x.mount = open(live->mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = mount < 0 ? -errno : chosen_files_find(live, &wish->files, mount, &x.files, why);
    cond_init(&x.changed);
    if (!error)
        error = index_with(&x);
    if (error && !why->length)
        str_adds(why, strerror(-error));
    pthread_cond_destroy(&x.changed);
    pthread_mutex_destroy(&x.lock);
    chosen_files_fini(&x.files);
    return error;
}
