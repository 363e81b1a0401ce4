/* STATE/world is one line: the uuid of the world and the digest of its directory in hexadecimal digits, and this node's
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
static const char prefix[] = "directory-";
enum { SPARED = sizeof prefix + DIGEST_TEXT };

int world_create(const uint8_t uuid[16], uint32_t me, struct directory *directory, struct world **out)
{
    if (me >= directory_nodes(directory)) {
        directory_close(directory);
        return -EINVAL;
    }
    struct world *w = calloc(1, sizeof *w);
    uint64_t *owned = calloc(directory_nodes(directory), sizeof *owned);
    if (!w || !owned) {
        free(w);
        free(owned);
        directory_close(directory);
        return -ENOMEM;
    }
    *w = (struct world){
        .refs = 1,
        .nodes = directory_nodes(directory),
        .me = me,
        .groups = directory_groups(directory),
        .group = directory_group(directory, me),
        .directory = directory,
        .owned = owned,
    };
    memcpy(w->uuid, uuid, sizeof w->uuid);
    for (uint32_t node = 0; node < w->nodes; node++)
        owned[node] = directory_owned(directory, node, NULL);
    *out = w;
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
    directory_close(w->directory);
    free(w->owned);
    free(w);
}

bool world_is_like(const struct world *w, const struct directory *d)
{
    if (directory_nodes(d) != w->nodes || directory_groups(d) != w->groups)
        return false;
    for (uint32_t i = 0; i < w->nodes; i++)
        if (strcmp(directory_node(d, i)->id, directory_node(w->directory, i)->id) != 0)
            return false;
    return true;
}

/* Files. */

static void directory_path(char path[PATH_MAX], const char *state, const struct digest *digest)
{
    char text[DIGEST_TEXT];
    snprintf(path, PATH_MAX, "%s/%s%s", state, prefix, digest_format(digest, text));
}

/* What STATE/world says. */
struct last_world {
    struct digest uuid, directory;
    unsigned me;
};

static int parse(const char *line, struct last_world *last)
{
    char text[2][DIGEST_TEXT];
    int end = 0;
    if (sscanf(line, "%32s %32s %u%n", text[0], text[1], &last->me, &end) != 3 || strcmp(line + end, "\n") ||
        digest_parse(text[0], &last->uuid) || digest_parse(text[1], &last->directory))
        return -EBADMSG;
    return 0;
}

static int read_last(const char *state, struct last_world *last)
{
    CLEANUP_STR struct str line = STR_INIT;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/world", state);
    int error = file_read(AT_FDCWD, path, LINE_MOST, &line);
    if (error)
        return error;
    return line.data ? parse(line.data, last) : -EBADMSG;
}

struct aged {
    struct timespec time;
    char name[NAME_MAX + 1];
};

static bool older(const struct aged *a, const struct aged *b)
{
    return a->time.tv_sec != b->time.tv_sec ? a->time.tv_sec < b->time.tv_sec : a->time.tv_nsec < b->time.tv_nsec;
}

/* The oldest of the saved directories but those that are spared, and how many there are. */
static int find_oldest(DIR *dir, char spared[2][SPARED], struct aged *oldest)
{
    int count = 0;
    oldest->name[0] = '\0';
    rewinddir(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct aged one;
        struct stat st;
        if (strncmp(entry->d_name, prefix, strlen(prefix)) ||
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        count++;
        one.time = st.st_mtim;
        strcpy(one.name, entry->d_name);
        if (strcmp(one.name, spared[0]) && strcmp(one.name, spared[1]) && (!oldest->name[0] || older(&one, oldest)))
            *oldest = one;
    }
    return count;
}

/* What the last world had stays, as later ones may not have come to life; so does this one. */
static void prune(const char *state, const struct directory *saved)
{
    CLEANUP_CLOSEDIR DIR *dir = opendir(state);
    struct last_world last;
    char spared[2][SPARED] = {"", ""}, text[DIGEST_TEXT];
    struct aged oldest;
    snprintf(spared[0], SPARED, "%s%s", prefix, digest_format(directory_digest(saved), text));
    if (!read_last(state, &last))
        snprintf(spared[1], SPARED, "%s%s", prefix, digest_format(&last.directory, text));
    while (dir && find_oldest(dir, spared, &oldest) > KEPT)
        if (unlinkat(dirfd(dir), oldest.name, 0) < 0)
            return;
}

int world_save_directory(const char *state, const struct directory *directory)
{
    char path[PATH_MAX];
    directory_path(path, state, directory_digest(directory));
    int error = directory_save(directory, path);
    if (!error)
        prune(state, directory);
    return error;
}

int world_open_directory(const char *state, const struct catalog *catalog, const struct digest *digest,
                         struct directory **directory)
{
    char path[PATH_MAX];
    directory_path(path, state, digest);
    int error = directory_open(path, catalog, directory);
    if (error || memcmp(directory_digest(*directory), digest, sizeof *digest) == 0)
        return error;
    directory_close(*directory);
    return -EBADMSG;
}

int world_save(const char *state, const struct world *w)
{
    char path[PATH_MAX], line[LINE_MOST], uuid[DIGEST_TEXT], digest[DIGEST_TEXT];
    struct digest world;
    memcpy(world.byte, w->uuid, sizeof world.byte);
    snprintf(path, sizeof path, "%s/world", state);
    int n = snprintf(line, sizeof line, "%s %s %u\n", digest_format(&world, uuid),
                     digest_format(directory_digest(w->directory), digest), w->me);
    return file_write_atomic(AT_FDCWD, path, line, (size_t)n, 0600);
}

int world_load(const char *state, const struct catalog *catalog, struct world **world)
{
    struct last_world last;
    struct directory *directory;
    int error = read_last(state, &last);
    if (error)
        return error;
    error = world_open_directory(state, catalog, &last.directory, &directory);
    if (error)
        return error == -ENOENT ? -ENODATA : error;
    return world_create(last.uuid.byte, last.me, directory, world);
}

void world_forget(const char *state)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/world", state);
    if (unlink(path) < 0 && errno != ENOENT)
        log_warning("remove %s: %s", path, strerror(errno));
}
