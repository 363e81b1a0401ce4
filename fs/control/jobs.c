/* Passes requests of the kernel to the workers. */
#include "fs/control/jobs.h"

#include "fs/control/control-private.h"

#include "fs/base/cleanup.h"
#include "fs/base/process.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static struct request_job *job_of(struct request_work *work)
{
    return (struct request_job *)(void *)((char *)work - offsetof(struct request_job, work));
}

static uint64_t signal_bit(int number)
{
    return UINT64_C(1) << (number - 1);
}

/* Does the asking process still want the answer? The kernel sends an interrupt for every signal, also for those that
 * profilers, timers and runtimes send 100 times per second. A long request must not be given up for these, or it would
 * never end. So this looks at the process's pending signals: is there one that ends the process or interrupts what it
 * does? If they cannot be read (another pid namespace): false. */
bool job_request_gave_up(fuse_req_t req)
{
    const uint64_t wanted =
        signal_bit(SIGKILL) | signal_bit(SIGINT) | signal_bit(SIGTERM) | signal_bit(SIGQUIT) | signal_bit(SIGHUP);
    return fuse_req_interrupted(req) && process_pending_signals(fuse_req_ctx(req)->pid) & wanted;
}

bool job_gave_up(void *user)
{
    struct request_job *job = user;
    return workers_stopping(control_of(job->req)->workers) || job_request_gave_up(job->req);
}

static void job_abandon(struct request_job *job, int error)
{
    if (job->cancel)
        job->cancel(job);
    fuse_reply_err(job->req, -error);
}

static void job_run(struct request_work *work)
{
    struct request_job *job = job_of(work);
    session_resume(&job->request);
    job->run(job);
    if (!job->again) {
        free(job);
        return;
    }
    struct workers *workers = control_of(job->req)->workers;
    enum work_class class = work->class;
    job->again = false;
    job->turns++;
    work->class = class == WORK_STREAM ? WORK_STREAM_SLOW : class;
    if (class == work->class || workers_add(workers, work)) {
        work->class = class;
        workers_add_again(workers, work);
    }
}

static void job_drop(struct request_work *work)
{
    struct request_job *job = job_of(work);
    job_abandon(job, -EINTR);
    free(job);
}

static bool is_unwanted(struct request_work *work)
{
    return job_gave_up(job_of(work));
}

int jobs_create(struct control *control, void (*tick)(void *control), void (*rest)(void *control),
                struct workers **workers)
{
    const struct work_rules rules = {
        .run = job_run, .drop = job_drop, .gave_up = is_unwanted, .tick = tick, .rest = rest, .user = control};
    return workers_create(&rules, workers);
}

void job_defer(fuse_req_t req, const struct request_job *what, const char *name)
{
    struct control *control = fuse_req_userdata(req);
    size_t n = strlen(name) + 1;
    CLEANUP_FREE struct request_job *job = malloc(sizeof *job + n);
    CLEANUP_STR struct str why = STR_INIT;
    struct request_job lost = *what;
    lost.req = req;
    if (!job) {
        job_abandon(&lost, -ENOMEM);
        return;
    }
    *job = lost;
    if (!job->request.session)
        job->request = session_request();
    memcpy(job->name, name, n);
    if (!job->of_anybody && !control_is_owner(control, fuse_req_ctx(req)->uid))
        job->work.class = WORK_OTHERS;
    int error = workers_add(control->workers, &job->work);
    if (!error) {
        steal_pointer(job);
        return;
    }
    str_adds(&why, "too many requests are waiting: try again");
    control_note_request(req, error, &why, "%s", name);
    job_abandon(job, error);
}
