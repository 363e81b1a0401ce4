/* A layer: a place that may have the bytes of a span, that is each tier and the source. Tests put a layer that injects
 * faults before any of them. */
#ifndef FS_STORE_LAYER_H
#define FS_STORE_LAYER_H

#include "fs/store/answer.h"

struct layer;

struct layer_ops {
    /* Fill `answer` with exactly the span's bytes: 0. -ENOENT: they are not here. After an error of any layer except
     * the source, another place is asked. */
    int (*get)(struct layer *layer, const struct span *span, struct answer *answer);
    /* Read span.length bytes (up to PIECE_BYTES) into the caller's memory. NULL: the layer cannot. */
    int (*read)(struct layer *layer, const struct span *span, const struct iovec *into, int count);
    /* Called after a second without requests: release cached resources. May be NULL. */
    void (*idle)(struct layer *layer);
    /* From now on every answer may be an error. Release threads that wait in `get` or `read`, if possible. Called once,
     * by any thread, before `destroy`. May be NULL. */
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
