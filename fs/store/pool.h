/* Pools of zstd contexts and of buffers for answers. Threads on different cores mostly use different stripes. */
#ifndef FS_STORE_POOL_H
#define FS_STORE_POOL_H

#include "fs/base/thread.h"
#include "fs/store/value.h"

#include <sys/queue.h>

enum {
    POOL_SPARES = 2,   /* per kind and stripe */
    POOL_ALIGN = 4096, /* alignment of a buffer and of its length */
    POOL_AREAS = 4,
};
/* Buffers for one stored value, or for all values of a span; with an extra page at each end. */
enum pool_kind { POOL_VALUE, POOL_SPAN, POOL_SIZES, POOL_CODEC = POOL_SIZES, POOL_KINDS };
extern const size_t pool_bytes[POOL_SIZES], pool_area_bytes[POOL_SIZES];

struct pool;
struct buffer {
    char *bytes;
    enum pool_kind size;
    bool shared; /* it is part of an area */
    struct pool *pool;
    SLIST_ENTRY(buffer) next;
};

struct pool_stripe {
    _Alignas(CACHE_LINE) pthread_mutex_t lock; /* innermost lock */
    int spares[POOL_KINDS];                    /* guarded by lock, like the next field */
    void *spare[POOL_KINDS][POOL_SPARES];
};
/* Areas of huge pages that are cut into buffers. */
struct pool_areas {
    int areas;
    char *area[POOL_AREAS];
    SLIST_HEAD(, buffer) unused;
};
struct pool {
    struct pool_stripe stripe[THREAD_STRIPES];
    pthread_mutex_t lock; /* innermost lock; guards the next field */
    struct pool_areas areas[POOL_SIZES];
};

void pool_init(struct pool *pool);
void pool_fini(struct pool *pool);

struct value_codec_state *pool_codec_get(struct pool *pool); /* NULL: no memory */
void pool_codec_put(struct pool *pool, struct value_codec_state *codec);
struct buffer *pool_buffer_get(struct pool *pool, enum pool_kind size); /* NULL: no memory */
void pool_buffer_put(void *buffer); /* takes a struct buffer; also the release function of an answer's pin */

#endif
