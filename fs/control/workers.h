/* The threads that run requests. Threads that read /dev/fuse never do: they remain free for immediate answers and for
 * interrupts.
 *
 * Each class of work has its own threads, so that long requests do not delay quick ones, nor other users' requests
 * those of the mount's owner. Queued work is given up as soon as nobody waits for it. */
#ifndef FS_CONTROL_WORKERS_H
#define FS_CONTROL_WORKERS_H

#include <stdbool.h>
#include <sys/queue.h>

/* WORK_TURN: waits for other nodes, until the world has turned or all have a list. WORK_END: waits for a report of the
 * feeder, which itself makes long requests. */
enum work_class {
    WORK_QUICK,
    WORK_LONG,
    WORK_TURN,
    WORK_END,
    WORK_OTHERS,
    WORK_DECODE,
    WORK_DECODE_OTHERS,
    WORK_STREAM, /* READs of streams, which wait for the source or other nodes */
    WORK_STREAM_OTHERS,
    WORK_STREAM_SLOW, /* the owner's READs that have waited for long while others wait for a worker */
    WORK_CLASSES
};

struct request_work {
    enum work_class class;
    TAILQ_ENTRY(request_work) next;
};

struct work_rules {
    void (*run)(struct request_work *work);     /* the work is finished afterwards */
    void (*drop)(struct request_work *work);    /* the same, without running it */
    bool (*gave_up)(struct request_work *work); /* nobody waits for it any more; called while it is queued */
    void (*tick)(void *user);                   /* called several times per second while there is work */
    void (*rest)(void *user);                   /* called after a while without work; NULL: nothing to do */
    void *user;
};

struct workers;

int workers_create(const struct work_rules *rules, struct workers **workers);
/* Drops queued work; waits for running work. */
void workers_destroy(struct workers *workers);
bool workers_stopping(const struct workers *workers);
/* 0; or -EBUSY: too many of its class are queued. */
int workers_add(struct workers *workers, struct request_work *work);
/* For work that has run without finishing: it runs again after the queued work of its class. The caller must not use it
 * afterwards. */
void workers_add_again(struct workers *workers, struct request_work *work);
bool workers_any_wait(struct workers *workers, enum work_class class);

#endif
