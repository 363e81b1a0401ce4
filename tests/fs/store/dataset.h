/* A small data set for tests of the store: a source directory whose files' bytes can be computed, and its catalog. */
#ifndef TESTS_FS_STORE_DATASET_H
#define TESTS_FS_STORE_DATASET_H

#include "fs/store/store.h"

struct dataset {
    char source[4096]; /* the directory, within test_directory() */
    int root;
    struct catalog *catalog;
    bool acls; /* the scan respects ACLs; set after dataset_begin */
};

/* Two files of the same base name, size and time. */
#define NAMESAKE_A "a/0.npy"
#define NAMESAKE_B "b/0.npy"
void dataset_add_namesakes(struct dataset *d, uint64_t size);

/* Make the directory; files are added by name and size, then it is scanned. Files whose name holds "sparse" are mostly
 * holes, others random. All of these end the program when they fail. */
void dataset_begin(struct dataset *d);
void dataset_add(struct dataset *d, const char *path, uint64_t size);
void dataset_scan(struct dataset *d);
void dataset_scan_again(struct dataset *d); /* as the next mount does: unchanged files keep their versions */
void dataset_end(struct dataset *d);

uint32_t dataset_file(const struct dataset *d, const char *path); /* its number */
uint64_t dataset_size(const struct dataset *d, uint32_t file);
const char *dataset_path(const struct dataset *d, const char *path); /* absolute; see test_path */
int dataset_open_files(const struct dataset *d);                     /* how many of its files this process has open */
struct span dataset_random_span(const struct dataset *d, uint32_t file, uint64_t *random);

/* Is the answer exactly the bytes of the span? */
bool dataset_matches(const struct dataset *d, const struct span *span, const struct answer *answer);
bool dataset_matches_bytes(const struct dataset *d, const struct span *span, const void *bytes);

uint64_t random_next(uint64_t *state);

/* A store of the data set, with tiers of these sizes in test_directory() (0: none) and these faults: "FILE" in them
 * stands for faults_set's. Tiers are emptied first unless `keep`. */
struct store *dataset_store(const struct dataset *d, uint64_t ram, uint64_t ssd, const char *faults, bool keep);
void faults_set(const char *specification);
void dataset_threads(int threads); /* for the source, of stores to come; 4 */
void dataset_rate(uint64_t rate);  /* of the source, of stores to come; 0: no bound */

struct store_stats stats_of(struct store *store);
struct stage_progress progress_of(struct store *store);

/* A whole read: parks the caller's thread when the read parks. The caller releases the answer after 0. */
int read_wait(struct store *store, struct store_read *read, uint32_t file, uint64_t offset, uint32_t length);
/* 0 when the read succeeded and its bytes are right; -EBADMSG when they are not. Releases. */
int read_check(struct store *store, const struct dataset *d, const struct span *span, enum place *place);
int read_check_fed(struct store *store, const struct dataset *d, const struct span *span); /* as the feeder */

/* Wait until the condition holds; the program ends at its deadline without it. */
#define wait_until(condition)                                                                                          \
    do {                                                                                                               \
        for (int waited_ = 0; !(condition); waited_++)                                                                 \
            wait_step(waited_, #condition);                                                                            \
    } while (0)
void wait_step(int steps, const char *condition);

/* What the log has held since the last call, for strstr; log_to_file begins it. */
void log_to_file(void);
const char *log_text(void);

#endif
