/* Implements confine.h. */
#include "fs/image/confine.h"

#include "fs/base/cleanup.h"
#include "fs/image/image.h"

#include <grp.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

/* --- rights --- */

/* In the namespace of an ordinary user, whose root is that user, `nobody` may not exist. */
static int become_nobody(void)
{
    enum { NOBODY = 65534 };
    if (geteuid() != 0)
        return 0;
    if (setresgid(NOBODY, NOBODY, NOBODY) < 0)
        return errno == EINVAL ? 0 : -errno;
    return setgroups(0, NULL) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0 ? -errno : 0;
}

/* A process that may not change the bounding set cannot gain capabilities from it: it will execute no program. */
static void drop_bounding_set(void)
{
    for (unsigned long capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
        prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
}

static int drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

static int drop_the_rest(void)
{
    const struct rlimit none = {0};
    return setrlimit(RLIMIT_CORE, &none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
                   prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0
               ? -errno
               : 0;
}

/* --- system calls --- */

#ifdef DEALFS_CHECKS

static int filter_calls(void)
{
    return 0;
}

#else

#if defined __x86_64__
#define FILTER_ARCH AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define FILTER_ARCH AUDIT_ARCH_AARCH64
#else
#define FILTER_ARCH 0 /* decoding is disabled there until it was tested */
#endif

/* getppid: every second a process checks whether its parent still lives. */
static const unsigned free_calls[] = {
    __NR_read,       __NR_write,        __NR_recvmsg,        __NR_close,         __NR_munmap,
    __NR_mremap,     __NR_brk,          __NR_madvise,        __NR_futex,         __NR_exit,
    __NR_exit_group, __NR_rt_sigreturn, __NR_rt_sigprocmask, __NR_clock_gettime, __NR_getppid,
};
/* Their third argument is the protection of the memory. */
static const unsigned memory_calls[] = {__NR_mmap, __NR_mprotect};

enum { FREE = sizeof free_calls / sizeof free_calls[0], MEMORY = sizeof memory_calls / sizeof memory_calls[0] };

/* Calls are checked by number; calls of other ABIs (32 bits, x32) are rejected. The low half of the argument has all
 * bits of the protection. */
static unsigned write_filter(struct sock_filter *to)
{
    const struct sock_filter kill = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    const struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const unsigned protection =
        offsetof(struct seccomp_data, args[2]) + 4 * (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__);
    struct sock_filter *at = to;
    *at++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    *at++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FILTER_ARCH, 1, 0);
    *at++ = kill;
    *at++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < FREE; i++) {
        *at++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, free_calls[i], 0, 1);
        *at++ = allow;
    }
    for (unsigned i = 0; i < MEMORY; i++) {
        *at++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, memory_calls[i], 0, 4);
        *at++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, protection);
        *at++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1);
        *at++ = kill;
        *at++ = allow;
    }
    *at++ = kill;
    return (unsigned)(at - to);
}

/* Speculation mitigations protect secrets; this process has none, and would be 10 % slower. Kernels before 4.17 do not
 * know the flag. */
static int filter_calls(void)
{
    struct sock_filter filter[5 + 2 * FREE + 5 * MEMORY];
    const struct sock_fprog program = {(unsigned short)write_filter(filter), filter};
    if (FILTER_ARCH == 0)
        return -ENOSYS;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) < 0 &&
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        return -errno;
    return 0;
}

#endif

/* libjpeg reads /proc/cpuinfo on some processors at first use; libraries load some parts late. */
static void warm_library(void)
{
    enum { SIDE = 16 };
    uint8_t grey[SIDE * SIDE] = {0};
    const struct image_pixels pixels = {grey, SIDE, SIDE, 1};
    const struct image_encoding encoding = {.quality = 90};
    const struct image_shrinking smaller = {.side = SIDE / 4, .quality = 90};
    CLEANUP_STR struct str file = STR_INIT, small = STR_INIT;
    if (image_encode(&pixels, &encoding, &file, NULL) == IMAGE_FINE)
        image_shrink(file.data, file.length, &smaller, &small, NULL);
}

int confine_process(const char **what)
{
    warm_library();
    setsid();
    drop_bounding_set();
    *what = "become nobody";
    int error = become_nobody();
    if (error)
        return error;
    *what = "drop capabilities";
    error = drop_capabilities();
    if (!error)
        error = drop_the_rest();
    if (error)
        return error;
    *what = "filter system calls (seccomp)";
    return filter_calls();
}
