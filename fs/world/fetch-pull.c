/* Questions to other nodes for which a thread waits. */
#include "fs/world/fetch-inside.h"

#include "fs/base/cleanup.h"
#include "fs/base/thread.h"

#include <errno.h>
#include <string.h>

void pull_over(struct fetches *f, struct peer_pull *pull, int error)
{
    LOCK_SCOPE(&f->lock);
    pull->error = error;
    pull->over = true;
    pthread_cond_signal(&pull->ended);
}

/* Wait for the answer. 0: it is in the slot of pull->fetch, until pull_end. */
static int pull_wait(struct fetches *f, struct peer_pull *pull)
{
    pull->read.pull = pull;
    pull->read.pulled = pull->read.before = true;
    cond_init(&pull->ended);
    if (fetch_ask(f, &pull->read) != -EINPROGRESS)
        return -EHOSTUNREACH;
    LOCK_SCOPE(&f->lock);
    while (!pull->over)
        pthread_cond_wait(&pull->ended, &f->lock);
    return pull->error;
}

static void pull_end(struct fetches *f, struct peer_pull *pull, int error)
{
    uint32_t node = pull->question.node;
    if (pull->fetch)
        fetch_release(pull->fetch);
    if (error == -EBADMSG)
        fetch_count_bad(f, node);
    pthread_cond_destroy(&pull->ended);
}

int fetch_before(struct fetches *f, const struct value_run *run, stored_take take, void *to)
{
    struct peer_pull pull = {
        .question = {.file = run->file, .value = run->first, .count = run->count, .flags = FETCH_BEFORE}};
    struct payload_value values[RING_VALUES];
    pthread_mutex_lock(&f->lock);
    uint32_t node = pull.question.node = fetch_owner_before(f, run->file, (uint64_t)run->first * VALUE_BYTES);
    pthread_mutex_unlock(&f->lock);
    if (node >= f->nodes || node == f->me)
        return -ENOENT;
    int error = pull_wait(f, &pull);
    if (!error)
        error = payload_parse(fetch_slot(f, pull.fetch), pull.length, run, values);
    for (uint32_t i = 0; i < run->count && !error; i++)
        error = values[i].cut ? -EBADMSG : take(to, i, values[i].bytes, values[i].length);
    pull_end(f, &pull, error);
    return error;
}

int fetch_stored(struct fetches *f, uint32_t node, uint64_t first, uint32_t count, uint64_t k, uint64_t *bits)
{
    struct peer_pull pull = {.question = {.node = node,
                                          .file = (uint32_t)first,
                                          .value = (uint32_t)(first >> 32),
                                          .count = count,
                                          .flags = FETCH_STORED}};
    int error = pull_wait(f, &pull);
    const uint64_t *words =
        error ? NULL : payload_stored_parse(fetch_slot(f, pull.fetch), pull.length, first, count, k);
    if (words)
        memcpy(bits, words, (count + 63) / 64 * sizeof *words);
    else if (!error)
        error = -EAGAIN; /* that node has not turned yet, or has turned again */
    pull_end(f, &pull, error);
    return error;
}

int fetch_blob(struct fetches *f, const struct blob_question *q, void *to, uint64_t *length)
{
    uint32_t piece = (uint32_t)(q->offset / BLOB_PIECE);
    struct peer_pull pull = {.question = {.node = q->node,
                                          .file = (uint32_t)q->key,
                                          .value = (uint32_t)(q->key >> 32),
                                          .count = piece + 1,
                                          .flags = FETCH_BLOB}};
    int error = pull_wait(f, &pull);
    const struct payload_blob *p =
        error ? NULL : payload_blob_parse(fetch_slot(f, pull.fetch), pull.length, q->key, piece);
    if (!error && !p)
        error = -EBADMSG;
    if (!error && p->length == 0)
        error = -ENOENT;
    if (!error) {
        memcpy(to, p->byte, pull.length - sizeof *p);
        *length = p->length;
    }
    pull_end(f, &pull, error);
    return error;
}
