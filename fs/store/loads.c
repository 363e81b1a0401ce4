/* A hash table by file and piece of PIECE_BYTES; all loads of a piece share a bucket. */
#include "fs/store/loads.h"

#include <stdlib.h>

void load_queue_init(struct load_queue *queue)
{
    TAILQ_INIT(&queue->loads);
    queue->count = 0;
}

void load_queue_leave(struct load *load)
{
    if (!load->queued)
        return;
    TAILQ_REMOVE(&load->queued->loads, load, same_queue);
    load->queued->count--;
    load->queued = NULL;
}

void load_queue_add(struct load_queue *queue, struct load *load)
{
    load_queue_leave(load);
    TAILQ_INSERT_TAIL(&queue->loads, load, same_queue);
    queue->count++;
    load->queued = queue;
}

struct load *load_queue_take(struct load_queue *queue)
{
    struct load *load = TAILQ_FIRST(&queue->loads);
    if (load)
        load_queue_leave(load);
    return load;
}

static unsigned bucket_of(uint32_t file, uint64_t offset)
{
    uint64_t key = ((uint64_t)file << 24) + offset / PIECE_BYTES;
    return (unsigned)(key * 0x9e3779b97f4a7c15u >> 54);
}
_Static_assert(LOAD_BUCKETS == 1 << (64 - 54), "bucket_of takes the upper ten bits");

struct load *loads_add(struct loads *loads, uint32_t file, uint64_t offset, uint32_t length)
{
    struct load *load = calloc(1, sizeof *load);
    if (!load)
        return NULL;
    load->file = file;
    load->offset = offset;
    load->length = length;
    TAILQ_INIT(&load->waiting);
    LIST_INSERT_HEAD(&loads->bucket[bucket_of(file, offset)], load, same_bucket);
    return load;
}

struct load *loads_at(struct loads *loads, uint32_t file, uint64_t offset)
{
    struct load *load;
    LIST_FOREACH(load, &loads->bucket[bucket_of(file, offset)], same_bucket)
    if (load->file == file && offset >= load->offset && offset - load->offset < load->length)
        return load;
    return NULL;
}

void loads_remove(struct load *load)
{
    LIST_REMOVE(load, same_bucket);
}

void recent_add(struct recent *recent, uint32_t file, uint64_t begin, uint64_t end)
{
    for (unsigned i = 0; i < RECENT_ENDS; i++)
        if (recent->load[i].end == begin && begin && recent->load[i].file == file) {
            recent->load[i].end = end;
            return;
        }
    unsigned i = recent->next++ % RECENT_ENDS;
    recent->load[i].file = file;
    recent->load[i].end = end;
}

bool recent_follows(const struct recent *recent, uint32_t file, uint64_t begin)
{
    for (unsigned i = 0; begin && i < RECENT_ENDS; i++)
        if (recent->load[i].end == begin && recent->load[i].file == file)
            return true;
    return false;
}
