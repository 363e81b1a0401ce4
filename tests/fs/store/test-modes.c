/* Modes that the source reduces, restores and widens. */
#include "fs/store/modes.h"

#include "fs/base/clock.h"
#include "fs/store/mode-round.h"
#include "tests/fs/store/dataset.h"
#include "tests/lib/tap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

enum { FILES = 300 };

static struct dataset d;
static struct modes *modes;
static _Atomic uint64_t changes, last;

static void note_changed(void *user, uint64_t ino)
{
    (void)user;
    atomic_store(&last, ino);
    atomic_fetch_add(&changes, 1);
}

static void look(uint64_t ino, mode_t mode, int64_t ctime)
{
    modes_note(modes, ino, &(struct stat){.st_mode = S_IFREG | mode, .st_ctim = {.tv_sec = ctime}});
}

static mode_t shown(uint64_t ino)
{
    struct stat st;
    if (catalog_stat(d.catalog, ino, &st))
        bail_out("no inode %ju", (uintmax_t)ino);
    return modes_limit(modes, ino, st.st_mode) & 07777;
}

static void test_one(uint64_t ino)
{
    look(ino, 0644, 1);
    ok(shown(ino) == 0644 && !modes_are_reduced(modes), "the mode is as in the catalog");
    look(ino, 0666, 2);
    is_uint(shown(ino), 0644, "a wider one in the source does not count");
    look(ino, 0600, 3);
    ok(shown(ino) == 0600 && modes_are_reduced(modes), "a reduced one does");
    is_uint(shown(ino + 1), 0644, "but not for another file");
    look(ino, 0644, 2);
    is_uint(shown(ino), 0600, "an older look changes nothing");
    look(ino, 0606, 4);
    is_uint(shown(ino), 0604, "what both grant is shown");
    modes_note(modes, ino, &(struct stat){.st_mode = S_IFDIR | 0700, .st_ctim = {.tv_sec = 5}});
    is_uint(shown(ino), 0604, "a directory in its place is not the file");
    look(ino, 0644, 6);
    ok(shown(ino) == 0644 && !modes_are_reduced(modes), "the mode is restored");
}

static void test_many(void)
{
    look(catalog_file_ino(d.catalog, 1), 0600, 10);
    modes_listen(modes, note_changed, NULL);
    ok(atomic_load(&changes) > 0, "a listener hears of earlier changes");
    atomic_store(&changes, 0);
    for (uint32_t file = 0; file < FILES; file++)
        look(catalog_file_ino(d.catalog, file), 0640, 20);
    uint32_t wrong = 0;
    for (uint32_t file = 0; file < FILES; file++)
        wrong += shown(catalog_file_ino(d.catalog, file)) != 0640;
    is_uint(wrong, 0, "%d files are reduced", FILES);
    is_uint(atomic_load(&changes), FILES, "and the listener hears of each");
    for (uint32_t file = 0; file < FILES; file++)
        look(catalog_file_ino(d.catalog, file), 0640, 30);
    is_uint(atomic_load(&changes), FILES, "of each once");
}

static unsigned five_nodes(void *user)
{
    (void)user;
    return 5;
}

static void test_round(void)
{
    struct mode_round_config config = {.catalog = d.catalog, .root = d.root, .modes = modes, .nodes = five_nodes};
    struct mode_round *round;
    uint64_t ino;
    if (chmod(dataset_path(&d, "folder"), 0700) || catalog_find(d.catalog, "folder", strlen("folder"), &ino) ||
        mode_round_start(&config, &round))
        bail_out("start a round");
    wait_until(atomic_load(&last) == ino);
    is_uint(shown(ino), 0700, "a directory that the source closes is found in a round");
    ok(mode_round_seconds(round) > 0, "a round takes %ju s", (uintmax_t)mode_round_seconds(round));
    mode_round_stop(round);
}

int main(void)
{
    dataset_begin(&d);
    for (int i = 0; i < FILES; i++)
        dataset_add(&d, test_path("folder/%d", i) + strlen(test_directory()) + 1, 10);
    for (int i = 0; i < FILES; i++)
        chmod(dataset_path(&d, test_path("folder/%d", i) + strlen(test_directory()) + 1), 0644);
    chmod(dataset_path(&d, "folder"), 0755);
    dataset_scan(&d);
    if (modes_create(d.catalog, &modes))
        bail_out("create modes");
    test_one(catalog_file_ino(d.catalog, 0));
    test_many();
    test_round();
    modes_destroy(modes);
    dataset_end(&d);
    return done_testing();
}
