/* Chooses disk.c or RocksDB by the seed. RocksDB's threads run freely, in real time; simulated threads wait meanwhile,
 * because no call inside RocksDB is a switching point. Such a run may differ when it is repeated. */
#include "fs/store/rocks-inside.h"
#include "tests/sim/disk.h"
#include "tests/sim/faults.h"
#include "tests/sim/node.h"

enum { DATABASES = 2 * NET_NODES };

static struct {
    const struct sim_process *process; /* NULL: free */
    struct rocks *rocks;
} opened[DATABASES];

#define EITHER(type, name, parameters, ...)                                                                            \
    type __real_rocks_##name parameters;                                                                               \
    type __wrap_rocks_##name parameters;                                                                               \
    type __wrap_rocks_##name parameters                                                                                \
    {                                                                                                                  \
        return sim_options->rocks ? __real_rocks_##name(__VA_ARGS__) : disk_##name(__VA_ARGS__);                       \
    }

EITHER(uint64_t, overhead, (uint64_t segments), segments)
EITHER(int, list, (struct rocks * r, struct rocks_file **files, size_t *count), r, files, count)
EITHER(int, find, (struct rocks * r, uint32_t segment, struct rocks_file *file), r, segment, file)
EITHER(int, open_file, (const struct rocks *r, const char *name, bool *spare), r, name, spare)
EITHER(const char *, read, (int fd, uint64_t from, uint64_t to, char *buffer, int *error), fd, from, to, buffer, error)
EITHER(int, drop, (struct rocks * r, uint32_t segment), r, segment)
EITHER(int, drop_open, (struct rocks * r, const struct rocks_file *file), r, file)

int __real_rocks_open(const struct rocks_config *config, struct rocks **rocks, struct str *why);
int __wrap_rocks_open(const struct rocks_config *config, struct rocks **rocks, struct str *why);
int __wrap_rocks_open(const struct rocks_config *config, struct rocks **rocks, struct str *why)
{
    if (!sim_options->rocks)
        return disk_open(config, rocks, why);
    int error = __real_rocks_open(config, rocks, why), i = 0;
    if (error)
        return error;
    while (i < DATABASES && opened[i].process)
        i++;
    if (i == DATABASES)
        sim_fail("more databases are open than nodes can have");
    opened[i].process = sim_process_self();
    opened[i].rocks = *rocks;
    effects[EFFECT_ROCKS]++;
    return 0;
}

void __real_rocks_close(struct rocks *r);
void __wrap_rocks_close(struct rocks *r);
void __wrap_rocks_close(struct rocks *r)
{
    for (int i = 0; i < DATABASES; i++)
        if (opened[i].rocks == r)
            opened[i].process = NULL;
    (sim_options->rocks ? __real_rocks_close : disk_close)(r);
}

void disk_lose(const struct sim_process *dead)
{
    for (int i = 0; i < DATABASES; i++)
        if (opened[i].process == dead) {
            opened[i].process = NULL;
            rocksdb_close(opened[i].rocks->db);
        }
}

int __real_rocks_write_begin(struct rocks *r, uint32_t segment, struct rocks_writer **writer);
int __wrap_rocks_write_begin(struct rocks *r, uint32_t segment, struct rocks_writer **writer);
int __wrap_rocks_write_begin(struct rocks *r, uint32_t segment, struct rocks_writer **writer)
{
    int error = faults_write("tier");
    return error ? error : (sim_options->rocks ? __real_rocks_write_begin : disk_write_begin)(r, segment, writer);
}

int __real_rocks_write_put(struct rocks_writer *w, uint32_t place, const void *bytes, size_t n, uint32_t *at);
int __wrap_rocks_write_put(struct rocks_writer *w, uint32_t place, const void *bytes, size_t n, uint32_t *at);
int __wrap_rocks_write_put(struct rocks_writer *w, uint32_t place, const void *bytes, size_t n, uint32_t *at)
{
    int error = faults_write("tier");
    return error ? error : (sim_options->rocks ? __real_rocks_write_put : disk_write_put)(w, place, bytes, n, at);
}

void __real_rocks_write_cancel(struct rocks_writer *w);
void __wrap_rocks_write_cancel(struct rocks_writer *w);
void __wrap_rocks_write_cancel(struct rocks_writer *w)
{
    (sim_options->rocks ? __real_rocks_write_cancel : disk_write_cancel)(w);
}

int __real_rocks_write_end(struct rocks_writer *w, struct rocks_file *file);
int __wrap_rocks_write_end(struct rocks_writer *w, struct rocks_file *file);
int __wrap_rocks_write_end(struct rocks_writer *w, struct rocks_file *file)
{
    int error = faults_write("tier");
    if (!error)
        return (sim_options->rocks ? __real_rocks_write_end : disk_write_end)(w, file);
    __wrap_rocks_write_cancel(w);
    return error;
}
