/* A shard on a small disk of its own that has bad sectors. The disk is a file system in a file: reads of what is cut
 * off from that file fail as those of a bad sector do. */
#include "tests/fs/store/filling.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/store/rocks.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)
enum { FILES = 60, DISK_MIB = 192 };

static char image[4200], disk[4200], tier[4300], device[64];

static bool run(const char *format, const char *argument)
{
    char command[9000];
    snprintf(command, sizeof command, format, argument);
    return system(command) == 0;
}

/* The image's own pages are not cached, so that what is cut off is gone at once. */
static bool attach(void)
{
    CLEANUP_STR struct str command = STR_INIT;
    str_addf(&command, "losetup -f --show --direct-io=on '%s' 2>/dev/null", image);
    FILE *out = popen(command.data, "r");
    bool got = out && fgets(device, sizeof device, out);
    if (out)
        pclose(out);
    device[strcspn(device, "\n")] = '\0';
    return got && device[0] == '/';
}

static bool disk_up(void)
{
    snprintf(image, sizeof image, "%s/disk.img", test_directory());
    snprintf(disk, sizeof disk, "%s/disk", test_directory());
    snprintf(tier, sizeof tier, "%s/tier", disk);
    CLEANUP_CLOSE int fd = open(image, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)(DISK_MIB * MIB)) < 0)
        bail_out("make %s: %s", image, strerror(errno));
    dir_make(disk, 0700);
    device[0] = '\0';
    return run("mkfs.ext4 -q -F -m 0 '%s' >/dev/null 2>&1", image) && attach() &&
           mount(device, disk, "ext4", 0, NULL) == 0;
}

static void disk_down(void)
{
    umount2(disk, MNT_DETACH);
    if (device[0] == '/')
        run("losetup -d %s 2>/dev/null", device);
    unlink(image);
}

static void begin(struct filling *f)
{
    char name[64];
    filling_begin(f);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "random-%03d", i);
        filling_add(f, name, i % 10 ? 1000000 : 6000000);
    }
    filling_scan(f);
}

/* Where the last of the segments' bytes lie on the disk: there the image is cut off. */
static uint64_t last_extent(const char *path, uint64_t *length)
{
    struct {
        struct fiemap map;
        struct fiemap_extent extent[64];
    } f = {.map = {.fm_length = UINT64_MAX, .fm_extent_count = 64}};
    uint64_t last = 0;
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || ioctl(fd, FS_IOC_FIEMAP, &f) < 0)
        return 0;
    for (uint32_t i = 0; i < f.map.fm_mapped_extents; i++)
        if (f.map.fm_extents[i].fe_physical > last) {
            last = f.map.fm_extents[i].fe_physical;
            *length = f.map.fm_extents[i].fe_length;
        }
    return last;
}

static uint64_t find_bad_sectors(void)
{
    char path[8192];
    uint64_t last = 0, length = 0, n;
    snprintf(path, sizeof path, "%s/" ROCKS_DATABASE, tier);
    CLEANUP_CLOSEDIR DIR *d = opendir(path);
    struct dirent *e;
    while (d && (e = readdir(d))) {
        snprintf(path, sizeof path, "%s/" ROCKS_DATABASE "/%s", tier, e->d_name);
        uint64_t at = strstr(e->d_name, ".sst") ? last_extent(path, &n) : 0;
        if (at > last) {
            last = at;
            length = n;
        }
    }
    return last ? (last + length / 2) & ~(uint64_t)4095 : 0;
}

static void test_bad_sectors(void)
{
    struct filling f;
    if (!disk_up()) {
        skip(7, "no disk can be made here");
        disk_down();
        return;
    }
    begin(&f);
    struct shard *s = filling_open(&f, NULL, 0, tier, 128 * MIB);
    filling_put_all(&f, s);
    shard_flush(s);
    is_int(filling_check_all(&f, s).right, FILES, "a disk of its own: all can be read");
    sync();
    uint64_t bad = find_bad_sectors();
    ok(bad && truncate(image, (off_t)bad) == 0, "sectors from %ju on go bad", (uintmax_t)bad);
    struct outcome o = filling_check_all(&f, s);
    ok(o.wrong == 0 && o.absent > 0 && o.right > FILES / 2,
       "what lies there is gone and the rest is right: %d of %d files", o.right, FILES);
    is_int(filling_check_all(&f, s).right, o.right, "and stays so");
    struct tier_status status = filling_status(s, TIER_SSD);
    ok(status.state == TIER_CLOSED && status.error == EIO, "the tier takes nothing more, and says why: %s",
       strerror(status.error));
    ok(status.bad_values > 0, "%ju values were given up", (uintmax_t)status.bad_values);
    shard_reclaim(s);
    is_int(filling_check_all(&f, s).wrong, 0, "nothing is wrong after a reclaim");
    shard_close(s);
    disk_down();
    filling_end(&f);
}

int main(void)
{
    filling_log();
    test_bad_sectors();
    return done_testing();
}
