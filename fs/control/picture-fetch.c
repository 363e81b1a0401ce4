/* Reads bytes of a file for a worker, which waits.
 *
 * Threads: any number of workers; threads of the store end the reads. */
#include "fs/control/picture-fetch.h"

#include "fs/control/jobs.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/thread.h"

#include <errno.h>
#include <string.h>

enum { LOOK_EVERY_MS = 50 };

struct picture_fetch {
    struct store_read read;
    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t ended;
    bool over;
    int error;
};

static void fetch_done(struct store_read *read, int error)
{
    struct picture_fetch *f = (struct picture_fetch *)(void *)((char *)read - offsetof(struct picture_fetch, read));
    LOCK_SCOPE(&f->lock);
    f->over = true;
    f->error = error;
    pthread_cond_signal(&f->ended);
}

static int fetch_wait(struct picture_fetch *f, struct store *store, struct request_job *job)
{
    pthread_mutex_lock(&f->lock);
    while (!f->over) {
        if (cond_wait_until(&f->ended, &f->lock, clock_now() + LOOK_EVERY_MS * MILLISECOND) || f->over)
            continue;
        pthread_mutex_unlock(&f->lock);
        if (job_gave_up(job) && store_cancel(store, &f->read))
            return -EINTR;
        pthread_mutex_lock(&f->lock);
    }
    pthread_mutex_unlock(&f->lock);
    return f->error;
}

static void copy_answer(const struct answer *answer, char *to)
{
    for (int i = 0; i < answer->pieces; i++) {
        memcpy(to, answer->piece[i].iov_base, answer->piece[i].iov_len);
        to += answer->piece[i].iov_len;
    }
}

static int fetch_span(struct store *store, struct request_job *job, const struct span *span, char *to)
{
    CLEANUP_FREE struct picture_fetch *f = calloc(1, sizeof *f);
    if (!f)
        return -ENOMEM;
    pthread_mutex_init(&f->lock, NULL);
    cond_init(&f->ended);
    f->read = (struct store_read){.span = *span, .done = fetch_done};
    int error = store_read(store, &f->read);
    if (error == -EINPROGRESS)
        error = fetch_wait(f, store, job);
    if (!error)
        copy_answer(&f->read.answer, to);
    answer_release(&f->read.answer);
    pthread_cond_destroy(&f->ended);
    pthread_mutex_destroy(&f->lock);
    return error;
}

int picture_fetch(struct store *store, struct request_job *job, uint32_t file, uint64_t from, uint64_t to, char *bytes)
{
    int error = 0;
    while (from < to && !error) {
        uint64_t left = to - from;
        const struct span span = {
            .file = file, .offset = from, .length = left < SPAN_BYTES ? (uint32_t)left : SPAN_BYTES};
        error = fetch_span(store, job, &span, bytes);
        bytes += span.length;
        from += span.length;
    }
    return error;
}
