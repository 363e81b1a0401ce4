/* What the tests of peers share: worlds over one data set, reads and where they came from, and readers that wait. Every
 * function ends the program when the test cannot go on. */
#ifndef TESTS_FS_WORLD_PEERING_H
#define TESTS_FS_WORLD_PEERING_H

#include "fs/base/clock.h"
#include "tests/fs/world/fake.h"

#include <pthread.h>

#define MIB (1ull << 20)
#define LONG (3600 * SECOND) /* a timeout that no test waits for, on any machine */

enum { SMALL_FILES = 40, PEERING_RAM = 120 << 20 };

extern struct dataset dataset; /* of all worlds: SMALL_FILES, the namesakes, "empty", "middle", and
                                * "sparse-large" of two extents */

void peering_set_up(void); /* the data set, and the log in a file */
int peering_done(void);    /* main's status */

/* Nodes with room for PEERING_RAM bytes each; nobody is joined. */
void peering_begin(struct fake *f, uint32_t nodes, uint64_t timeout);
/* The same, joined in one group. */
void peering_join(struct fake *f, uint32_t nodes, uint64_t timeout);
/* The same with a source that faults_set can harm. */
void peering_join_faulty(struct fake *f, uint32_t nodes, uint64_t timeout);
void peering_part(struct fake *f); /* all couriers hang up */
void peering_harm(struct fake *f, uint32_t node, uint32_t times, enum fake_fault fault);

/* What a node says of the world. */
enum world_state peering_state(struct fake *f, uint32_t node);
void peering_await(struct fake *f, uint32_t node, enum world_state state);
enum peer_state peering_peer(struct fake *f, uint32_t node, uint32_t other);
struct counts {
    uint64_t timeouts, bad;
};
struct counts peering_counts(struct fake *f, uint32_t node);
/* What a node asks others for. */
struct asking {
    uint64_t queued;  /* reads that wait for a slot */
    uint64_t asked;   /* questions in progress */
    uint64_t unheard; /* of these: nothing was heard since `since` */
    uint64_t left;    /* questions whose reads have left */
    uint64_t first;   /* number of the first one in progress; none: of the next one */
    uint64_t last;    /* number of the last one */
};
struct asking peering_asking(struct fake *f, uint32_t node, uint64_t since);

/* Reads. */
uint32_t peering_owned(struct fake *f, uint32_t owner, uint32_t n); /* the n-th of the files that it owns alone */
bool peering_owns(struct fake *f, uint32_t node, uint32_t file);
int peering_read(struct fake *f, uint32_t node, uint32_t file, enum place *place); /* as read_check */
/* Two checks: the bytes are right, and come from there. */
void peering_reads(struct fake *f, uint32_t node, uint32_t file, enum place from, const char *right, const char *where);
bool peering_read_all(struct fake *f, uint32_t node);
uint64_t peering_source_bytes(struct fake *f); /* that all have read from the source */

/* Reads in threads of their own. */
struct reader {
    struct fake *f;
    uint32_t node, file;
    enum place place;
    int error;
    atomic_bool over;
    pthread_t thread;
};
void reader_start(struct reader *r, struct fake *f, uint32_t node, uint32_t file);
void readers_start(struct reader *r, uint32_t n, struct fake *f, uint32_t node, uint32_t file);
/* Waits for them: were all bytes right, and from there (PLACES: from anywhere)? */
bool readers_join(struct reader *r, uint32_t n, enum place from);

#endif
