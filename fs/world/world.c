/* STATE/world is described in FORMAT. It stays when a courier goes: a server that is started anew is still what its
 * mount was. */
#include "fs/world/world.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

enum { WORLD_MOST = 4096, KEPT = 8, SPARES = 3 };
static const char layout_prefix[] = "layout-";
enum { SPARED = sizeof layout_prefix + DIGEST_TEXT };

const char *const world_state_names[] = {
    [WORLD_ALONE] = "alone", [WORLD_JOINED] = "joined", [WORLD_DEGRADED] = "degraded"};

int world_create(const uint8_t uuid[16], uint32_t me, struct layout *layout, struct world **out)
{
    bool in_it = me < layout_nodes(layout);
    struct world *w = in_it ? calloc(1, sizeof *w) : NULL;
    if (!w) {
        layout_close(layout);
        return in_it ? -ENOMEM : -EINVAL;
    }
    *w = (struct world){
        .refs = 1,
        .nodes = layout_nodes(layout),
        .me = me,
        .group = layout_group(layout, me),
        .layout = layout,
    };
    memcpy(w->uuid, uuid, sizeof w->uuid);
    *out = w;
    return 0;
}

static bool same_nodes(const struct layout *a, const struct layout *b)
{
    if (layout_nodes(a) != layout_nodes(b) || layout_groups(a) != layout_groups(b))
        return false;
    for (uint32_t i = 0; i < layout_nodes(a); i++)
        if (strcmp(layout_node(a, i)->id, layout_node(b, i)->id) != 0)
            return false;
    return true;
}

int world_turn(const struct world *before, struct layout *layout, const struct turn_history *history,
               struct world **after)
{
    const struct turn_record *last = &history->record[0];
    if (!history->count || !same_nodes(before->layout, layout) || !layout_is(layout, &last->after) ||
        !layout_is(before->layout, &last->before)) {
        layout_close(layout);
        return -EBADMSG;
    }
    int error = world_create(before->uuid, before->me, layout, after);
    if (error)
        return error;
    (*after)->before = layout_get(before->layout);
    (*after)->history = *history;
    (*after)->k = last->k;
    return 0;
}

struct world *world_get(struct world *w)
{
    if (w)
        atomic_fetch_add_explicit(&w->refs, 1, memory_order_relaxed);
    return w;
}

void world_put(struct world *w)
{
    if (!w || atomic_fetch_sub_explicit(&w->refs, 1, memory_order_acq_rel) != 1)
        return;
    layout_close(w->layout);
    layout_close(w->before);
    free(w);
}

/* Files. */

static void layout_path(char path[PATH_MAX], const char *state, const struct digest *digest)
{
    char text[DIGEST_TEXT];
    snprintf(path, PATH_MAX, "%s/%s%s", state, layout_prefix, digest_format(digest, text));
}

/* What STATE/world says. */
struct last_world {
    struct digest uuid, layout;
    unsigned me;
    struct turn_history history;
};

static bool parse_turn(const char *line, struct turn_record *r)
{
    char text[2][DIGEST_TEXT];
    int end = 0;
    if (sscanf(line, "turn %" SCNu64 " %" SCNu32 " %" SCNu32 " %" SCNu64 " %" SCNu64 " %32s %32s%n", &r->k,
               &r->turn.cause, &r->turn.fraction, &r->turn.epoch, &r->turn.seed, text[0], text[1], &end) != 7)
        return false;
    return !line[end] && turn_is_sound(&r->turn) && !digest_parse(text[0], &r->before) &&
           !digest_parse(text[1], &r->after);
}

static bool parse_world(const char *line, struct last_world *last)
{
    char text[2][DIGEST_TEXT];
    int end = 0;
    return sscanf(line, "world 2 %32s %32s %u%n", text[0], text[1], &last->me, &end) == 3 && !line[end] &&
           !digest_parse(text[0], &last->uuid) && !digest_parse(text[1], &last->layout);
}

static int read_last(const char *state, struct last_world *last)
{
    CLEANUP_STR struct str text = STR_INIT;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/world", state);
    int error = file_read(AT_FDCWD, path, WORLD_MOST, &text);
    if (error)
        return error;
    char *rest = text.data, *line = rest ? strsep(&rest, "\n") : NULL;
    memset(&last->history, 0, sizeof last->history);
    if (!line || !parse_world(line, last))
        return -EBADMSG;
    while ((line = strsep(&rest, "\n")) && *line)
        if (last->history.count == TURNS_KEPT || !parse_turn(line, &last->history.record[last->history.count++]))
            return -EBADMSG;
    return line && !rest ? 0 : -EBADMSG;
}

struct saved_layout {
    struct timespec time;
    char name[NAME_MAX + 1];
};

static bool is_older(const struct saved_layout *a, const struct saved_layout *b)
{
    return a->time.tv_sec != b->time.tv_sec ? a->time.tv_sec < b->time.tv_sec : a->time.tv_nsec < b->time.tv_nsec;
}

static bool is_spared(const char *name, char spared[SPARES][SPARED])
{
    for (int i = 0; i < SPARES; i++)
        if (strcmp(name, spared[i]) == 0)
            return true;
    return false;
}

static void spare_layout(char spared[SPARED], const struct digest *layout)
{
    char text[DIGEST_TEXT];
    snprintf(spared, SPARED, "%s%s", layout_prefix, digest_format(layout, text));
}

/* The oldest of the saved layouts but those that are spared, and how many there are. */
static int find_oldest(DIR *dir, char spared[SPARES][SPARED], struct saved_layout *oldest)
{
    int count = 0;
    oldest->name[0] = '\0';
    rewinddir(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct saved_layout one;
        struct stat st;
        if (strncmp(entry->d_name, layout_prefix, strlen(layout_prefix)) ||
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        count++;
        one.time = st.st_mtim;
        strcpy(one.name, entry->d_name);
        if (!is_spared(one.name, spared) && (!oldest->name[0] || is_older(&one, oldest)))
            *oldest = one;
    }
    return count;
}

/* What the last world has stays, as later ones may not have come to life, and turns not be taken; so does this one. */
static void prune_layouts(const char *state, const struct layout *saved)
{
    CLEANUP_CLOSEDIR DIR *dir = opendir(state);
    struct last_world last;
    char spared[SPARES][SPARED] = {"", "", ""};
    struct saved_layout oldest;
    spare_layout(spared[0], layout_digest(saved));
    if (!read_last(state, &last)) {
        spare_layout(spared[1], &last.layout);
        spare_layout(spared[2], &last.history.record[0].before);
    }
    while (dir && find_oldest(dir, spared, &oldest) > KEPT)
        if (unlinkat(dirfd(dir), oldest.name, 0) < 0)
            return;
}

int world_save_layout(const char *state, const struct layout *layout)
{
    char path[PATH_MAX];
    layout_path(path, state, layout_digest(layout));
    int error = layout_save(layout, path);
    if (!error)
        prune_layouts(state, layout);
    return error;
}

int world_open_layout(const char *state, const struct catalog *catalog, const struct digest *digest,
                      struct layout **layout)
{
    char path[PATH_MAX];
    layout_path(path, state, digest);
    int error = layout_open(path, catalog, layout);
    if (error || layout_is(*layout, digest))
        return error;
    layout_close(*layout);
    return -EBADMSG;
}

int world_save(const char *state, const struct world *w)
{
    CLEANUP_STR struct str text = STR_INIT;
    char path[PATH_MAX], a[DIGEST_TEXT], b[DIGEST_TEXT];
    struct digest world;
    memcpy(world.byte, w->uuid, sizeof world.byte);
    snprintf(path, sizeof path, "%s/world", state);
    str_addf(&text, "world 2 %s %s %u\n", digest_format(&world, a), digest_format(layout_digest(w->layout), b), w->me);
    for (uint64_t i = 0; i < w->history.count; i++) {
        const struct turn_record *r = &w->history.record[i];
        str_addf(&text, "turn %" PRIu64 " %" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %s %s\n", r->k, r->turn.cause,
                 r->turn.fraction, r->turn.epoch, r->turn.seed, digest_format(&r->before, a),
                 digest_format(&r->after, b));
    }
    return text.failed ? -ENOMEM : file_write_atomic(AT_FDCWD, path, text.data, text.length, 0600);
}

/* The layout before may be gone; then the source has what it tells. */
static int add_turns(const char *state, const struct catalog *catalog, const struct turn_history *history,
                     struct world *w)
{
    struct layout *before;
    int error = world_open_layout(state, catalog, &history->record[0].before, &before);
    if (!error)
        w->before = before;
    if (!error && !same_nodes(before, w->layout))
        error = -EBADMSG;
    w->history = *history;
    w->k = turn_number(history);
    return error == -ENOMEM || error == -EBADMSG ? error : 0;
}

int world_load(const char *state, const struct catalog *catalog, struct world **world)
{
    struct last_world last;
    struct layout *layout;
    struct world *w = NULL;
    int error = read_last(state, &last);
    if (error)
        return error;
    error = world_open_layout(state, catalog, &last.layout, &layout);
    if (error)
        return error == -ENOENT ? -ENODATA : error;
    error = world_create(last.uuid.byte, last.me, layout, &w);
    if (!error && last.history.count)
        error = add_turns(state, catalog, &last.history, w);
    if (error)
        world_put(w);
    else
        *world = w;
    return error;
}

void world_forget(const char *state)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/world", state);
    if (unlink(path) < 0 && errno != ENOENT)
        log_warning("remove %s: %s", path, strerror(errno));
}
