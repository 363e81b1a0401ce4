/* Stores lists and their index. */
#include "fs/feed/course.h"

#include "fs/base/array.h"
#include "fs/base/cleanup.h"

#include <errno.h>
#include <stdlib.h>

/* A counting sort: a list is at most a little longer than the catalog. */
static int sort_places(struct feed_course *c, uint32_t files)
{
    uint32_t n = c->start[c->ranks];
    CLEANUP_FREE uint32_t *next = calloc(files + 1ul, sizeof *next);
    c->sorted = malloc((n + 1ul) * sizeof *c->sorted);
    if (!next || !c->sorted)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        next[c->file[i] + 1]++;
    for (uint32_t f = 0; f < files; f++)
        next[f + 1] += next[f];
    for (uint32_t i = 0; i < n; i++)
        c->sorted[next[c->file[i]]++] = i;
    return 0;
}

static struct feed_course *course_allocate(const struct course_lists *lists)
{
    struct feed_course *c = calloc(1, sizeof *c);
    if (!c) {
        free(lists->file);
        return NULL;
    }
    c->file = lists->file;
    c->slot = -1;
    for (uint32_t r = 0; r < lists->ranks; r++)
        c->start[r + 1] = c->start[r] + lists->counts[r];
    c->ranks = lists->ranks;
    return c;
}

/* On failure the course is destroyed. */
static int course_open(struct feed_course *c, const struct window_files *window_files, int error,
                       struct feed_course **course)
{
    for (uint32_t r = 0; !error && r < c->ranks; r++)
        error = window_init(&c->window[r], window_files, c->file + c->start[r], c->start[r + 1] - c->start[r]);
    if (error)
        course_destroy(c);
    else
        *course = c;
    return error;
}

int course_create(const struct course_lists *lists, const struct window_files *files, struct feed_course **course)
{
    struct feed_course *c = course_allocate(lists);
    return c ? course_open(c, files, sort_places(c, lists->files), course) : -ENOMEM;
}

static uint64_t record_bytes(void *user, uint32_t record)
{
    const struct feed_course *c = user;
    uint64_t length = samples_length(c->records, record);
    return length < c->most ? length : c->most;
}

static bool is_seen(void *user, uint32_t record)
{
    (void)user, (void)record;
    return false;
}

int course_create_records(const struct course_lists *lists, struct samples *list, uint64_t most,
                          struct feed_course **course)
{
    struct feed_course *c = course_allocate(lists);
    if (!c)
        return -ENOMEM;
    c->records = samples_get(list);
    c->sizes = (struct window_files){record_bytes, is_seen, c};
    c->most = most;
    c->containers = calloc(lists->files / 64 + 1ul, sizeof *c->containers);
    for (uint32_t i = 0; c->containers && i < c->start[c->ranks]; i++)
        c->containers[samples_file(list, c->file[i]) / 64] |= UINT64_C(1) << samples_file(list, c->file[i]) % 64;
    return course_open(c, &c->sizes, c->containers ? 0 : -ENOMEM, course);
}

void course_destroy(struct feed_course *c)
{
    if (!c)
        return;
    for (uint32_t r = 0; r < c->ranks; r++)
        window_fini(&c->window[r]);
    samples_put(c->records);
    free(c->containers);
    free(c->file);
    free(c->sorted);
    free(c);
}

/* The first place in `sorted` whose file is not below `file`. */
static uint32_t lower_bound(const struct feed_course *c, uint64_t file)
{
    return (uint32_t)bisect(i, c->start[c->ranks], c->file[c->sorted[i]] < file);
}

struct course_places course_find(const struct feed_course *c, uint32_t file)
{
    if (c->records)
        return (struct course_places){0};
    uint32_t first = lower_bound(c, file), last = first, n = c->start[c->ranks];
    while (last < n && last - first < COURSE_PLACES && c->file[c->sorted[last]] == file)
        last++;
    return (struct course_places){c->sorted + first, last - first};
}

bool course_has(const struct feed_course *c, uint32_t file)
{
    return c->records ? c->containers[file / 64] >> file % 64 & 1 : course_find(c, file).count > 0;
}

uint32_t course_list(const struct feed_course *c, uint32_t place, uint32_t *position)
{
    uint32_t r = 0;
    while (place >= c->start[r + 1])
        r++;
    *position = place - c->start[r];
    return r;
}
