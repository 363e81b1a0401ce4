/* Is a path on a filesystem that other machines share? There, locks and mmap are less reliable than on a disk, and all
 * nodes would write into the same folder. */
#include "fs/attach/attach.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

static bool type_on_network(uint32_t type)
{
    static const uint32_t types[] = {
        0x00006969, /* NFS */
        0x0000517B, /* SMB */
        0xFF534D42, /* CIFS */
        0xFE534D42, /* SMB2 and 3 */
        0x0BD00BD0, /* Lustre */
        0x47504653, /* GPFS */
        0x00C36400, /* Ceph */
        0x19830326, /* BeeGFS */
        0xAAD7AAEA, /* PanFS */
        0x20030528, /* OrangeFS */
        0x5346414F, /* OpenAFS */
        0x6B414653, /* kAFS */
        0x73757245, /* Coda */
        0x0000564C, /* NCP */
        0x01021997, /* 9P */
        0x01161970, /* GFS2 */
        0x7461636F, /* OCFS2 */
        0x786F4256, /* VirtualBox shared folders */
        0xBACBACBC, /* VMware shared folders */
        0x7C7C6673, /* Parallels shared folders */
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i] == type)
            return true;
    return false;
}

/* FUSE has one number for all; the type in mountinfo distinguishes them. Unknown types count as local. */
static bool subtype_on_network(const char *type)
{
    static const char *const types[] = {
        "fuse.sshfs",    "fuse.glusterfs", "fuse.ceph-fuse", "fuse.ceph",    "fuse.s3fs",          "fuse.goofys",
        "fuse.gcsfuse",  "fuse.rclone",    "fuse.juicefs",   "fuse.JuiceFS", "fuse.mfs",           "fuse.moosefs",
        "fuse.lizardfs", "fuse.saunafs",   "fuse.seaweedfs", "fuse.davfs",   "fuse.davfs2",        "fuse.curlftpfs",
        "fuse.smbnetfs", "fuse.hdfs",      "fuse.fuse_dfs",  "fuse.alluxio", "fuse.mountpoint-s3", "fuse.blobfuse2",
        "fuse.blobfuse", "fuse.cvmfs2",    "fuse.dfuse",     "fuse.daos",    "fuse.nfs",           "fuse.dealfs",
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i], type) == 0)
            return true;
    return false;
}

struct network_search {
    dev_t device;
    bool found;
};

static int search_device(void *user, const char *path, const struct attach_mount_info *info)
{
    struct network_search *s = user;
    (void)path;
    if (makedev(info->major, info->minor) != s->device)
        return 0;
    s->found = subtype_on_network(info->type);
    return 1;
}

int attach_on_network(const char *path)
{
    enum { FUSE_TYPE = 0x65735546 };
    struct statfs fs;
    struct stat st;
    if (statfs(path, &fs))
        return -errno;
    if ((uint32_t)fs.f_type != FUSE_TYPE)
        return type_on_network((uint32_t)fs.f_type);
    if (stat(path, &st))
        return -errno;
    struct network_search search = {.device = st.st_dev};
    int error = attach_each(NULL, search_device, &search);
    return error < 0 ? error : search.found;
}
