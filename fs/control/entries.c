/* The table of the entries in the root. */
#include "fs/control/entries.h"

#include "fs/control/control-private.h"
#include "fs/control/texts.h"

#include "fs/base/clock.h"

/* Where other users are admitted, the kernel asks again after this time whether the source has reduced a mode. */
enum { REDUCED_S = 30 };

const struct root_entry root_entries[ROOT_ENTRIES] = {
    {"control", INO_CONTROL, S_IFREG | 0600, false, NULL},
    {"status", INO_STATUS, S_IFREG | 0444, false, control_status},
    {"metrics", INO_METRICS, S_IFREG | 0444, false, control_metrics},
    {"samples", INO_SAMPLES, S_IFREG | 0444, true, NULL},
    {"samples.d", INO_SAMPLES_D, S_IFDIR | 0555, true, NULL},
    {"nodes", INO_NODES, S_IFREG | 0444, false, control_nodes},
    {"node", INO_NODE, S_IFREG | 0444, false, control_node},
    {"errors", INO_ERRORS, S_IFREG | 0444, true, control_errors},
    {"epochs", INO_EPOCHS, S_IFREG | 0444, true, control_epochs},
    {"plan", INO_PLAN, S_IFDIR | 0555, true, NULL},
    {"decoded", INO_DECODED | CATALOG_ROOT, S_IFDIR | 0555, true, NULL},
};

static const struct root_entry root = {"", INO_ROOT, S_IFDIR | 0555, false, NULL};

const struct root_entry *entry_of(uint64_t ino)
{
    if (ino == INO_ROOT)
        return &root;
    for (size_t i = 0; i < ROOT_ENTRIES; i++)
        if (root_entries[i].ino == ino)
            return &root_entries[i];
    return NULL;
}

/* The mount has default_permissions, so the kernel enforces the mode. */
static void stat_at(const struct control *control, const struct root_entry *entry, uint64_t time, off_t size,
                    struct stat *st)
{
    const struct timespec when = {(time_t)(time / SECOND), (long)(time % SECOND)};
    bool hidden = entry->names && !control_is_public(control);
    *st = (struct stat){
        .st_ino = entry->ino,
        .st_mode = hidden ? entry->mode & (S_IFMT | S_IRWXU) : entry->mode,
        .st_nlink = !S_ISDIR(entry->mode)    ? 1
                    : entry->ino == INO_ROOT ? 5
                                             : 2,
        .st_uid = control->config.mount->owner_uid,
        .st_gid = control->config.mount->owner_gid,
        .st_size = size,
        .st_blocks = (size + 511) / 512,
        .st_blksize = 128 << 10,
        .st_atim = when,
        .st_mtim = when,
        .st_ctim = when,
    };
}

double entry_timeout(const struct control *control)
{
    return control->config.mount->allow_other ? REDUCED_S : FOREVER;
}

void entry_stat(const struct control *control, const struct root_entry *entry, off_t size, struct stat *st)
{
    stat_at(control, entry, clock_realtime(), size, st);
}

void entry_stat_file(const struct control *control, uint64_t ino, off_t size, struct stat *st)
{
    const struct root_entry file = {.ino = ino, .mode = S_IFREG | 0444, .names = true};
    stat_at(control, &file, catalog_scanned(control->config.catalog), size, st);
}
