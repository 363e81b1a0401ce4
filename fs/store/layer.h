/* A layer: a place that may have the bytes of a span. The tiers, later the peers, and the source are layers; the store
 * asks them in order. A test puts a layer that fails, lies or is slow between. */
#ifndef FS_STORE_LAYER_H
#define FS_STORE_LAYER_H

#include "fs/store/span.h"

struct layer;

struct layer_ops {
    const char *name;
    /* Fill `answer` with exactly the span's bytes: 0. -ENOENT: not here, ask the next layer. Any other error is the
     * reader's unless the store has another place to ask. May block only where `blocks` is set. */
    int (*get)(struct layer *layer, const struct span *span, struct answer *answer);
    /* For bytes that the caller wants in place: read span.length bytes (up to PIECE_BYTES) into the vector. NULL where
     * a layer cannot. */
    int (*read)(struct layer *layer, const struct span *span, const struct iovec *into, int count);
    /* Nothing was asked of it for more than a second: give back what is kept open. May be NULL. */
    void (*idle)(struct layer *layer);
    void (*destroy)(struct layer *layer);
    bool blocks;
};

struct layer {
    const struct layer_ops *ops;
};

static inline void layer_idle(struct layer *layer)
{
    if (layer->ops->idle)
        layer->ops->idle(layer);
}

static inline void layer_destroy(struct layer *layer)
{
    if (layer)
        layer->ops->destroy(layer);
}

#endif
