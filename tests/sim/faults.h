/* The faults of a run, chosen by the seed. */
#ifndef TESTS_SIM_FAULTS_H
#define TESTS_SIM_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_node;

/* What faults did to a run; the runner prints the sums. */
enum effect {
    EFFECT_POWER,      /* nodes lost power, */
    EFFECT_UNNAMED,    /* with it changes of names, */
    EFFECT_TORN,       /* and bytes of files that were not synced; */
    EFFECT_RECALLED,   /* their saved world was still good */
    EFFECT_LOST,       /* messages lost with their sender, receiver or connection, */
    EFFECT_LEFT,       /* and arrived though their sender is gone */
    EFFECT_CUT,        /* connections reset */
    EFFECT_BELLS,      /* no fault: worlds in which couriers share memory and wake each other by bells, */
    EFFECT_RUNG,       /* and how often */
    EFFECT_SPOILT,     /* answers of peers damaged or cut short */
    EFFECT_REWRITTEN,  /* files of the source written, */
    EFFECT_WHILE_READ, /* some of them while they were read; */
    EFFECT_STALE,      /* reads that failed for it */
    EFFECT_HALTED,     /* processes stopped or killed at a stage of a turn */
    EFFECT_STRANGERS,  /* joins that were refused */
    EFFECT_MOUNTED,    /* no fault: nodes mounted by their world */
    EFFECT_ROCKS,      /* no fault: databases of RocksDB opened */
    EFFECT_MEMORY,     /* no fault: the most memory of a server */
    EFFECTS
};
extern const char *const effect_names[EFFECTS];
extern uint64_t effects[EFFECTS];

/* A thread that causes them one after the other, as many as sim_options says. */
void faults_begin(void);
bool faults_any(void);   /* has there been one so far? */
void faults_end(void);   /* no more of them; what was done is healed, and all servers serve */
bool faults_ended(void); /* no more are to begin */
void faults_slow(const struct sim_node *n, uint64_t milliseconds); /* its source, for each file */
bool faults_memory(size_t n);       /* of the caller's node: is an allocation of this size to fail? */
int faults_write(const char *what); /* of the caller's node: 0, or -errno that this write is to fail with */

#endif
