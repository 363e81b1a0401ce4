#include "fs/control/lackings.h"

#include "fs/base/cleanup.h"
#include "fs/base/thread.h"

#include <string.h>

/* Needs the lock. */
static struct lacking *find_name(struct lackings *l, const char *name)
{
    uint32_t i = 0;
    while (i < l->count && strncmp(l->list[i].name, name, sizeof l->list[i].name) != 0)
        i++;
    return i < l->count ? &l->list[i] : NULL;
}

void lackings_note(struct lackings *l, const char *name, const bool *missing, uint32_t nodes)
{
    struct lacking now = {.nodes = 0};
    strncpy(now.name, name, sizeof now.name - 1);
    for (uint32_t v = 0; v < nodes && now.nodes < LACKING_MOST; v++)
        if (missing[v])
            now.node[now.nodes++] = v;
    LOCK_SCOPE(&l->lock);
    struct lacking *before = find_name(l, name);
    if (!before && now.nodes && l->count < SAMPLES_RECORDS)
        before = &l->list[l->count++];
    if (before)
        *before = now;
}

uint32_t lackings_find(struct lackings *l, const char *name, uint32_t node[LACKING_MOST])
{
    LOCK_SCOPE(&l->lock);
    const struct lacking *found = find_name(l, name);
    if (found)
        memcpy(node, found->node, sizeof found->node);
    return found ? found->nodes : 0;
}

void lackings_clear(struct lackings *l)
{
    LOCK_SCOPE(&l->lock);
    l->count = 0;
}
