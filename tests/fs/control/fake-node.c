#include "tests/fs/control/fake-node.h"

#include "fs/control/control-private.h"
#include "fs/control/lists.h"
#include "fs/control/texts.h"
#include "fs/control/verbs.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/base/json.h"
#include "fs/catalog/scanner.h"
#include "fs/world/extents.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

struct fake_store fake;
struct world_view world;
struct peer_view peer[NODES];
struct layout *layout, *later;
struct fake_peers others;
struct catalog *catalog;
struct mount_config mount;

/* --- the store --- */

const char *const place_names[PLACES] = {"ram", "ssd", "peer", "source"};

void store_stats(struct store *store, struct store_stats *stats)
{
    (void)store;
    *stats = fake.stats;
}

int store_where(struct store *store, uint32_t file, uint64_t offset, enum tier_name *tier)
{
    (void)store, (void)offset;
    *tier = fake.tier;
    return file == fake.file ? 0 : -ENOENT;
}

mode_t store_limit_mode(struct store *store, uint64_t ino, mode_t mode)
{
    (void)store, (void)ino;
    return mode;
}

bool store_has_reduced(struct store *store)
{
    (void)store;
    return fake.reduced;
}

int store_read(struct store *store, struct store_read *read)
{
    (void)store, (void)read;
    return -EIO;
}

bool store_cancel(struct store *store, struct store_read *read)
{
    (void)store, (void)read;
    return false;
}

int store_stage_start(struct store *store, uint64_t round, struct samples *chosen)
{
    (void)store;
    fake.chosen = chosen ? samples_count(chosen) : 0;
    for (uint32_t i = 0; i < fake.chosen && i < FAKE_CHOSEN; i++)
        fake.file_at[i] = samples_file(chosen, i);
    if (!fake.start_error) {
        fake.progress.state = STAGE_RUNNING;
        fake.progress.round = round;
    }
    return fake.start_error;
}

void store_stage_stop(struct store *store)
{
    (void)store;
    fake.stops++;
    fake.progress.state = STAGE_STOPPED;
}

void store_stage_progress(struct store *store, struct stage_progress *now)
{
    (void)store;
    *now = fake.progress;
}

/* --- peers --- */

int peers_view(struct peers *peers, struct world_view *view)
{
    if (!peers)
        return -ENOTCONN;
    others.views++;
    *view = world;
    view->peer = peer;
    view->hold = &world;
    return 0;
}

int peers_blob(struct peers *peers, const struct blob_question *asked, void *to, uint64_t *length)
{
    const struct blob_question question = {1, asked->key & ~UINT64_C(1), asked->offset};
    (void)peers;
    if (asked->node != 0 || !others.lists)
        return -EHOSTUNREACH;
    if (control_blob(others.lists, &question, to, BLOB_PIECE, length) < 0)
        return -ENOENT;
    if (question.key == 0 && *length > 0 && others.false_answers > 0) {
        others.false_answers--;
        memset(&((struct samples_record *)to)->digest, others.false_digest, sizeof(struct digest));
    }
    return 0;
}

void peers_view_release(struct world_view *view)
{
    others.views--;
    view->hold = NULL;
}

int peers_command(struct peers *peers, enum world_command command, uint64_t token)
{
    if (!peers)
        return -ENOTCONN;
    others.told++;
    others.command = command;
    others.token = token;
    return others.tell_error;
}

int peers_turn(struct peers *peers, const struct turn *turn, const struct turn_patience *patience,
               struct turn_record *record, struct str *trouble)
{
    if (!peers)
        return -ENOTCONN;
    others.asked++;
    others.seconds = (patience->deadline - clock_now() + SECOND / 2) / SECOND;
    if (others.turn_error) {
        str_adds(trouble, "told why");
        return others.turn_error;
    }
    if (!world.last.k || !turn_same(&world.last.turn, turn)) {
        others.next.turn = *turn;
        others.next.k = world.last.k + 1;
        world.last = others.next;
    }
    *record = world.last;
    return 0;
}

bool peers_await_courier(struct peers *peers, bool (*gave_up)(void *user), void *user)
{
    (void)peers, (void)gave_up, (void)user;
    return false;
}

int peers_layout(struct peers *peers, const struct digest *digest, struct layout **found)
{
    struct layout *known = !peers ? NULL : layout_is(layout, digest) ? layout : layout_is(later, digest) ? later : NULL;
    if (known)
        *found = layout_get(known);
    return known ? 0 : -ENOENT;
}

/* --- a mount in a world --- */

void fake_file(const char *path, size_t n)
{
    char bytes[200] = "";
    if (file_write_atomic(AT_FDCWD, path, bytes, n, 0644))
        bail_out("cannot write %s", path);
}

struct catalog *fake_scan(void)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct scan_options options = {.threads = 1, .rescan = RESCAN_ALWAYS};
    struct scan_progress result;
    struct catalog *found = NULL;
    CLEANUP_CLOSE int fd = open(test_path("source"), O_RDONLY | O_DIRECTORY);
    if (scan_source(fd, test_path("catalog"), &options, &found, &why, &result) != 0)
        bail_out("scan: %s", why.data);
    return found;
}

/* The second file finds no room. */
static void make_layout(void)
{
    static const struct message_member member[NODES] = {
        {{"00000000000000000000000000000000", "alpha", 0}, {.room = 0}},
        {{"11111111111111111111111111111111", "beta", 120}, {.room = 120}},
        {{"22222222222222222222222222222222", "ga\nmma", 120}, {.room = 120}},
    };
    static const uint16_t holder[] = {2, NO_OWNER, 1}, holder_after[] = {1, NO_OWNER, 2};
    struct extents *extents;
    if (extents_create(catalog, &extents))
        bail_out("no memory");
    struct layout_input input = {catalog, extents, NODES, 1, member, holder};
    struct layout_input after = {catalog, extents, NODES, 1, member, holder_after};
    if (layout_compute(&input, &layout) || layout_compute(&after, &later))
        bail_out("no layout");
    extents_destroy(extents);
    for (int i = 0; i < NODES; i++)
        peer[i].node = *layout_node(layout, (uint32_t)i);
}

void fake_begin(void)
{
    fake.stats = (struct store_stats){
        .reads = {1, 2, 3, 4},
        .tier[TIER_RAM] = {.state = TIER_OPEN, .capacity = 1000, .held = 10},
    };
    mount = (struct mount_config){
        .source = strdup(test_path("source")),
        .mountpoint = strdup(test_path("mnt")),
        .state = strdup(test_directory()),
        .control = strdup(test_path("control")),
        .id = strdup("my id"),
    };
    dir_make(test_path("source/d"), 0755);
    fake_file(test_path("source/a"), 100);
    fake_file(test_path("source/b"), 150);
    fake_file(test_path("source/c"), 50);
    catalog = fake_scan();
    make_layout();
}

void fake_end(void)
{
    is_int(others.views, 0, "every view was released");
    layout_close(layout);
    layout_close(later);
    catalog_close(catalog);
    config_fini(&mount);
}

void fake_reset(void)
{
    fake.progress = (struct stage_progress){.state = STAGE_IDLE};
    fake.start_error = fake.stops = 0;
    others = (struct fake_peers){.views = others.views, .next = others.next};
    for (int i = 0; i < NODES; i++) {
        peer[i].state = PEER_GOOD;
        peer[i].news = (struct node_news){.held = 100 + (uint64_t)i, .capacity = 2000, .reads = {5, 0, 6, 0}};
    }
    world = (struct world_view){
        .state = WORLD_JOINED,
        .nodes = NODES,
        .me = 1,
        .groups = 1,
        .layout = *layout_digest(layout),
        .known = true,
        .courier = 4711,
        .timeouts = 8,
        .bad = 9,
        .owners = layout,
        .settled = UINT64_MAX, /* which extents have no owner */
    };
}

struct control *fake_create(bool filled)
{
    struct control_config config = {
        .mount = &mount,
        .catalog = filled ? catalog : NULL,
        .store = filled ? (struct store *)&fake : NULL,
        .peers = (struct peers *)&world,
        .generation = 1,
    };
    struct control *control = NULL;
    int error = control_create(&config, &control);
    if (error)
        bail_out("control_create: %s", strerror(-error));
    return control;
}

/* --- what it says --- */

void fake_check(const struct str *json, const char *path, const char *expected)
{
    const char *value = "";
    long n = json_find(json->data, json->length, path, &value);
    CLEANUP_STR struct str text = STR_INIT;
    str_add(&text, value, n > 0 ? (size_t)n : 0);
    is_str(text.data, expected, "%s", path);
}

void fake_checks(const struct str *json, const char *expected)
{
    char text[1024], *rest = text, *path;
    snprintf(text, sizeof text, "%s", expected);
    for (char *quote = text; (quote = strchr(quote, '\''));)
        *quote = '"';
    while ((path = strsep(&rest, " "))) {
        char *value = strchr(path, '=');
        *value++ = 0;
        fake_check(json, path, value);
    }
}

void fake_status(struct control *control, struct str *json)
{
    str_clear(json);
    is_int(control_status(control, json), 0, "status");
}

int fake_run(struct control *control, const char *request, struct str *reply)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct asker asker = {.reply = reply, .why = &why};
    str_clear(reply);
    int error = verbs_run(control, request, strlen(request), &asker);
    if (error)
        str_add(reply, why.data, why.length);
    return error;
}
