/* The threads that run requests. Those that read /dev/fuse never do: they answer what is answered at once, whatever
 * requests others run, and hear of signals meanwhile.
 *
 * Each class of work has threads of its own, so that what is long does not hold up what is quick, nor what others ask
 * what the mount's owner does. What waits for a thread is given up as soon as nobody waits for it any more. */
#ifndef FS_CONTROL_WORKERS_H
#define FS_CONTROL_WORKERS_H

#include <stdbool.h>
#include <sys/queue.h>

/* WORK_TURN: what waits for other nodes: until the world has turned, or all have a list; WORK_END: until the feeder,
 * which itself asks for what is long, has written a report. */
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
    WORK_STREAM_SLOW, /* those of them, of the owner, that have waited for long while others wait for a worker */
    WORK_CLASSES
};

struct request_work {
    enum work_class class;
    TAILQ_ENTRY(request_work) next;
};

struct work_rules {
    void (*run)(struct request_work *work);     /* the work is done with */
    void (*drop)(struct request_work *work);    /* the same, without being run */
    bool (*gave_up)(struct request_work *work); /* nobody waits for it any more; asked while it waits */
    void (*tick)(void *user);                   /* some times per second while there is any work */
    void (*rest)(void *user);                   /* once there has been none for a while; NULL: nothing */
    void *user;
};

struct workers;

int workers_create(const struct work_rules *rules, struct workers **workers);
/* What waits is dropped; what runs is waited for. */
void workers_destroy(struct workers *workers);
bool workers_stopping(const struct workers *workers);
/* 0; or -EBUSY: too many of its class wait. */
int workers_add(struct workers *workers, struct request_work *work);
/* Of a work that has run without an end: it runs again after those of its class that wait now. Not to be used then. */
void workers_add_again(struct workers *workers, struct request_work *work);
bool workers_any_wait(struct workers *workers, enum work_class class);

#endif
