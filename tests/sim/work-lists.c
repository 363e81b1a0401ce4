/* Uploaded sample lists: put, replaced and removed on any node; at the end all nodes must have the same ones. */
#include "fs/catalog/samples.h"
#include "fs/control/control-private.h"
#include "tests/sim/work-inside.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES = 2, UPLOAD_S = 90 }; /* UPLOAD_S: others are waited for 60 s */

uint32_t lists_add_paths(struct str *text)
{
    const struct catalog *c = sim_dataset.catalog;
    uint32_t files = catalog_files(c), many = 1 + (uint32_t)sim_random(files), at = (uint32_t)sim_random(files);
    char path[CATALOG_PATH_MAX];
    for (uint32_t i = 0; i < many; i++, at = (at + 7) % files) { /* 7 does not divide the number of files */
        long n = catalog_path(c, catalog_file_ino(c, at), path, sizeof path);
        str_add(text, path, (size_t)n);
        str_adds(text, "\n");
    }
    return many;
}

static void *upload_lists(void *unused)
{
    (void)unused;
    struct str text = STR_INIT, reply = STR_INIT;
    while (work_rests(6 * SECOND)) {
        bool removes = sim_random(3) == 0;
        str_clear(&text);
        str_addf(&text, "samples name=list-%d%s\n", (int)sim_random(NAMES), removes ? " action=remove" : "");
        if (!removes)
            lists_add_paths(&text);
        const struct question q = {(uint32_t)sim_random(sim_options->nodes), text.data, UPLOAD_S * SECOND,
                                   removes ? -ENOENT : 0};
        work.lists += work_ask(&q, &reply) == 0;
    }
    str_fini(&text);
    str_fini(&reply);
    return work_done();
}

void lists_begin(void)
{
    for (uint64_t i = sim_random(3); i > 0; i--) /* two of them replace and remove each other's */
        work_start("uploader", upload_lists, NULL, (uint32_t)sim_random(sim_options->nodes));
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct samples_record *)a)->name, ((const struct samples_record *)b)->name);
}

static uint32_t lists_of(const struct sim_node *n, struct samples_record *record)
{
    memset(record, 0, SAMPLES_RECORDS * sizeof *record);
    uint32_t many = samples_table_records(n->control->samples, record);
    qsort(record, many, sizeof *record, by_name);
    return many;
}

static bool lists_are_equal(void *node)
{
    static struct samples_record mine[SAMPLES_RECORDS], first[SAMPLES_RECORDS];
    uint32_t many = lists_of(&sim_nodes[0], first);
    return nodes_joined() && lists_of(node, mine) == many && !memcmp(mine, first, many * sizeof *mine);
}

static void log_lists(const struct sim_node *n)
{
    static struct samples_record record[SAMPLES_RECORDS];
    uint32_t many = lists_of(n, record);
    for (uint32_t i = 0; i < many; i++)
        sim_log("node %u: version %" PRIu64 " of list %s has %" PRIu64 " samples", n->number, record[i].version,
                record[i].name, record[i].count);
}

void lists_check(void)
{
    for (uint32_t i = 0; i < sim_options->nodes; i++) {
        uint64_t until = sim_now() + 2 * BOUND;
        while (!lists_are_equal(&sim_nodes[i])) {
            if (sim_now() > until) {
                log_lists(&sim_nodes[0]);
                log_lists(&sim_nodes[i]);
                sim_fail("node %u %s", i,
                         nodes_joined() ? "has other sample lists than node 0" : "is in no world that lives");
            }
            clock_sleep(100 * MILLISECOND);
        }
    }
}
