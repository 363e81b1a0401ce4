/* Each queue has one writer and one reader. A reader that is about to sleep sets `asleep` and looks again; a writer
 * that has put a message checks `asleep`. At least one of the two sees the other, so no message stays unnoticed. */
#include "fs/wire/ring.h"

#include "fs/base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RING_MAGIC = 0x676e6972, RING_FORM = 5, PAGE = 4096 };

static uint64_t slots_at(uint32_t nodes)
{
    uint64_t lists = RING_LISTS * MANY_MOST * sizeof(struct fetch_part);
    return (sizeof(struct ring_shared) + nodes * sizeof(struct node_news) + lists + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

static uint64_t size_for(uint32_t nodes)
{
    return slots_at(nodes) + (uint64_t)(RING_IN + RING_OUT) * RING_SLOT;
}

static int map_ring(struct ring *r, uint64_t size)
{
    void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, r->fd[RING_MEMORY], 0);
    if (bytes == MAP_FAILED)
        return -errno;
    r->shared = bytes;
    r->size = size;
    return 0;
}

static const struct ring none = {.fd = {-1, -1, -1}};

static int make_ring(struct ring *r, uint32_t nodes)
{
    uint64_t size = size_for(nodes);
    r->fd[RING_MEMORY] = memfd_create("dealfs-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    r->fd[RING_BELL_SERVER] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r->fd[RING_BELL_COURIER] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (r->fd[RING_MEMORY] < 0 || r->fd[RING_BELL_SERVER] < 0 || r->fd[RING_BELL_COURIER] < 0 ||
        ftruncate(r->fd[RING_MEMORY], (off_t)size) < 0 ||
        fcntl(r->fd[RING_MEMORY], F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return -errno;
    int error = map_ring(r, size);
    if (!error) {
        r->nodes = nodes;
        r->shared->magic = RING_MAGIC;
        r->shared->form = RING_FORM;
        r->shared->nodes = nodes;
        r->shared->in = RING_IN;
        r->shared->out = RING_OUT;
        r->shared->size = size;
    }
    return error;
}

int ring_create(struct ring *r, uint32_t nodes)
{
    *r = none;
    int error = nodes && nodes <= NODES_MOST ? make_ring(r, nodes) : -EINVAL;
    if (error)
        ring_close(r);
    return error;
}

static int check_ring(struct ring *r)
{
    struct stat st;
    if (fstat(r->fd[RING_MEMORY], &st) < 0)
        return -errno;
    uint64_t size = (uint64_t)st.st_size;
    int seals = fcntl(r->fd[RING_MEMORY], F_GET_SEALS);
    if (size < sizeof(struct ring_shared) || seals < 0 || !(seals & F_SEAL_SHRINK))
        return -EBADMSG;
    int error = map_ring(r, size);
    if (error)
        return error;
    const volatile struct ring_shared *s = r->shared;
    r->nodes = s->nodes;
    bool right = s->magic == RING_MAGIC && s->form == RING_FORM && r->nodes && r->nodes <= NODES_MOST &&
                 s->in == RING_IN && s->out == RING_OUT && s->size == size && size == size_for(r->nodes) &&
                 r->fd[RING_BELL_SERVER] >= 0 && r->fd[RING_BELL_COURIER] >= 0;
    return right ? 0 : -EBADMSG;
}

int ring_open(struct ring *r, const int fd[RING_FDS])
{
    *r = none;
    memcpy(r->fd, fd, sizeof r->fd);
    int error = check_ring(r);
    if (error)
        ring_close(r);
    return error;
}

void ring_close(struct ring *r)
{
    KEEP_ERRNO;
    if (r->shared)
        munmap(r->shared, r->size);
    for (int i = 0; i < RING_FDS; i++)
        if (r->fd[i] >= 0)
            close(r->fd[i]);
    *r = none;
}

void *ring_slot(const struct ring *r, uint32_t slot)
{
    if (slot >= RING_IN + RING_OUT)
        return NULL;
    return (char *)r->shared + slots_at(r->nodes) + (uint64_t)slot * RING_SLOT;
}

static void ring_bell(int bell)
{
    uint64_t one = 1;
    (void)!write(bell, &one, sizeof one); /* a full eventfd has been rung enough */
}

int ring_push(struct ring_queue *q, int bell, const struct ring_message *message)
{
    uint32_t tail = atomic_load_explicit(&q->tail, memory_order_relaxed);
    uint32_t waiting = tail - atomic_load_explicit(&q->head, memory_order_acquire);
    if (waiting >= RING_QUEUE)
        return waiting == RING_QUEUE ? -EAGAIN : -EBADMSG;
    q->message[tail % RING_QUEUE] = *message;
    atomic_store(&q->tail, tail + 1);
    bool urgent = message->kind != RING_SENT || tail % RING_SENT_BELL == 0;
    if (urgent && atomic_load(&q->asleep))
        ring_bell(bell);
    return 0;
}

int ring_take(struct ring_queue *q, struct ring_message *message)
{
    uint32_t head = atomic_load_explicit(&q->head, memory_order_relaxed);
    uint32_t waiting = atomic_load_explicit(&q->tail, memory_order_acquire) - head;
    if (waiting == 0 || waiting > RING_QUEUE)
        return waiting ? -EBADMSG : -EAGAIN;
    *message = q->message[head % RING_QUEUE];
    atomic_store_explicit(&q->head, head + 1, memory_order_release);
    return 0;
}

bool ring_may_sleep(struct ring_queue *q)
{
    atomic_fetch_add(&q->asleep, 1);
    if (atomic_load(&q->tail) == atomic_load(&q->head))
        return true;
    atomic_fetch_sub(&q->asleep, 1);
    return false;
}

void ring_awake(struct ring_queue *q)
{
    atomic_fetch_sub(&q->asleep, 1);
}

typedef uint64_t __attribute__((may_alias)) word;

/* Word by word, so that a torn read mixes old and new values at worst. */
static void copy_news(word *to, const word *from)
{
    enum { WORDS = sizeof(struct node_news) / sizeof(word) };
    for (int i = 1; i < WORDS; i++)
        __atomic_store_n(&to[i], __atomic_load_n(&from[i], __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}
_Static_assert(offsetof(struct node_news, version) == 0 && sizeof(struct node_news) % sizeof(word) == 0,
               "news are words, the version first");

void news_write(struct node_news *to, const struct node_news *from)
{
    uint64_t version = atomic_load_explicit(&to->version, memory_order_relaxed) | 1;
    atomic_store(&to->version, version);
    atomic_thread_fence(memory_order_release);
    copy_news((word *)to, (const word *)from);
    atomic_store_explicit(&to->version, version + 1, memory_order_release);
}

bool news_read(const struct node_news *from, struct node_news *to)
{
    for (int i = 0; i < 100; i++) {
        uint64_t version = atomic_load_explicit(&from->version, memory_order_acquire);
        copy_news((word *)to, (const word *)from);
        atomic_thread_fence(memory_order_acquire);
        atomic_store_explicit(&to->version, version, memory_order_relaxed);
        if (version % 2 == 0 && atomic_load_explicit(&from->version, memory_order_relaxed) == version)
            return true;
    }
    return false;
}
