/* The RAM tier is a detached tmpfs if this process may mount one; else a folder in /dev/shm, which others also use
 * (NCCL, loader workers), so it takes at most half of what is free. The SSD tier is a folder in the user's directory,
 * identified by user and source, not by mountpoint. What our folders already contain counts as free. */
#include "cli/mount/tiers.h"

#include "cli/base/memory.h"
#include "cli/base/place.h"
#include "cli/live/keepers.h"
#include "fs/attach/attach.h"
#include "fs/attach/mounter.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/size.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

enum {
    VALUE = 128 << 10,
    BESIDE_A_VALUE = 384, /* per full value, with the checksums of its blocks */
    BESIDE_A_FILE = 128,  /* per file, for its last value */
    SSD_PERCENT = 90,
};
static const uint64_t MIB = UINT64_C(1) << 20;
#define SLACK (64 * MIB) /* unused room in segments */
static const char shm[] = "/dev/shm";

/* Room that the whole dataset needs in a tier, with all overhead. */
static uint64_t tiers_need(uint64_t files, uint64_t bytes)
{
    return bytes + bytes / VALUE * BESIDE_A_VALUE + files * BESIDE_A_FILE + SLACK;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* --- room --- */

struct tier_room {
    uint64_t free, whole; /* free: including what we already use */
};

static int room_look(const char *folder, struct tier_room *room, struct str *why)
{
    struct statvfs fs;
    if (statvfs(folder, &fs) < 0)
        return place_error(why, "look for room in", folder, -errno);
    room->free = (uint64_t)fs.f_bavail * fs.f_frsize + dir_bytes(AT_FDCWD, folder);
    room->whole = (uint64_t)fs.f_blocks * fs.f_frsize;
    return 0;
}

/* --- folders --- */

static int claim_folder(const struct tiers_wish *w, const char *what, const char *parent, struct folder_claim *claim,
                        struct str *why)
{
    CLEANUP_STR struct str prefix = STR_INIT;
    str_addf(&prefix, "%s/", strcmp(parent, "/") == 0 ? "" : parent);
    folder_add_short_name(&prefix, w->key);
    if (prefix.failed)
        return -ENOMEM;
    const struct folder_wish wish = {
        .what = what,
        .prefix = prefix.data,
        .number = w->number,
        .own = w->own,
        .uid = w->owner->uid,
        .gid = w->owner->gid,
    };
    return folder_claim(&wish, claim, why);
}

/* --- RAM --- */

static int parse_size(const char *name, const char *text, uint64_t whole, uint64_t *size, struct str *why)
{
    int error = size_parse(text, whole, size);
    if (error)
        str_addf(why, "option %s=%s: %s", name, text, strerror(-error));
    return error;
}

static void say_share(const struct memory *m, unsigned mounts, struct str *reason)
{
    str_addf(reason, "a quarter of the %s %s", size_text(m->available),
             m->by_group ? "that the control group leaves" : "available");
    if (mounts > 1)
        str_addf(reason, ", shared by %u mounts", mounts);
}

static int ram_capacity(const struct tiers_wish *w, struct tiers *t, struct str *why)
{
    uint64_t need = tiers_need(w->files, w->bytes);
    struct memory m;
    int error = memory_look("", &m);
    if (error)
        return place_error(why, "read", "/proc/meminfo", error);
    if (!w->options->ram) {
        unsigned mounts = keepers_count(&m) + 1;
        if (mounts < w->beside)
            mounts = w->beside;
        t->ram.bytes = memory_share(&m, mounts, need);
        if (t->ram.bytes == need)
            str_adds(&t->ram.reason, "room for all of the dataset");
        else
            say_share(&m, mounts, &t->ram.reason);
        return 0;
    }
    error = parse_size("ram", w->options->ram, m.total, &t->ram.bytes, why);
    bool beyond = t->ram.bytes > m.total;
    if (!error && (beyond || (t->ram.bytes > m.available && need > m.available)))
        str_addf(&t->warning, "ram=%s is more than the %s of memory %s\n", size_text(t->ram.bytes),
                 size_text(beyond ? m.total : m.available), beyond ? "that this machine or job has" : "available");
    return error;
}

/* A tmpfs allocates pages only when they are written: extra room costs nothing until it is used. */
static uint64_t with_overhead(uint64_t capacity)
{
    return capacity + capacity / 8 + 256 * MIB;
}

uint64_t tiers_tmpfs_most(const struct mount_options *options)
{
    struct memory m;
    uint64_t bytes = 0;
    if (memory_look("", &m) || (options->ram && size_parse(options->ram, m.total, &bytes)))
        return 0;
    bytes = options->ram ? bytes : m.total;
    return bytes ? with_overhead(bytes) : 0;
}

static int ram_in_shm(const struct tiers_wish *w, struct tiers *t, struct str *why)
{
    struct tier_room room;
    int error = claim_folder(w, "RAM tier's folder", shm, &t->ram.folder, why);
    if (!error)
        error = room_look(t->ram.folder.path, &room, why);
    if (error)
        return error;
    if (w->options->ram && t->ram.bytes + t->ram.bytes / 8 > room.free)
        return str_fail(
            why, -ENOSPC,
            "option ram=%s: %s has room for only %s, and this user may not mount a tmpfs: use a smaller ram=, or "
            "`dealfs run`",
            size_text(t->ram.bytes), shm, size_text(room.free));
    if (t->ram.bytes > room.free / 2 && !w->options->ram) {
        t->ram.bytes = room.free / 2;
        str_clear(&t->ram.reason);
        str_addf(&t->ram.reason, "half of the %s free in %s", size_text(room.free), shm);
    }
    return 0;
}

static bool private_ram(const struct tiers_wish *w, uint64_t bytes, int *fd)
{
    const struct mounter_request request = {.verb = MOUNTER_TMPFS, .bytes = bytes};
    CLEANUP_STR struct str ignored = STR_INIT;
    struct mounter_reply reply;
    int root[MOUNTER_FDS];
    if (w->mounter < 0)
        return attach_privileged() && attach_private_tmpfs(bytes, w->owner->uid, w->owner->gid, fd) == 0;
    if (mounter_ask(w->mounter, &request, -1, &reply, root, &ignored))
        return false;
    *fd = root[0];
    return true;
}

static int make_ram(const struct tiers_wish *w, struct tiers *t, struct str *why)
{
    int error = ram_capacity(w, t, why);
    if (error || t->ram.bytes == 0)
        return error;
    return private_ram(w, with_overhead(t->ram.bytes), &t->ram.folder.lock) ? 0 : ram_in_shm(w, t, why);
}

/* --- SSD --- */

/* The tier's overhead (shard_overhead): segments that are not stored yet, 4 to 64 MiB each, and RocksDB's own files. */
static uint64_t ssd_share(uint64_t free)
{
    uint64_t own = 32 * MIB, share = free / 100 * SSD_PERCENT;
    uint64_t fitting = free > own ? (free - own) / 9 * 8 : 0; /* an eighth of it for segments: up to 2 GiB */
    return share > 2048 * MIB && free - share >= own + 256 * MIB ? share : least_of(share, fitting);
}

static int ssd_capacity(const struct tiers_wish *w, struct tiers *t, struct str *why)
{
    uint64_t need = tiers_need(w->files, w->bytes);
    struct tier_room room;
    int error = room_look(t->ssd.folder.path, &room, why);
    if (error)
        return error;
    if (!w->options->ssd_size) {
        t->ssd.bytes = least_of(ssd_share(room.free), need);
        if (t->ssd.bytes == need)
            str_adds(&t->ssd.reason, "room for all of the dataset");
        else if (t->ssd.bytes == room.free / 100 * SSD_PERCENT)
            str_addf(&t->ssd.reason, "%d %% of the %s free", SSD_PERCENT, size_text(room.free));
        else
            str_addf(&t->ssd.reason, "of the %s free, minus the space of segments that are being filled",
                     size_text(room.free));
        return 0;
    }
    error = parse_size("ssd_size", w->options->ssd_size, room.whole, &t->ssd.bytes, why);
    if (!error && t->ssd.bytes > room.free && need > room.free)
        str_addf(&t->warning, "ssd_size=%s is more than the %s free there\n", size_text(t->ssd.bytes),
                 size_text(room.free));
    return error;
}

static int find_ssd(const struct mount_options *o, char **real, struct str *why)
{
    CLEANUP_FREE char *path = place_absolute(o->ssd, o->node);
    struct stat st;
    *real = path ? realpath(path, NULL) : NULL;
    int error = !*real || stat(*real, &st) < 0 ? -errno : S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
    if (!error)
        return 0;
    free(*real);
    *real = NULL;
    return place_error(why, "SSD directory", path ? path : o->ssd, error);
}

int tiers_check(const struct mount_options *options, struct str *why)
{
    char *real;
    int error = options->ssd ? find_ssd(options, &real, why) : 0;
    if (!error && options->ssd)
        free(real);
    return error;
}

static int make_ssd(const struct tiers_wish *w, struct tiers *t, struct str *why)
{
    CLEANUP_FREE char *real = NULL;
    if (!w->options->ssd)
        return 0;
    int error = find_ssd(w->options, &real, why);
    if (!error)
        error = claim_folder(w, "SSD tier's folder", real, &t->ssd.folder, why);
    return error ? error : ssd_capacity(w, t, why);
}

/* --- both --- */

int tiers_make(const struct tiers_wish *wish, struct tiers *tiers, struct str *why)
{
    *tiers = (struct tiers){.ram.folder.lock = -1, .ssd.folder.lock = -1};
    int error = make_ram(wish, tiers, why);
    if (!error)
        error = make_ssd(wish, tiers, why);
    if (error)
        return error;
    uint64_t room = tiers->ram.bytes + tiers->ssd.bytes, need = tiers_need(wish->files, wish->bytes) - SLACK;
    tiers->fits = wish->bytes == TIERS_ANY || room >= need ? 100 : (unsigned)(100 * (double)room / (double)need);
    if (room == 0)
        str_adds(&tiers->warning, "there is no tier: this node caches nothing. Give it ram=SIZE or ssd=DIR\n");
    return 0;
}

void tiers_let_go(struct tiers *t)
{
    if (t->ram.folder.lock >= 0)
        close(t->ram.folder.lock);
    if (t->ssd.folder.lock >= 0)
        close(t->ssd.folder.lock);
    t->ram.folder.lock = t->ssd.folder.lock = -1;
}

void tiers_undo(struct tiers *t)
{
    tiers_let_go(t);
    if (t->ram.folder.made)
        folder_discard(t->ram.folder.path, NULL);
    if (t->ssd.folder.made)
        folder_discard(t->ssd.folder.path, NULL);
    t->ram.folder.made = t->ssd.folder.made = false;
}

void tiers_fini(struct tiers *t)
{
    KEEP_ERRNO;
    tiers_let_go(t);
    free(t->ram.folder.path);
    free(t->ssd.folder.path);
    str_fini(&t->ram.reason);
    str_fini(&t->ssd.reason);
    str_fini(&t->warning);
    *t = (struct tiers){.ram.folder.lock = -1, .ssd.folder.lock = -1};
}
