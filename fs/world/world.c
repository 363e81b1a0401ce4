/* FORMAT describes STATE/world. The file stays when a courier ends, so that a restarted server resumes its mount's
 * world. */
#include "fs/world/world.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

enum { WORLD_MOST = 4096 };

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

int world_recall(struct world *w, const struct turn_record *turn, struct layout *before, struct layout *earlier)
{
    bool fits = turn->k == 0 || (turn_is_sound(&turn->turn) && layout_is(w->layout, &turn->after));
    if (!fits || (before && !same_nodes(before, w->layout)) || (earlier && !same_nodes(earlier, w->layout))) {
        layout_close(before);
        layout_close(earlier);
        return -EBADMSG;
    }
    w->before = before;
    w->earlier = earlier;
    w->last = *turn;
    return 0;
}

int world_turn(const struct world *before, struct layout *layout, const struct turn_record *turn, struct world **after)
{
    struct world *w;
    if (!turn->k || !same_nodes(before->layout, layout) || !layout_is(before->layout, &turn->before)) {
        layout_close(layout);
        return -EBADMSG;
    }
    int error = world_create(before->uuid, before->me, layout, &w);
    if (error)
        return error;
    error = world_recall(w, turn, layout_get(before->layout), before->before ? layout_get(before->before) : NULL);
    if (error)
        world_put(w);
    else
        *after = w;
    return error;
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
    layout_close(w->earlier);
    free(w);
}

/* --- its file --- */

/* The contents of STATE/world. */
struct last_world {
    struct digest uuid, layout;
    unsigned me;
    struct turn_record turn; /* k = 0: none */
};

static bool parse_turn(const char *line, struct turn_record *r)
{
    char text[3][DIGEST_TEXT];
    int end = 0;
    if (sscanf(line, "turn %" SCNu64 " %" SCNu32 " %" SCNu32 " %" SCNu64 " %" SCNu64 " %32s %32s %32s%n", &r->k,
               &r->turn.cause, &r->turn.fraction, &r->turn.epoch, &r->turn.seed, text[0], text[1], text[2], &end) != 8)
        return false;
    return !line[end] && turn_is_sound(&r->turn) && !digest_parse(text[0], &r->earlier) &&
           !digest_parse(text[1], &r->before) && !digest_parse(text[2], &r->after);
}

static bool parse_world(const char *line, struct last_world *last)
{
    char text[2][DIGEST_TEXT];
    int end = 0;
    return sscanf(line, "world 3 %32s %32s %u%n", text[0], text[1], &last->me, &end) == 3 && !line[end] &&
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
    memset(&last->turn, 0, sizeof last->turn);
    if (!line || !parse_world(line, last))
        return -EBADMSG;
    line = strsep(&rest, "\n");
    if (line && *line && (!parse_turn(line, &last->turn) || !(line = strsep(&rest, "\n"))))
        return -EBADMSG;
    return line && !*line && !rest ? 0 : -EBADMSG;
}

int world_save(const char *state, const struct world *w)
{
    CLEANUP_STR struct str text = STR_INIT;
    char path[PATH_MAX], a[DIGEST_TEXT], b[DIGEST_TEXT], c[DIGEST_TEXT];
    const struct turn_record *r = &w->last;
    struct digest world;
    memcpy(world.byte, w->uuid, sizeof world.byte);
    snprintf(path, sizeof path, "%s/world", state);
    str_addf(&text, "world 3 %s %s %u\n", digest_format(&world, a), digest_format(layout_digest(w->layout), b), w->me);
    if (r->k)
        str_addf(&text, "turn %" PRIu64 " %" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %s %s %s\n", r->k,
                 r->turn.cause, r->turn.fraction, r->turn.epoch, r->turn.seed, digest_format(&r->earlier, a),
                 digest_format(&r->before, b), digest_format(&r->after, c));
    return text.failed ? -ENOMEM : file_write_atomic(AT_FDCWD, path, text.data, text.length, 0600);
}

int world_load(const char *state, struct shelf *shelf, const struct catalog *catalog, struct world **world)
{
    struct last_world last;
    struct layout *layout, *before = NULL, *earlier = NULL;
    struct world *w = NULL;
    int error = read_last(state, &last);
    if (error)
        return error;
    error = shelf_find(shelf, catalog, &last.layout, &layout);
    if (error)
        return error == -ENOENT ? -ENODATA : error;
    error = world_create(last.uuid.byte, last.me, layout, &w);
    if (error)
        return error;
    /* Earlier layouts may be missing; then the source has their extents. */
    if (last.turn.k && shelf_find(shelf, catalog, &last.turn.before, &before))
        before = NULL;
    if (last.turn.k > 1 && shelf_find(shelf, catalog, &last.turn.earlier, &earlier))
        earlier = NULL;
    error = world_recall(w, &last.turn, before, earlier);
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
