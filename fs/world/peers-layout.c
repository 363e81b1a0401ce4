/* Finds layouts by digest: in this node's world, on its shelf, or at another node. */
#include "fs/world/peers-inside.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NODES_ASKED = 64 };

static int fetch_layout(struct peers *p, struct living *l, uint32_t node, const struct digest *digest,
                        struct layout **layout)
{
    struct blob_question question = {node, shelf_key(digest), 0};
    uint64_t length = 0, again;
    CLEANUP_FREE char *piece = malloc(BLOB_PIECE), *bytes = NULL;
    int error = piece ? fetch_blob(l->fetches, &question, piece, &length) : -ENOMEM;
    if (!error && length > layout_most(p->self.extents))
        error = -EBADMSG;
    if (!error)
        error = (bytes = malloc(length)) ? 0 : -ENOMEM;
    for (uint64_t at = 0; !error && at < length; at += BLOB_PIECE) {
        question.offset = at;
        error = at ? fetch_blob(l->fetches, &question, piece, &again) : 0;
        if (!error && at && again != length)
            error = -EBADMSG;
        if (!error)
            memcpy(bytes + at, piece, length - at < BLOB_PIECE ? length - at : BLOB_PIECE);
    }
    if (!error)
        error = layout_open_bytes(bytes, length, p->self.config.catalog, layout);
    if (error)
        return error;
    bytes = NULL;
    if (layout_is(*layout, digest))
        return 0;
    layout_close(*layout);
    return -EBADMSG;
}

/* Ask the other nodes in order until one has it. All silent nodes together cost one peer_timeout. */
static int ask_for_layout(struct peers *p, const struct digest *digest, struct layout **layout)
{
    CLEANUP_LIVING struct living *l = membership_living(&p->membership);
    uint64_t began = clock_now();
    int error = -ENOENT;
    for (uint32_t i = 1; l && error && i < l->world->nodes && i <= NODES_ASKED; i++) {
        if (clock_now() - began > p->self.config.peer_timeout)
            break;
        error = fetch_layout(p, l, (l->world->me + i) % l->world->nodes, digest, layout);
    }
    if (!error)
        shelf_keep(p->self.shelf, *layout);
    return error ? -ENOENT : 0;
}

/* One of the layouts of this node's current world. */
static struct layout *own_layout(struct peers *p, const struct digest *digest)
{
    CLEANUP_WORLD struct world *w = membership_world(&p->membership);
    struct layout *known = !w                                            ? NULL
                           : layout_is(w->layout, digest)                ? w->layout
                           : w->before && layout_is(w->before, digest)   ? w->before
                           : w->earlier && layout_is(w->earlier, digest) ? w->earlier
                                                                         : NULL;
    return known ? layout_get(known) : NULL;
}

int peers_layout(struct peers *p, const struct digest *digest, struct layout **layout)
{
    if ((*layout = own_layout(p, digest)) || shelf_find(p->self.shelf, p->self.config.catalog, digest, layout) == 0)
        return 0;
    int error = ask_for_layout(p, digest, layout);
    /* this node has turned meanwhile, later than the node that named the digest */
    if (error && (*layout = own_layout(p, digest)))
        return 0;
    return error;
}
