/* A layer: a place that may have the bytes of a span: each of the tiers, and the source. A layer for tests, which
 * fails, lies or is slow, can stand before each of them. */
#ifndef FS_STORE_LAYER_H
#define FS_STORE_LAYER_H

#include "fs/store/answer.h"

struct layer;

struct layer_ops {
    /* Fill `answer` with exactly the span's bytes: 0. -ENOENT: not here. Any error but the source's means that there is
     * another place to ask. */
    int (*get)(struct layer *layer, const struct span *span, struct answer *answer);
    /* For bytes that the caller wants in place: read span.length bytes (up to PIECE_BYTES) into the vector. NULL where
     * a layer cannot. */
    int (*read)(struct layer *layer, const struct span *span, const struct iovec *into, int count);
    /* Nothing was asked of it for more than a second: give back what is kept open. May be NULL. */
    void (*idle)(struct layer *layer);
    /* From now on every answer may be an error: a thread that waits in `get` or `read` is released where that is
     * possible. Any thread, once, before `destroy`. May be NULL. */
    void (*stop)(struct layer *layer);
    void (*destroy)(struct layer *layer);
};

struct layer {
    const struct layer_ops *ops;
};

static inline void layer_idle(struct layer *layer)
{
    if (layer->ops->idle)
        layer->ops->idle(layer);
}

static inline void layer_stop(struct layer *layer)
{
    if (layer->ops->stop)
        layer->ops->stop(layer);
}

static inline void layer_destroy(struct layer *layer)
{
    if (layer)
        layer->ops->destroy(layer);
}

#endif
