#include "tests/sim/sched-switch.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

static void futex_wait(atomic_int *word)
{
    while (!atomic_load(word))
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    atomic_store(word, 0);
}

static void futex_post(atomic_int *word)
{
    atomic_store(word, 1);
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

#if defined __x86_64__ && !defined __SANITIZE_THREAD__

#include <asm/prctl.h>

enum {
    WRITES_FS = 1 << 1, /* HWCAP2: programs may write FS */
    GAP = 16384,        /* between a kernel thread that sleeps and what runs on its stack */
    SAVED = 7,          /* registers, with the address to return to */
};

static bool by_stack, writes_fs;
static struct hand *first, *current;

/* Saves what a function keeps for its caller, and returns from the other one's call. */
__attribute__((naked, noinline)) static void switch_stack(__attribute__((unused)) void **from,
                                                          __attribute__((unused)) void *to)
{
    __asm__("push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
            "mov %rsp, (%rdi)\n mov %rsi, %rsp\n"
            "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n");
}

/* As the kernel does it; not a function of libc, which may use what FS points to. */
static void set_fs(void *memory)
{
    long number = SYS_arch_prctl;
    __asm__ volatile("syscall" : "+a"(number) : "D"((long)ARCH_SET_FS), "S"(memory) : "rcx", "r11", "memory");
    if (number)
        abort();
}

static void switch_to(struct hand *from, struct hand *to)
{
    current = to;
    if (writes_fs)
        __asm__ volatile("wrfsbase %0" ::"r"(to->memory) : "memory");
    else
        set_fs(to->memory);
    switch_stack(&from->stack, to->stack);
}

static void run_body(void)
{
    current->body();
    abort();
}

/* The thread sleeps here; what it is to do runs further down on its stack. */
static void park(struct hand *mine)
{
    uintptr_t top = ((uintptr_t)__builtin_frame_address(0) - GAP) & ~(uintptr_t)15;
    void **frame = (void **)top - SAVED - 1; /* a function begins 8 bytes off */
    memset(frame, 0, (SAVED + 1) * sizeof *frame);
    void (*entry)(void) = run_body;
    memcpy(&frame[SAVED - 1], &entry, sizeof entry);
    mine->stack = frame;
    futex_post(&mine->parked);
    futex_wait(&mine->go);
}

bool hand_by_stack(void)
{
    writes_fs = getauxval(AT_HWCAP2) & WRITES_FS;
    by_stack = !getenv("DEALFS_SIM_FUTEX");
    return by_stack;
}

void hand_await(struct hand *other)
{
    futex_wait(&other->parked);
    atomic_store(&other->parked, 1);
}

void hand_begin(struct hand *mine)
{
    hand_by_stack();
    mine->memory = (void *)pthread_self(); /* where FS points to, by the ABI */
    mine->started = true;
    mine->id = (pid_t)syscall(SYS_gettid);
    first = current = mine;
}

#else

enum { by_stack = false };
static const struct hand *first;

static void switch_to(struct hand *from, struct hand *to)
{
    (void)from, (void)to;
}

static void park(struct hand *mine)
{
    (void)mine;
}

bool hand_by_stack(void)
{
    return by_stack;
}

void hand_await(struct hand *other)
{
    (void)other;
}

void hand_begin(struct hand *mine)
{
    mine->id = (pid_t)syscall(SYS_gettid);
    mine->started = true;
}

#endif

void hand_run(struct hand *mine, void (*body)(void))
{
    mine->body = body;
    mine->id = (pid_t)syscall(SYS_gettid);
    mine->memory = (void *)pthread_self();
    if (by_stack) {
        park(mine);
        return;
    }
    futex_wait(&mine->go);
    body();
}

void hand_over(struct hand *from, struct hand *to)
{
    if (by_stack && !to->started)
        futex_wait(&to->parked);
    to->started = true;
    if (by_stack) {
        switch_to(from, to);
        return;
    }
    futex_post(&to->go);
    futex_wait(&from->go);
}

void hand_signal(const struct hand *running, int signal)
{
    syscall(SYS_tgkill, syscall(SYS_getpid), (by_stack ? first : running)->id, signal);
}
