/* The control mount's beginning and end, and the writer of metrics_file. */
#include "fs/mount/control/inside.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/world/extents.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

enum { METRICS_EVERY = 10 };        /* seconds */
enum { PLANS_LEAST = 16 << 20 };    /* bytes of plans, and of their files, that are kept; more where there are many files */

const char *control_version(void)
{
    return DEALFS_VERSION;
}

uint64_t control_memory(void)
{
    char line[128];
    uint64_t kilobytes;
    CLEANUP_FCLOSE FILE *status = fopen("/proc/self/status", "re");

    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "RssAnon: %" SCNu64 " kB", &kilobytes) == 1)
            return kilobytes << 10;
    return 0;
}

uint32_t control_keeper(const struct control *control)
{
    return control->config.keeper ? __atomic_load_n(control->config.keeper, __ATOMIC_RELAXED) : 0;
}

void control_stats(struct control *control, struct store_stats *stats)
{
    memset(stats, 0, sizeof *stats);
    if (control_filled(control) && control->config.store)
        store_stats(control->config.store, stats);
}

int control_errors(struct control *control, struct str *text)
{
    refusals_text(&control->refusals, text);
    return text->failed ? -ENOMEM : 0;
}

/* Reported once, until it works again. */
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

/* At once, so that a new mount is seen, and then every few seconds. */
static void *writer_main(void *user)
{
    struct control *control = user;
    struct timespec next;
    bool stop = false;

    clock_gettime(CLOCK_MONOTONIC, &next);
    while (!stop) {
        write_metrics(control);
        next.tv_sec += METRICS_EVERY;
        pthread_mutex_lock(&control->writer_lock);
        while (!control->writer_stop &&
               pthread_cond_timedwait(&control->writer_wake, &control->writer_lock, &next) != ETIMEDOUT)
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
    pthread_mutex_lock(&control->writer_lock);
    control->writer_stop = true;
    pthread_cond_signal(&control->writer_wake);
    pthread_mutex_unlock(&control->writer_lock);
    pthread_join(control->writer, NULL);
    control->writing = false;
}

static bool below(const char *path, const char *directory)
{
    size_t n = strlen(directory);

    return strncmp(path, directory, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static int writer_start(struct control *control)
{
    const struct mount_config *mount = control->config.mount;

    if (!mount->metrics_file)
        return 0;
    /* A server that asks its own mount can wait for itself. */
    if (below(mount->metrics_file, mount->mountpoint) || below(mount->metrics_file, mount->control)) {
        log_warning("metrics file %s lies in the mount itself and is not written", mount->metrics_file);
        atomic_store(&control->writer_error, -EROFS);
        return 0;
    }
    int error = pthread_create(&control->writer, NULL, writer_main, control);
    control->writing = error == 0;
    return -error;
}

bool control_filled(const struct control *control)
{
    return atomic_load_explicit(&control->filled, memory_order_acquire);
}

static int open_samples(const struct control *control, const struct catalog *catalog, struct samples_table **samples)
{
    CLEANUP_STR struct str path = STR_INIT;

    str_addf(&path, "%s/samples", control->config.mount->state);
    return path.failed ? -ENOMEM : samples_table_create(catalog, path.data, samples);
}

int control_fill(struct control *control, const struct catalog *catalog, struct store *store)
{
    struct samples_table *samples;
    struct extents *extents;
    int error = extents_create(catalog, &extents);

    if (error)
        return error;
    error = open_samples(control, catalog, &samples);
    if (error) {
        extents_destroy(extents);
        return error;
    }
    control->config.catalog = catalog;
    control->config.store = store;
    control->samples = samples;
    control->extents = extents;
    control->plans.most = PLANS_LEAST + 8ull * catalog_files(catalog);
    control->files.most = control->plans.most;
    atomic_store_explicit(&control->filled, true, memory_order_release);
    return 0;
}

static void init_fields(struct control *control, const struct control_config *config)
{
    pthread_condattr_t monotonic;

    control->config = *config;
    control->began = clock_now();
    control->prefixes[0] = config->mount->source;
    control->prefixes[1] = config->mount->mountpoint;
    if (gethostname(control->host, sizeof control->host - 1) != 0)
        strcpy(control->host, "localhost");
    refusals_init(&control->refusals);
    owner_cache_init(&control->owners);
    plans_init(&control->plans, PLANS_LEAST);
    files_init(&control->files, PLANS_LEAST);
    pthread_mutex_init(&control->writer_lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&control->writer_wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

int control_create(const struct control_config *config, struct control **out)
{
    struct control *control = calloc(1, sizeof *control);

    if (!control)
        return -ENOMEM;
    init_fields(control, config);
    int error = config->catalog ? control_fill(control, config->catalog, config->store) : 0;
    if (!error)
        error = handles_create(control, config->generation, &control->handles);
    if (!error)
        error = writer_start(control);
    if (error) {
        control_destroy(control);
        return error;
    }
    *out = control;
    return 0;
}

void control_destroy(struct control *control)
{
    if (!control)
        return;
    int saved = errno;
    writer_stop(control);
    handles_destroy(control->handles);
    if (control->samples)
        samples_table_destroy(control->samples);
    extents_destroy(control->extents);
    refusals_fini(&control->refusals);
    files_fini(&control->files);
    plans_fini(&control->plans);
    owner_cache_fini(&control->owners);
    pthread_cond_destroy(&control->writer_wake);
    pthread_mutex_destroy(&control->writer_lock);
    free(control);
    errno = saved;
}
