/* What memory there is, from made-up /proc and control groups. */
#include "cli/base/memory.h"
#include "fs/base/file.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define GIB (UINT64_C(1) << 30)

static const char *root;

static void put(const char *path, const char *text)
{
    char full[4096], parent[4096];
    snprintf(full, sizeof full, "%s%s", root, path);
    snprintf(parent, sizeof parent, "%s", full);
    *strrchr(parent, '/') = '\0';
    if (dir_make(parent, 0700) || file_write_atomic(AT_FDCWD, full, text, strlen(text), 0600))
        bail_out("write %s: %s", full, strerror(errno));
}

static void fresh(const char *name, const char *groups, const char *mounts)
{
    root = test_path("%s", name);
    put("/proc/meminfo", "MemTotal:       67108864 kB\nMemFree:         1000000 kB\nMemAvailable:   41943040 kB\n");
    put("/proc/self/cgroup", groups);
    put("/proc/self/mountinfo", mounts);
}

#define V2_MOUNT "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1_MOUNT "36 30 0:33 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"

static void check(uint64_t total, uint64_t available, bool by_group, const char *what)
{
    struct memory m;
    is_int(memory_look(root, &m), 0, "%s", what);
    is_uint(m.total, total, "total");
    is_uint(m.available, available, "available");
    is_int(m.by_group, by_group, "by a group or not");
}

static void test_machine(void)
{
    struct memory m;
    root = test_path("nothing");
    is_int(memory_look(root, &m), -ENOENT, "without /proc/meminfo it fails");
    put("/proc/meminfo", "MemTotal: 1 kB\n");
    is_int(memory_look(root, &m), -EBADMSG, "and with half of it");
    put("/proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 41943040 kB\n");
    check(64 * GIB, 40 * GIB, false, "no control groups at all");
}

static void test_version2(void)
{
    fresh("v2-none", "0::/user/job\n", V2_MOUNT);
    put("/sys/fs/cgroup/user/job/memory.max", "max\n");
    put("/sys/fs/cgroup/user/job/memory.current", "123456\n");
    check(64 * GIB, 40 * GIB, false, "version 2 without a limit");

    fresh("v2", "0::/user/job\n", V2_MOUNT);
    put("/sys/fs/cgroup/user/job/memory.max", "17179869184\n");                                        /* 16 GiB */
    put("/sys/fs/cgroup/user/job/memory.current", "8589934592\n");                                     /* 8 */
    put("/sys/fs/cgroup/user/job/memory.stat", "anon 1\nfile 5000000000\ninactive_file 2147483648\n"); /* 2 */
    check(16 * GIB, 10 * GIB, true, "a limit, of which cache can be dropped");

    put("/sys/fs/cgroup/user/memory.max", "8589934592\n");
    put("/sys/fs/cgroup/user/memory.current", "6442450944\n");
    check(8 * GIB, 2 * GIB, true, "the group above is narrower");

    put("/sys/fs/cgroup/user/memory.current", "9663676416\n");
    check(8 * GIB, 0, true, "one that is over its limit leaves nothing");

    fresh("v2-high", "0::/job\n", V2_MOUNT);
    put("/sys/fs/cgroup/job/memory.max", "max\n");
    put("/sys/fs/cgroup/job/memory.high", "4294967296\n");
    put("/sys/fs/cgroup/job/memory.current", "1073741824\n");
    check(4 * GIB, 3 * GIB, true, "memory.high counts");

    fresh("v2-container", "0::/\n", V2_MOUNT);
    put("/sys/fs/cgroup/memory.max", "2147483648\n");
    put("/sys/fs/cgroup/memory.current", "1073741824\n");
    check(2 * GIB, 1 * GIB, true, "a container with its own namespace");

    fresh("v2-bound", "0::/docker/abc/inner\n", "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup ro\n");
    put("/sys/fs/cgroup/inner/memory.max", "max\n");
    put("/sys/fs/cgroup/memory.max", "2147483648\n");
    put("/sys/fs/cgroup/memory.current", "0\n");
    check(2 * GIB, 2 * GIB, true, "a container that sees its part of the hierarchy");

    fresh("v2-outside", "0::/../other\n", "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup ro\n");
    put("/sys/fs/cgroup/memory.max", "1073741824\n");
    put("/sys/fs/cgroup/memory.current", "0\n");
    check(1 * GIB, 1 * GIB, true, "a path that the mount does not have: its top counts");
}

static void test_version1(void)
{
    fresh("v1", "5:cpu,cpuacct:/x\n4:memory:/slurm/job\n1:name=systemd:/\n0::/\n", V1_MOUNT);
    put("/sys/fs/cgroup/memory/slurm/job/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/slurm/job/memory.usage_in_bytes", "1073741824\n");
    check(64 * GIB, 40 * GIB, false, "version 1 without a limit");
    put("/sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "4294967296\n");
    put("/sys/fs/cgroup/memory/slurm/memory.usage_in_bytes", "3221225472\n");
    put("/sys/fs/cgroup/memory/slurm/memory.stat", "inactive_file 1\ntotal_inactive_file 1073741824\n");
    check(4 * GIB, 2 * GIB, true, "a limit in the group above");

    fresh("v1-memory-not-ours", "5:cpuset:/x\n4:hugememory:/y\n", V1_MOUNT);
    put("/sys/fs/cgroup/memory/y/memory.limit_in_bytes", "1\n");
    check(64 * GIB, 40 * GIB, false, "a controller with a longer name is another");
}

static void has(int pid, const char *groups, bool expected, const char *what)
{
    struct memory m;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
    put(path, groups);
    is_int(memory_look(root, &m), 0, "look");
    is_int(memory_has(root, &m, pid), expected, "%s", what);
}

static void test_others(void)
{
    fresh("others", "0::/jobs/one/step\n", V2_MOUNT);
    has(2, "0::/jobs/two\n", true, "without a limit all share the machine");
    put("/sys/fs/cgroup/jobs/one/memory.max", "1073741824\n");
    put("/sys/fs/cgroup/jobs/one/memory.current", "0\n");
    has(2, "0::/jobs/two\n", false, "with one, a process of another job shares nothing");
    has(3, "0::/jobs/one/other-step\n", true, "another step of the job does");
    has(4, "0::/jobs/one\n", true, "and what is in its group itself");
    has(5, "0::/jobs/one-more\n", false, "a longer name is another");
    struct memory m;
    memory_look(root, &m);
    is_int(memory_has(root, &m, 77), false, "one that has ended");
}

static void test_share(void)
{
    struct memory m = {.total = 64 * GIB, .available = 40 * GIB};
    is_uint(memory_share(&m, 1, 100 * GIB), 10 * GIB, "a quarter");
    is_uint(memory_share(&m, 0, 100 * GIB), 10 * GIB, "also of no mounts");
    is_uint(memory_share(&m, 4, 100 * GIB), 10 * GIB / 4, "shared by four");
    is_uint(memory_share(&m, 1, 3 * GIB), 3 * GIB, "never more than is needed");
}

int main(void)
{
    test_machine();
    test_version2();
    test_version1();
    test_others();
    test_share();
    return done_testing();
}
