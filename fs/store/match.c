/* A hash table of file numbers (open addressing) with an array of half identities: 16 to 24 bytes per file. It exists
 * only while a shard of another catalog is adopted. */
#include "fs/store/match.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct match {
    const struct catalog *catalog;
    uint64_t *half; /* per file: the first half of its identity */
    uint32_t *slot; /* file + 1; 0: empty */
    uint64_t mask;
};

static uint64_t half_of(const struct digest *identity)
{
    uint64_t half;
    memcpy(&half, identity->byte, sizeof half);
    return half;
}

static void enter(struct match *m, uint32_t file)
{
    struct digest identity = catalog_file_version(m->catalog, file);
    m->half[file] = half_of(&identity);
    uint64_t at = m->half[file] & m->mask;
    while (m->slot[at])
        at = (at + 1) & m->mask;
    m->slot[at] = file + 1;
}

int match_create(const struct catalog *c, struct match **out)
{
    uint32_t files = catalog_files(c);
    uint64_t slots = 16;
    while (slots < (uint64_t)files * 3 / 2)
        slots *= 2;
    struct match *m = calloc(1, sizeof *m);
    if (!m)
        return -ENOMEM;
    m->catalog = c;
    m->mask = slots - 1;
    m->half = malloc((files ? files : 1) * sizeof *m->half);
    m->slot = calloc(slots, sizeof *m->slot);
    if (!m->half || !m->slot) {
        match_destroy(m);
        return -ENOMEM;
    }
    for (uint32_t file = 0; file < files; file++)
        enter(m, file);
    *out = m;
    return 0;
}

void match_destroy(struct match *m)
{
    if (!m)
        return;
    free(m->half);
    free(m->slot);
    free(m);
}

bool match_find(const struct match *m, const struct digest *identity, uint32_t *file)
{
    uint64_t half = half_of(identity);
    for (uint64_t at = half & m->mask; m->slot[at]; at = (at + 1) & m->mask) {
        uint32_t candidate = m->slot[at] - 1;
        if (m->half[candidate] != half)
            continue;
        struct digest whole = catalog_file_version(m->catalog, candidate);
        if (memcmp(&whole, identity, sizeof whole) == 0) {
            *file = candidate;
            return true;
        }
    }
    return false;
}
