/* Lists and their index. */
#include "fs/feed/course.h"

#include "fs/base/cleanup.h"

#include <errno.h>
#include <stdlib.h>

/* Counted, then laid out: a list is as long as the catalog at most, or little longer. */
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

int course_create(uint32_t *file, const uint32_t *counts, uint32_t ranks, uint32_t files,
                  const struct window_files *window_files, struct feed_course **course)
{
    struct feed_course *c = calloc(1, sizeof *c);
    if (!c) {
        free(file);
        return -ENOMEM;
    }
    c->file = file;
    c->slot = -1;
    for (uint32_t r = 0; r < ranks; r++)
        c->start[r + 1] = c->start[r] + counts[r];
    c->ranks = ranks;
    int error = sort_places(c, files);
    for (uint32_t r = 0; !error && r < ranks; r++)
        error = window_init(&c->window[r], window_files, file + c->start[r], counts[r]);
    if (error)
        course_destroy(c);
    else
        *course = c;
    return error;
}

void course_destroy(struct feed_course *c)
{
    if (!c)
        return;
    for (uint32_t r = 0; r < c->ranks; r++)
        window_fini(&c->window[r]);
    free(c->file);
    free(c->sorted);
    free(c);
}

/* The first place in `sorted` whose file is `file` or a later one. */
static uint32_t lower_bound(const struct feed_course *c, uint64_t file)
{
    uint32_t low = 0, high = c->start[c->ranks];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (c->file[c->sorted[middle]] < file)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct course_places course_find(const struct feed_course *c, uint32_t file)
{
    uint32_t first = lower_bound(c, file), last = first, n = c->start[c->ranks];
    while (last < n && last - first < COURSE_PLACES && c->file[c->sorted[last]] == file)
        last++;
    return (struct course_places){c->sorted + first, last - first};
}

uint32_t course_list(const struct feed_course *c, uint32_t place)
{
    uint32_t r = 0;
    while (place >= c->start[r + 1])
        r++;
    return r;
}
