/* Measures rates: several threads read random samples whole; their pages are dropped from the page cache before.
 *
 * The mount reports which samples are in this node's shard and which are in another's. The latter are read once before
 * they are measured, so that their owners have cached them. */
#include "cli/lab/calibrate.h"

#include "cli/base/command.h"
#include "cli/base/place.h"
#include "cli/base/progress.h"
#include "cli/lab/decode.h"
#include "cli/lab/epoch.h"
#include "cli/live/client.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/base/hash.h"
#include "fs/catalog/samples.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHOSEN = 8192,
    PICTURES_MOST = 256,
    PICTURE_MOST = 16 << 20,
    THREADS = 16,
    FIRST = 64,
    SAMPLES_FILE_MOST = 1 << 30
};
/* Instead of a node's number. */
#define NOBODY UINT64_MAX
#define ANYBODY (UINT64_MAX - 1)
#define OTHERS (UINT64_MAX - 2)

struct chosen_sample {
    char *path;
    uint64_t owner; /* or, if nobody owns it, the node that has cached it; or NOBODY */
};

struct measuring {
    struct live live;
    struct calibration *result;
    unsigned seconds;
    uint64_t node;
    struct str names; /* memory of the paths */
    struct chosen_sample *chosen;
    uint32_t count;
    int source, mount; /* descriptors of directories */
};

static void measuring_fini(struct measuring *m)
{
    live_fini(&m->live);
    str_fini(&m->names);
    free(m->chosen);
    if (m->source >= 0)
        close(m->source);
    if (m->mount >= 0)
        close(m->mount);
}

/* --- choosing samples --- */

/* Each line of the list stays chosen with the same probability. */
static void choose_line(struct measuring *m, char *line, char *end)
{
    uint64_t i = m->result->samples++, place = m->count;
    if (m->count == CHOSEN) {
        place = hash64(&i, sizeof i, clock_now()) % m->result->samples;
        if (place >= CHOSEN)
            return;
    } else {
        /* in random order, so that a slice of them is also random */
        place = hash64(&i, sizeof i, clock_now()) % (m->count + 1ul);
        m->chosen[m->count++] = m->chosen[place];
    }
    line[samples_text_unescape(line, (size_t)(end - line), line)] = '\0'; /* where the newline was, or before */
    m->chosen[place] = (struct chosen_sample){.path = line, .owner = NOBODY};
}

static int choose_samples(struct measuring *m)
{
    CLEANUP_FREE char *path = place_join(m->live.control, "samples");
    m->chosen = calloc(CHOSEN, sizeof *m->chosen);
    int error = !path || !m->chosen ? -ENOMEM : file_read(AT_FDCWD, path, SAMPLES_FILE_MOST, &m->names);
    if (error)
        return command_fail("read %s: %s", path ? path : "samples", strerror(-error));
    for (char *line = m->names.data, *end = line + m->names.length; line < end;) {
        char *newline = memchr(line, '\n', (size_t)(end - line));
        if (!newline)
            break;
        choose_line(m, line, newline);
        line = newline + 1;
    }
    return m->count > 0 ? COMMAND_DONE : command_fail("calibrate %s: the dataset has no samples", m->live.mountpoint);
}

/* A line of the reply: sample, owner, tier and path, separated by tabs. */
static void take_place(const struct measuring *m, struct chosen_sample *chosen, const char *line, const char *end)
{
    const char *owner = memchr(line, '\t', (size_t)(end - line));
    const char *tier = owner ? memchr(owner + 1, '\t', (size_t)(end - owner - 1)) : NULL;
    if (!tier || tier + 1 >= end)
        return;
    if (owner[1] != '-')
        chosen->owner = strtoull(owner + 1, NULL, 10);
    else if (tier[1] != '-')
        chosen->owner = m->node;
}

static int ask_where(struct measuring *m)
{
    CLEANUP_STR struct str request = STR_INIT, reply = STR_INIT, why = STR_INIT;
    str_adds(&request, "where sep=nul\n");
    for (uint32_t i = 0; i < m->count; i++)
        str_add(&request, m->chosen[i].path, strlen(m->chosen[i].path) + 1);
    int error = client_send(&m->live, &request, &reply, &why);
    if (error)
        return command_fail("where %s: %s", m->live.mountpoint, command_why(&why, error));
    const char *line = reply.data, *end = line + reply.length;
    for (uint32_t i = 0; i < m->count && line && line < end; i++) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        take_place(m, &m->chosen[i], line, newline ? newline : end);
        line = newline ? newline + 1 : end;
    }
    return COMMAND_DONE;
}

/* --- reading --- */

static bool belongs_to(const struct measuring *m, const struct chosen_sample *c, uint64_t owner)
{
    if (owner == OTHERS)
        return c->owner != m->node && c->owner != NOBODY;
    return owner == ANYBODY || c->owner == owner;
}

/* The other node that owns most of the chosen samples. */
static uint64_t find_peer(const struct measuring *m)
{
    uint64_t best = NOBODY;
    uint32_t most = 0;
    for (uint64_t peer = 0; peer < m->result->nodes; peer++) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < m->count; i++)
            count += belongs_to(m, &m->chosen[i], peer);
        if (peer != m->node && count > most) {
            most = count;
            best = peer;
        }
    }
    return best;
}

struct measured_source {
    const char *name, *from;
    int root;
    bool before;    /* read once before measuring */
    uint64_t owner; /* of the samples that are read */
};

/* As many as fit into the remaining time. */
static uint32_t next_slice(const struct measuring *m, uint32_t left, uint64_t read, uint64_t elapsed)
{
    double more = elapsed ? (double)read / (double)elapsed * ((double)m->seconds * 1e9 - (double)elapsed) : FIRST;
    more = more < FIRST ? FIRST : more;
    return more < left ? (uint32_t)more : left;
}

/* Repeatedly; but the source only once, because it may have a cache. */
static int read_slices(const struct measuring *m, const struct measured_source *s, char *const *path, uint32_t paths,
                       double *rate)
{
    static const volatile sig_atomic_t never;
    uint64_t elapsed = 0, read = 0;
    while (paths > 0 && elapsed < m->seconds * SECOND && (read < paths || s->before)) {
        uint32_t at = (uint32_t)(read % paths);
        struct epoch slice = {.path = path + at,
                              .files = next_slice(m, paths - at, read, elapsed),
                              .root = &s->root,
                              .roots = 1,
                              .threads = THREADS,
                              .stop = &never};
        int error = s->before && read < paths ? epoch_read(&slice) : 0;
        epoch_forget(&slice);
        if (!error)
            error = epoch_read(&slice);
        if (error)
            return command_fail("read samples of %s: %s", s->from, strerror(-error));
        elapsed += slice.elapsed;
        read += slice.files;
    }
    *rate = elapsed ? (double)read / ((double)elapsed / 1e9) : 0;
    return COMMAND_DONE;
}

static int measure_source(const struct measuring *m, const struct measured_source *s, double *rate)
{
    CLEANUP_FREE char **path = calloc(m->count, sizeof *path);
    uint32_t paths = 0;
    if (!path)
        return command_fail("calibrate: out of memory");
    for (uint32_t i = 0; i < m->count; i++)
        if (belongs_to(m, &m->chosen[i], s->owner))
            path[paths++] = m->chosen[i].path;
    if (paths > 0)
        command_note(stderr, "measuring %s", s->name);
    return read_slices(m, s, path, paths, rate);
}

static int measure_reads(struct measuring *m)
{
    struct calibration *c = m->result;
    uint64_t peer = find_peer(m);
    const char *mount = m->live.mountpoint;
    const struct measured_source source = {"the source", m->live.source, m->source, false, ANYBODY},
                                 own = {"this node's shard", mount, m->mount, true, m->node},
                                 all = {"the other nodes", mount, m->mount, true, OTHERS},
                                 one = {"one of the other nodes", mount, m->mount, true, peer};
    int status = measure_source(m, &source, &c->storage);
    if (!status)
        status = measure_source(m, &own, &c->local);
    if (!status && peer != NOBODY)
        status = measure_source(m, &all, &c->cache);
    if (!status && peer != NOBODY)
        status = measure_source(m, &one, &c->balance);
    c->cache *= (double)c->nodes;
    c->balance *= (double)c->nodes / 2;
    return status;
}

static int measure_decoding(const struct measuring *m)
{
    struct str picture[PICTURES_MOST] = {0};
    uint32_t pictures = 0;
    for (uint32_t i = 0; i < m->count && i < 2 * PICTURES_MOST && pictures < PICTURES_MOST; i++) {
        struct str *bytes = &picture[pictures];
        str_clear(bytes);
        if (file_read(m->mount, m->chosen[i].path, PICTURE_MOST, bytes) == 0 && decode_is_picture(bytes))
            pictures++;
    }
    if (pictures > 0)
        command_note(stderr, "measuring how fast images are decoded");
    m->result->preprocess = decode_rate(picture, pictures, m->seconds);
    for (uint32_t i = 0; i < PICTURES_MOST; i++)
        str_fini(&picture[i]);
    return COMMAND_DONE;
}

/* --- all rates --- */

static int look_at_mount(struct measuring *m)
{
    CLEANUP_STR struct str status = STR_INIT;
    int error = client_file(&m->live, "status", &status);
    if (!error)
        error = json_find_uint(status.data, status.length, "node", &m->node);
    if (!error)
        error = json_find_uint(status.data, status.length, "nodes", &m->result->nodes);
    if (error)
        return command_fail("read %s/status: %s", m->live.control, strerror(-error));
    m->source = open(m->live.source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (m->source < 0)
        return command_fail("open %s: %s", m->live.source, strerror(errno));
    m->mount = open(m->live.mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return m->mount < 0 ? command_fail("open %s: %s", m->live.mountpoint, strerror(errno)) : COMMAND_DONE;
}

static void find_share(struct measuring *m)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < m->count; i++)
        kept += m->chosen[i].owner != NOBODY;
    m->result->cached = (double)kept / m->count;
}

static int calibrate_mount(struct measuring *m, const char *mountpoint)
{
    int status = client_find(mountpoint, LIVE_UP, &m->live);
    if (!status)
        status = client_become(&m->live);
    if (!status)
        status = look_at_mount(m);
    if (!status)
        status = choose_samples(m);
    if (!status)
        status = ask_where(m);
    if (status)
        return status;
    find_share(m);
    status = measure_reads(m);
    return status ? status : measure_decoding(m);
}

int calibrate(const char *mountpoint, unsigned seconds, struct calibration *c)
{
    struct measuring m = {.result = c, .seconds = seconds, .source = -1, .mount = -1};
    *c = (struct calibration){0};
    int status = calibrate_mount(&m, mountpoint);
    measuring_fini(&m);
    return status;
}

struct rate {
    const char *key, *text, *unit;
    size_t offset;
};
static const struct rate rates[] = {
    {"storage_rate", "storage rate R", "samples/s, this node alone", offsetof(struct calibration, storage)},
    {"local_rate", "own shard", "samples/s", offsetof(struct calibration, local)},
    {"cache_rate", "cache rate Rc", "samples/s, all nodes at once", offsetof(struct calibration, cache)},
    {"balance_rate", "balance rate Rb", "samples/s, half of the nodes at once", offsetof(struct calibration, balance)},
    {"preprocess_rate", "preprocess rate U", "images/s decoded, this node", offsetof(struct calibration, preprocess)},
};
enum { RATES = sizeof rates / sizeof *rates };

static double rate_of(const struct calibration *c, int i)
{
    return *(const double *)(const void *)((const char *)c + rates[i].offset);
}

void calibration_print(const struct calibration *c)
{
    printf("%-18s %10" PRIu64 "\n%-18s %10" PRIu64 "\n%-18s %10.4g\n", "samples D", c->samples, "nodes", c->nodes,
           "cached A", c->cached);
    for (int i = 0; i < RATES; i++) {
        if (rate_of(c, i) > 0)
            printf("%-18s %10.4g  %s\n", rates[i].text, rate_of(c, i), rates[i].unit);
        else
            printf("%-18s %10s\n", rates[i].text, "-");
    }
}

void calibration_add(struct json *json, const struct calibration *c)
{
    json_uints(json, {"samples", c->samples}, {"nodes", c->nodes});
    json_fixed(json, "cached", c->cached, 6);
    for (int i = 0; i < RATES; i++) {
        if (rate_of(c, i) > 0)
            json_fixed(json, rates[i].key, rate_of(c, i), 3);
        else
            json_string(json, rates[i].key, NULL);
    }
}
