/* Stores segments instead of RocksDB, with the functions of fs/store/rocks.h. Most seeds use it; one in 20 uses
 * RocksDB. */
#ifndef TESTS_SIM_DISK_H
#define TESTS_SIM_DISK_H

#include "fs/store/rocks.h"
#include "tests/sim/sched.h"

int disk_open(const struct rocks_config *config, struct rocks **rocks, struct str *why);
void disk_close(struct rocks *rocks);
uint64_t disk_overhead(uint64_t segments);
int disk_list(struct rocks *rocks, struct rocks_file **files, size_t *count);
int disk_find(struct rocks *rocks, uint32_t segment, struct rocks_file *file);
int disk_open_file(const struct rocks *rocks, const char *name, bool *spare);
const char *disk_read(int fd, uint64_t from, uint64_t to, char *buffer, int *error);
int disk_drop(struct rocks *rocks, uint32_t segment);
int disk_drop_open(struct rocks *rocks, const struct rocks_file *file);
int disk_write_begin(struct rocks *rocks, uint32_t segment, struct rocks_writer **writer);
int disk_write_put(struct rocks_writer *writer, uint32_t place, const void *bytes, size_t n, uint32_t *at);
int disk_write_end(struct rocks_writer *writer, struct rocks_file *file);
void disk_write_cancel(struct rocks_writer *writer);

/* The process is dead: its databases of RocksDB are closed, as the kernel would do it. */
void disk_lose(const struct sim_process *dead);

#endif
