/* The mount's user can write the slots: offsets of slots are computed here from constants, never read from there. */
#include "fs/keeper/stranded.h"

#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/process.h"
#include "fs/base/ready.h"
#include "fs/wire/handover.h"
#include "fs/wire/lane.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum { PAGE = 4096, DYING_MS = 1000 };

struct outlet {
    int fd; /* /dev/fuse */
    struct lane *lane;
    uint32_t count, room;
    unsigned answered;
};

static struct slot *slot_of(const struct outlet *o, uint32_t i)
{
    return (struct slot *)(o->lane + 1) + i;
}

static struct fuse_in_header *request_of(const struct outlet *o, uint32_t i)
{
    return (struct fuse_in_header *)((char *)o->lane + lane_size(o->count, 0) + (size_t)i * o->room);
}

static enum slot_state state_of(const struct outlet *o, uint32_t i)
{
    return atomic_load(&slot_of(o, i)->word) & 255;
}

/* --- answer --- */

static bool wants_answer(uint32_t opcode)
{
    return opcode != FUSE_FORGET && opcode != FUSE_BATCH_FORGET && opcode != FUSE_INTERRUPT &&
           opcode != FUSE_NOTIFY_REPLY;
}

/* INIT is answered by the next server. */
static void answer(struct outlet *o, uint32_t i, int error)
{
    struct fuse_in_header in = *request_of(o, i);
    struct fuse_out_header out = {.len = sizeof out, .error = error, .unique = in.unique};
    if (in.opcode == FUSE_INIT)
        return;
    /* if the kernel rejects the answer, nobody waits for it */
    if (wants_answer(in.opcode) && write(o->fd, &out, sizeof out) == (ssize_t)sizeof out)
        o->answered += error == -EIO;
    atomic_store(&slot_of(o, i)->word, SLOT_FREE);
}

/* --- requests in slots --- */

static bool has_request(const struct outlet *o, uint32_t i)
{
    return state_of(o, i) != SLOT_FREE && request_of(o, i)->unique != 0;
}

static void answer_slots(struct stranded *s, struct outlet *o, uint64_t lived, uint64_t now, bool dying)
{
    for (uint32_t i = 0; i < o->count; i++) {
        struct slot *slot = slot_of(o, i);
        if (!has_request(o, i))
            continue;
        uint64_t since = atomic_load(&slot->since);
        if (!since)
            atomic_store(&slot->since, since = now);
        if (since < lived)
            since = lived;
        if (now > since + s->patience)
            answer(o, i, -EIO);
        else if (dying && process_thread_fate((pid_t)request_of(o, i)->pid) == THREAD_DIES)
            answer(o, i, -EINTR);
    }
}

/* --- requests in the kernel --- */

/* If the keeper is killed between read and answer, the request is in the slot, for the next server. */
static bool take_one(struct outlet *o, uint32_t i)
{
    struct slot *slot = slot_of(o, i);
    char *request = (char *)request_of(o, i);
    memset(request, 0, sizeof(struct fuse_in_header));
    for (size_t at = PAGE; at < o->room; at += PAGE) /* see slots_ready() in fs/fuse/slots.c */
        *(volatile char *)(request + at) = 0;
    atomic_store(&slot->reader, (uint32_t)getpid());
    atomic_store(&slot->since, 0);
    atomic_store(&slot->interrupted, 0);
    atomic_store(&slot->word, SLOT_READING);
    ssize_t n = read(o->fd, request, o->room);
    if (n >= (ssize_t)sizeof(struct fuse_in_header)) {
        answer(o, i, -EIO);
        return true;
    }
    atomic_store(&slot->word, SLOT_FREE);
    return n < 0 && (errno == ENOENT || errno == EINTR); /* the request was cancelled meanwhile: there may be more */
}

/* A cancelled request leaves the queue by itself, so nothing here may wait for one. */
static void drain(struct outlet *o)
{
    int flags = fcntl(o->fd, F_GETFL);
    if (flags < 0 || fcntl(o->fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return;
    for (uint32_t i = 0, tries = 0; i < o->count && tries < o->count; tries++) {
        if (state_of(o, i) != SLOT_FREE)
            i++;
        else if (!take_one(o, i))
            break;
    }
    fcntl(o->fd, F_SETFL, flags & ~O_NONBLOCK);
}

static void answer_queue(struct stranded *s, struct outlet *o, uint64_t *since, uint64_t now)
{
    struct pollfd queue = {.fd = o->fd, .events = POLLIN};
    if (ready_wait(&queue, 1, 0) <= 0 || !(queue.revents & POLLIN))
        *since = 0;
    else if (!*since)
        *since = now;
    else if (now > *since + s->patience)
        drain(o);
}

/* --- both --- */

void stranded_look(struct stranded *s, uint64_t lived)
{
    struct handover *h = s->handover;
    struct outlet outlets[] = {
        {FD_DATA, handover_data(h), DATA_SLOTS, DATA_ROOM, 0},
        {FD_CONTROL, handover_control(h), CONTROL_SLOTS, CONTROL_ROOM, 0},
    };
    uint64_t now = clock_now();
    bool dying = now >= s->dying_next;
    if (dying)
        s->dying_next = now + DYING_MS * MILLISECOND;
    for (int i = 0; i < 2; i++) {
        struct outlet *o = &outlets[i];
        if (!handover_has(o->fd) || atomic_load(&o->lane->init.state) != INIT_ANSWERED)
            continue;
        answer_slots(s, o, lived, now, dying);
        answer_queue(s, o, &s->queued[i], now);
        if (!o->answered)
            continue;
        log_limited(LOG_LEVEL_ERROR, 5, "no server has been running for %" PRIu64 " s: %u requests failed with EIO",
                    s->patience / SECOND, o->answered);
        atomic_fetch_add(&h->stranded, o->answered);
        atomic_store(&h->stranded_at, clock_realtime());
    }
}

/* A killed keeper may have left the descriptors in the state of drain(). */
void stranded_init(struct stranded *s, struct handover *handover, uint64_t patience)
{
    *s = (struct stranded){.handover = handover, .patience = patience};
    for (int fd = FD_DATA; fd <= FD_CONTROL; fd++)
        if (handover_has(fd))
            fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
}

void stranded_forget(struct stranded *s)
{
    s->queued[0] = s->queued[1] = 0;
}
