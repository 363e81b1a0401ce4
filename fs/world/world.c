/* STATE/world is one line: the uuid of the world and the digest of its layout in hexadecimal digits, and this node's
 * number. It stays when a courier goes: a server that is started anew is still what its mount was. */
#include "fs/world/world.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

enum { LINE_MOST = 256, KEPT = 8 };
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

int world_turn(const struct world *before, struct layout *layout, struct world **after)
{
    if (same_nodes(before->layout, layout))
        return world_create(before->uuid, before->me, layout, after);
    layout_close(layout);
    return -EBADMSG;
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
};

static int read_last(const char *state, struct last_world *last)
{
    CLEANUP_STR struct str line = STR_INIT;
    char path[PATH_MAX], text[2][DIGEST_TEXT];
    int end = 0;
    snprintf(path, sizeof path, "%s/world", state);
    int error = file_read(AT_FDCWD, path, LINE_MOST, &line);
    if (error)
        return error;
    if (!line.data || sscanf(line.data, "%32s %32s %u%n", text[0], text[1], &last->me, &end) != 3 ||
        strcmp(line.data + end, "\n") || digest_parse(text[0], &last->uuid) || digest_parse(text[1], &last->layout))
        return -EBADMSG;
    return 0;
}

struct saved_layout {
    struct timespec time;
    char name[NAME_MAX + 1];
};

static bool is_older(const struct saved_layout *a, const struct saved_layout *b)
{
    return a->time.tv_sec != b->time.tv_sec ? a->time.tv_sec < b->time.tv_sec : a->time.tv_nsec < b->time.tv_nsec;
}

/* The oldest of the saved layouts but those that are spared, and how many there are. */
static int find_oldest(DIR *dir, char spared[2][SPARED], struct saved_layout *oldest)
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
        if (strcmp(one.name, spared[0]) && strcmp(one.name, spared[1]) && (!oldest->name[0] || is_older(&one, oldest)))
            *oldest = one;
    }
    return count;
}

/* What the last world had stays, as later ones may not have come to life; so does this one. */
static void prune_layouts(const char *state, const struct layout *saved)
{
    CLEANUP_CLOSEDIR DIR *dir = opendir(state);
    struct last_world last;
    char spared[2][SPARED] = {"", ""}, text[DIGEST_TEXT];
    struct saved_layout oldest;
    snprintf(spared[0], SPARED, "%s%s", layout_prefix, digest_format(layout_digest(saved), text));
    if (!read_last(state, &last))
        snprintf(spared[1], SPARED, "%s%s", layout_prefix, digest_format(&last.layout, text));
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
    char path[PATH_MAX], line[LINE_MOST], uuid[DIGEST_TEXT], digest[DIGEST_TEXT];
    struct digest world;
    memcpy(world.byte, w->uuid, sizeof world.byte);
    snprintf(path, sizeof path, "%s/world", state);
    int n = snprintf(line, sizeof line, "%s %s %u\n", digest_format(&world, uuid),
                     digest_format(layout_digest(w->layout), digest), w->me);
    return file_write_atomic(AT_FDCWD, path, line, (size_t)n, 0600);
}

int world_load(const char *state, const struct catalog *catalog, struct world **world)
{
    struct last_world last;
    struct layout *layout;
    int error = read_last(state, &last);
    if (error)
        return error;
    error = world_open_layout(state, catalog, &last.layout, &layout);
    if (error)
        return error == -ENOENT ? -ENODATA : error;
    return world_create(last.uuid.byte, last.me, layout, world);
}

void world_forget(const char *state)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/world", state);
    if (unlink(path) < 0 && errno != ENOENT)
        log_warning("remove %s: %s", path, strerror(errno));
}
