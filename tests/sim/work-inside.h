/* Shared by the parts of the workload: work.c (readers, staging, assembly), work-jobs.c, work-lists.c and
 * work-checks.c. */
#ifndef TESTS_SIM_WORK_INSIDE_H
#define TESTS_SIM_WORK_INSIDE_H

#include "fs/base/clock.h"
#include "fs/base/str.h"
#include "tests/sim/faults.h"
#include "tests/sim/node.h"

#include <stddef.h>

#define BOUND (60 * SECOND)
#define SLACK (5 * SECOND)

struct work {
    bool ending;
    uint32_t working; /* threads */
    bool striped;     /* somebody reads the file that no node has room for */
    bool slow;        /* a source is, from the beginning */
    uint64_t early;   /* turns, the first world among them, that began before all was loaded */
    uint64_t reads, failed, plans, stale, turns, lists, bursts, staged;
    uint64_t crowds;   /* begun */
    uint32_t crowding; /* crowds that are being read */
};
extern struct work work;

/* The thread ends soon after work.ending, with work_done. */
void work_start(const char *name, void *(*body)(void *), void *argument, uint32_t node);
void *work_done(void);
/* Begin it with a random moment of rest; false: the end has come. */
bool work_rests(uint64_t most);

struct question {
    uint32_t node;
    const char *text;
    uint64_t bound; /* 0: bound_of */
    int tolerated;  /* an error that it may end with; 0: none without faults */
};
int work_ask(const struct question *question, struct str *reply);
bool work_find(const struct str *json, const char *key, char *to, size_t room); /* a string */

void check_time(const struct sim_node *n, const struct sim_request *request, uint64_t bound);
void check_read(const struct sim_node *n, const struct sim_request *request);

void jobs_begin(void);
void lists_begin(void);
void lists_check(void); /* all nodes have the same ones, in the end */
/* The file `name` of a payload: a random part of all files, in a random order; their number. */
uint32_t lists_add_paths(struct str *text);
void checks_begin(void);

/* work-checks.c */
bool work_is_loaded(void); /* as much was read from the source as the dataset has */

#endif
