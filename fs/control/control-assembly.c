/* Creates and destroys the control mount; writes metrics_file. */
#include "fs/control/control-private.h"

#include "fs/control/control-handles.h"
#include "fs/control/epoch-ahead.h"
#include "fs/control/index-parts.h"
#include "fs/control/jobs.h"
#include "fs/control/list-sharing.h"
#include "fs/control/open.h"
#include "fs/control/owners.h"
#include "fs/control/pictures.h"
#include "fs/control/plan-files.h"
#include "fs/control/plans.h"
#include "fs/control/record-cuts.h"
#include "fs/control/snapshots.h"
#include "fs/control/texts.h"
#include "fs/control/verbs.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/base/thread.h"
#include "fs/wire/handover.h"
#include "fs/world/extents.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

enum { METRICS_EVERY = 10 }; /* seconds */
/* Bytes of cached plans and their files; more if there are many files. */
enum { PLANS_LEAST = 16 << 20 };

/* A failure is reported once, until writing works again. */
static void write_metrics(struct control *control)
{
    const char *path = control->config.mount->metrics_file;
    CLEANUP_STR struct str text = STR_INIT;
    int error = control_metrics(control, &text);
    if (!error)
        error = file_write_atomic(AT_FDCWD, path, text.data, text.length, 0644);
    if (error && atomic_load(&control->writer_error) != error)
        log_warning("write metrics file %s: %s", path, strerror(-error));
    atomic_store(&control->writer_error, error);
}

/* Writes at once, so that a new mount is visible, then every few seconds. */
static void *writer_main(void *user)
{
    struct control *control = user;
    uint64_t next = clock_now();
    bool stop = false;
    while (!stop) {
        write_metrics(control);
        next += METRICS_EVERY * SECOND;
        pthread_mutex_lock(&control->writer_lock);
        while (!control->writer_stop && cond_wait_until(&control->writer_wake, &control->writer_lock, next))
            ;
        stop = control->writer_stop;
        pthread_mutex_unlock(&control->writer_lock);
    }
    return NULL;
}

static void writer_stop(struct control *control)
{
    if (!control->writing)
        return;
    thread_stop(control->writer, &control->writer_lock, &control->writer_wake, &control->writer_stop);
    control->writing = false;
}

static bool path_below(const char *path, const char *directory)
{
    size_t n = strlen(directory);
    return strncmp(path, directory, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static int writer_start(struct control *control)
{
    const struct mount_config *mount = control->config.mount;
    if (!mount->metrics_file)
        return 0;
    /* a server that accesses its own mount could wait for itself */
    if (path_below(mount->metrics_file, mount->mountpoint) || path_below(mount->metrics_file, mount->control)) {
        log_warning("metrics file %s: it is inside the mount itself, so it is not written", mount->metrics_file);
        atomic_store(&control->writer_error, -EROFS);
        return 0;
    }
    int error = thread_create(&control->writer, "metrics", writer_main, control);
    control->writing = error == 0;
    return error;
}

int control_fill(struct control *control, const struct catalog *catalog, struct store *store,
                 const struct derived *derived)
{
    CLEANUP_STR struct str path = STR_INIT;
    struct samples_table *samples;
    struct extents *extents = NULL;
    str_addf(&path, "%s/samples", control->config.mount->state);
    int error = path.failed ? -ENOMEM : extents_create(catalog, &extents);
    if (!error)
        error = samples_table_create(catalog, path.data, &samples);
    if (error) {
        extents_destroy(extents);
        return error;
    }
    control->config.catalog = catalog;
    control->config.store = store;
    control->config.derived = derived;
    if (derived)
        outcomes_count(derived, &control->resized);
    control->samples = samples;
    control->extents = extents;
    control->public = catalog_is_public(catalog);
    control->plans->kept.most = PLANS_LEAST + 8ull * catalog_files(catalog);
    plan_files_kept(control->files)->most = control->plans->kept.most;
    atomic_store_explicit(&control->filled, true, memory_order_release);
    return 0;
}

static bool drop_one_plan(void *user)
{
    struct control *control = user;
    return kept_drop(&control->plans->kept) || kept_drop(&control->owners);
}

/* Drops one cached object at a time, first what readers of streams have left. */
static bool drop_one_kept(void *user)
{
    struct control *control = user;
    return (control->ahead && epoch_ahead_forget(control->ahead, false)) || pictures_drop(control->pictures) ||
           kept_drop(plan_files_kept(control->files)) || drop_one_plan(control);
}

static void control_init(struct control *control, const struct control_config *config)
{
    control->config = *config;
    control->began = clock_now();
    control->prefixes[0] = config->mount->source;
    control->prefixes[1] = config->mount->mountpoint;
    if (gethostname(control->host, sizeof control->host - 1) != 0)
        strcpy(control->host, "localhost");
    budget_init(&control->budget, config->mount->request_memory, drop_one_kept, control);
    budget_init(&control->record_room, 0, drop_one_plan, control);
    refusals_init(&control->refusals);
    owners_init(&control->owners);
    node_texts_init(&control->node_texts);
    pthread_mutex_init(&control->feed_lock, NULL);
    pthread_mutex_init(&control->writer_lock, NULL);
    cond_init(&control->writer_wake);
}

/* Without the program, images cannot be decoded; the request's error says so. */
static int pictures_start(struct control *control)
{
    char program[PATH_MAX] = "dealfs-resizer";
    handover_find_program("dealfs-resizer", program, sizeof program);
    return pictures_create(control->config.mount->decoded, program, &control->pictures);
}

static void rest(void *user)
{
    struct control *control = user;
    pictures_rest(control->pictures);
    epoch_ahead_forget(control->ahead, true);
}

int control_create(const struct control_config *config, struct control **out)
{
    struct control *control = calloc(1, sizeof *control);
    if (!control)
        return -ENOMEM;
    control_init(control, config);
    control->snapshots = snapshots_create();
    control->files = plan_files_create();
    control->plans = plans_create(PLANS_LEAST);
    int error = control->snapshots && control->files && control->plans ? pictures_start(control) : -ENOMEM;
    if (!error)
        error = epoch_ahead_create(&control->ahead);
    if (!error)
        error = record_cuts_create(&control->cuts);
    if (!error)
        error = index_parts_create(control, &control->parts);
    if (!error && config->catalog)
        error = control_fill(control, config->catalog, config->store, config->derived);
    if (!error)
        error = handles_create(control, &verbs_stream_rules, &control->handles);
    if (!error)
        error = sharing_create(control, &control->sharing);
    if (!error)
        error = jobs_create(control, control_drop_parked, rest, &control->workers);
    if (!error)
        error = writer_start(control);
    if (error)
        control_destroy(control);
    else
        *out = control;
    return error;
}

void control_stop(struct control *control)
{
    if (control)
        epoch_ahead_stop(control->ahead);
}

void control_destroy(struct control *control)
{
    if (!control)
        return;
    KEEP_ERRNO;
    writer_stop(control);
    workers_destroy(control->workers);
    sharing_destroy(control->sharing);
    index_parts_destroy(control->parts);
    handles_destroy(control->handles);
    samples_table_destroy(control->samples);
    extents_destroy(control->extents);
    refusals_fini(&control->refusals);
    epoch_ahead_destroy(control->ahead);
    record_cuts_destroy(control->cuts);
    plan_files_destroy(control->files);
    pictures_destroy(control->pictures);
    plans_destroy(control->plans);
    kept_fini(&control->owners);
    node_texts_fini(&control->node_texts);
    pthread_mutex_destroy(&control->feed_lock);
    snapshots_destroy(control->snapshots);
    budget_fini(&control->record_room);
    budget_fini(&control->budget);
    pthread_cond_destroy(&control->writer_wake);
    pthread_mutex_destroy(&control->writer_lock);
    free(control);
}
