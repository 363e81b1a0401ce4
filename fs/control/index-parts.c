/* A table of containers, and the threads that parse them.
 *
 *   state      becomes
 *   FREE       WAITING, when another node asks for it
 *   WAITING    RUNNING, by a thread; FREE, when nobody asks any more
 *   RUNNING    READY
 *   READY      FREE, when it was fetched and its place is needed, or when nobody asks any more
 *
 * Threads: those that take questions of peers, which never wait here; and our own, started by the first question, which
 * wait for `work` and for the store. */
#include "fs/control/index-parts.h"

#include "fs/control/control-private.h"
#include "fs/control/epoch-read.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/base/scratch.h"
#include "fs/base/str.h"
#include "fs/base/thread.h"
#include "fs/catalog/samples.h"
#include "fs/records/container.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PARTS = 64, PARSERS = 8, FORGET_S = 60, FETCHED_S = 2, HELD = 1 << 20 };
#define INDEX_MARK UINT64_C(0x1dea1de) /* the upper 29 bits of a key */

enum part_state { PART_FREE, PART_WAITING, PART_RUNNING, PART_READY };
struct index_part {
    struct index_parts *all;
    enum part_state state;
    uint64_t key;
    uint64_t number;        /* order of parsing: the WAITING one with the lowest number is next */
    _Atomic uint64_t asked; /* time of the last question */
    _Atomic uint64_t seen;
    bool fetched;    /* READY: its last piece was fetched */
    unsigned users;  /* READY: number of threads that read the spool now */
    int spool;       /* READY: the result; -1: it could not be written */
    uint64_t length; /* of the spool */
};

struct index_parts {
    struct control *control;
    pthread_mutex_t lock; /* guards all fields below */
    pthread_cond_t work;  /* a part is WAITING, or `stopping` */
    struct index_part part[PARTS];
    uint64_t asked;
    pthread_t thread[PARSERS];
    int threads;
    atomic_bool stopping;
    _Atomic uint64_t worked;
};

/* --- the key --- */

uint64_t index_key(uint32_t file, unsigned format, bool text)
{
    return INDEX_MARK << 35 | (uint64_t)format << 33 | (uint64_t)text << 32 | file;
}

bool index_key_is(uint64_t key)
{
    return key >> 35 == INDEX_MARK;
}

static const struct container_format *key_format(uint64_t key)
{
    static const char *const name[] = {NULL, "tar", "tfrecord", "lines"};
    unsigned format = key >> 33 & 3;
    return format ? container_format_find(name[format]) : NULL;
}

static bool key_text(uint64_t key)
{
    return key >> 32 & 1;
}

/* --- one container --- */

struct part_scan {
    struct index_part *part;
    struct record_scan scan;
    struct str records, why;
    struct index_answer answer;
    char path[PATH_MAX];
};

/* Does the server end, or did nobody ask for the container lately? */
static bool part_gave_up(void *user)
{
    const struct index_part *part = user;
    return atomic_load(&part->all->stopping) || clock_now() > atomic_load(&part->asked) + FORGET_S * SECOND;
}

static bool scan_gave_up(void *user)
{
    const struct part_scan *s = user;
    return part_gave_up(s->part);
}

static int read_part(void *user, void *to, size_t n, uint64_t offset)
{
    struct part_scan *s = user;
    const struct stream_access access = {s->part->all->control->config.store, part_gave_up, s->part, NULL};
    if (part_gave_up(s->part))
        return -EINTR;
    int error = stream_read_file(&access, (uint32_t)s->part->key, offset, n, to);
    if (offset + n > s->part->seen) {
        atomic_fetch_add(&s->part->all->worked, offset + n - s->part->seen);
        atomic_store(&s->part->seen, offset + n);
    }
    return error;
}

static int flush_part(struct part_scan *s)
{
    int error = s->records.failed ? -ENOMEM : file_write_all(s->part->spool, s->records.data, s->records.length);
    s->answer.length += s->records.length;
    str_clear(&s->records);
    return error ? error : s->answer.length > SAMPLES_UPLOAD_MOST ? -E2BIG : 0;
}

static int note_part(void *user, const struct found_record *r)
{
    struct part_scan *s = user;
    const struct record record = {
        .file = (uint32_t)s->part->key,
        .length = r->length,
        .place = r->offset | (r->unended ? RECORD_NEWLINE : 0),
        .label = RECORD_NO_LABEL,
    };
    s->answer.records++;
    s->answer.text = r->key || key_text(s->part->key);
    if (s->answer.text)
        record_add_text(&record, s->path, r->key, r->key_length, &s->records);
    else
        record_add_packed(&record, &s->records);
    return s->records.length >= HELD || s->records.failed ? flush_part(s) : 0;
}

/* If a container cannot be read here, or has too many records, the asking node parses it itself, and learns the
 * reason. */
static void describe_part(struct part_scan *s, int error)
{
    struct index_answer *a = &s->answer;
    bool refused = error == -EBADMSG || error == -ENOTSUP || error == -EFBIG;
    a->state = error == 0 ? INDEX_DONE : refused ? INDEX_REFUSED : INDEX_HERE;
    a->error = refused ? error : 0;
    a->seen = s->part->seen;
    if (s->scan.format)
        memccpy(a->format, s->scan.format->name, '\0', sizeof a->format - 1);
    if (!error)
        return;
    a->records = 0;
    a->length = refused && !s->why.failed ? s->why.length : 0;
}

static int end_part(struct part_scan *s, int error)
{
    describe_part(s, error);
    const struct index_answer answer = s->answer;
    int spool = s->part->spool;
    if (error)
        error = ftruncate(spool, sizeof answer) < 0 ? -errno : 0;
    if (!error && answer.state == INDEX_REFUSED && answer.length > 0)
        error = pwrite(spool, s->why.data, s->why.length, sizeof answer) == (ssize_t)s->why.length ? 0 : -EIO;
    if (!error && pwrite(spool, &answer, sizeof answer, 0) != sizeof answer)
        error = -EIO;
    s->part->length = sizeof answer + answer.length;
    return error;
}

static int scan_part(struct part_scan *s)
{
    struct index_part *part = s->part;
    const struct catalog *c = part->all->control->config.catalog;
    uint32_t file = (uint32_t)part->key;
    if (catalog_path(c, catalog_file_ino(c, file), s->path, sizeof s->path) < 0)
        return -ENAMETOOLONG;
    s->scan = (struct record_scan){.size = catalog_file(c, file).size,
                                   .read = read_part,
                                   .found = note_part,
                                   .gave_up = scan_gave_up,
                                   .user = s,
                                   .most = SAMPLES_RECORDS_MOST,
                                   .format = key_format(part->key),
                                   .why = &s->why};
    int error = lseek(part->spool, sizeof s->answer, SEEK_SET) < 0 ? -errno : container_scan(&s->scan);
    return error ? error : flush_part(s);
}

/* Without a spool, the answer is INDEX_HERE. */
static void run_part(struct index_part *part)
{
    CLEANUP_FREE struct part_scan *s = calloc(1, sizeof *s);
    part->spool = scratch_open(samples_table_directory(part->all->control->samples));
    if (s && part->spool >= 0) {
        s->part = part;
        if (end_part(s, scan_part(s))) {
            close(part->spool);
            part->spool = -1;
        }
        str_fini(&s->records);
        str_fini(&s->why);
    }
}

/* --- the threads --- */

/* The caller holds the lock. */
static void part_free(struct index_part *part)
{
    if (part->state == PART_READY && part->spool >= 0)
        close(part->spool);
    part->state = PART_FREE;
}

static void forget_parts(struct index_parts *p)
{
    uint64_t now = clock_now();
    for (int i = 0; i < PARTS; i++)
        if (p->part[i].state != PART_RUNNING && p->part[i].users == 0 && now > p->part[i].asked + FORGET_S * SECOND)
            part_free(&p->part[i]);
}

static struct index_part *take_waiting(struct index_parts *p)
{
    struct index_part *first = NULL;
    for (int i = 0; i < PARTS; i++)
        if (p->part[i].state == PART_WAITING && (!first || p->part[i].number < first->number))
            first = &p->part[i];
    return first;
}

static void await_work(struct index_parts *p)
{
    bool some = false;
    for (int i = 0; i < PARTS; i++)
        some |= p->part[i].state != PART_FREE;
    if (some)
        cond_wait_until(&p->work, &p->lock, clock_now() + FORGET_S * SECOND);
    else
        pthread_cond_wait(&p->work, &p->lock);
}

static void *parts_main(void *user)
{
    struct index_parts *p = user;
    pthread_mutex_lock(&p->lock);
    while (!atomic_load(&p->stopping)) {
        forget_parts(p);
        struct index_part *part = take_waiting(p);
        if (!part) {
            await_work(p);
            continue;
        }
        part->state = PART_RUNNING;
        pthread_mutex_unlock(&p->lock);
        run_part(part);
        pthread_mutex_lock(&p->lock);
        part->state = PART_READY;
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* --- questions --- */

/* The caller holds the lock. The part with this key, else a place for it; NULL: all places are in use. */
static struct index_part *part_place(struct index_parts *p, uint64_t key)
{
    struct index_part *place = NULL;
    uint64_t now = clock_now();
    for (int i = 0; i < PARTS; i++) {
        struct index_part *part = &p->part[i];
        if (part->state != PART_FREE && part->key == key)
            return part;
        bool over =
            part->state == PART_READY && part->fetched && part->users == 0 && now > part->asked + FETCHED_S * SECOND;
        if (part->state == PART_FREE || over)
            place = place && place->state == PART_FREE ? place : part;
    }
    if (place)
        part_free(place);
    return place;
}

static void part_begin(struct index_parts *p, struct index_part *part, uint64_t key)
{
    part->all = p;
    part->state = PART_WAITING;
    part->key = key;
    part->number = ++p->asked;
    atomic_store(&part->seen, 0);
    part->fetched = false;
    part->users = 0;
    part->spool = -1;
    part->length = 0;
    if (p->threads == 0)
        p->threads = threads_start(p->thread, PARSERS, "index", parts_main, p);
    pthread_cond_signal(&p->work);
}

/* Releases the lock. */
static ssize_t part_bytes(struct index_parts *p, struct index_part *part, uint64_t offset, void *to, size_t room)
{
    part->users++;
    pthread_mutex_unlock(&p->lock);
    ssize_t n = pread(part->spool, to, room, (off_t)offset);
    n = n < 0 ? -errno : n;
    pthread_mutex_lock(&p->lock);
    part->users--;
    part->fetched |= n > 0 && offset + (uint64_t)n >= part->length;
    return n;
}

/* The caller holds the lock. The answer while there is no result to fetch. */
static struct index_answer part_answer(const struct index_parts *p, const struct index_part *part)
{
    bool lost = p->threads == 0 || (part && part->state == PART_READY);
    return (struct index_answer){.state = lost ? INDEX_HERE : INDEX_RUNS,
                                 .seen = part ? atomic_load(&part->seen) : 0,
                                 .worked = atomic_load(&p->worked)};
}

ssize_t index_parts_bytes(struct index_parts *p, const struct blob_question *q, void *to, size_t room, uint64_t *length)
{
    if ((uint32_t)q->key >= catalog_files(p->control->config.catalog) || room < sizeof(struct index_answer))
        return -ENOENT;
    LOCK_SCOPE(&p->lock);
    struct index_part *part = part_place(p, q->key);
    if (part)
        atomic_store(&part->asked, clock_now());
    if (part && part->state == PART_FREE)
        part_begin(p, part, q->key);
    bool ready = part && part->state == PART_READY && part->spool >= 0;
    const struct index_answer answer = part_answer(p, part);
    ssize_t n = q->offset == 0 ? (ssize_t)sizeof answer : -ENOENT;
    *length = ready ? part->length : sizeof answer;
    if (ready)
        n = q->offset < *length ? part_bytes(p, part, q->offset, to, room) : -ENOENT;
    else if (q->offset == 0)
        memcpy(to, &answer, sizeof answer);
    return n;
}

/* --- beginning and end --- */

int index_parts_create(struct control *control, struct index_parts **parts)
{
    struct index_parts *p = calloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    p->control = control;
    pthread_mutex_init(&p->lock, NULL);
    cond_init(&p->work);
    *parts = p;
    return 0;
}

void index_parts_destroy(struct index_parts *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->stopping, true);
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    threads_join(p->thread, p->threads);
    for (int i = 0; i < PARTS; i++)
        part_free(&p->part[i]);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
