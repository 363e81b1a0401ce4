/* The layout: which node owns each extent, in one agreed state of the world. Made by every node from the same input
 * by the same rule, so it is the same everywhere, which its digest shows; immutable; kept as a mapped file.
 *
 * With G groups, the nodes of group g are those with number·G/nodes = g; each group owns the whole dataset. */
#ifndef FS_WORLD_LAYOUT_H
#define FS_WORLD_LAYOUT_H

#include "fs/wire/message.h"
#include "fs/wire/turn.h"
#include "fs/world/extents.h"

struct layout_input {
    const struct catalog *catalog;
    const struct extents *extents;
    uint32_t nodes, groups;
    const struct message_member *member; /* by number */
    const uint16_t *holder;              /* for each group, of each extent: see claims_merge; NULL: all NO_OWNER */
};

struct layout;
/* A node, as the layout's file has it. */
struct layout_record {
    char id[40], host[72]; /* NUL to the end */
    uint64_t capacity;
    uint64_t zero;
};

/* What is held stays with its holder, of several in a group with the lowest number; the rest is spread: all own as many
 * extents, as far as the room goes that is left. -EINVAL: no nodes, more groups than nodes, a holder of another group;
 * -ENOMEM. */
int layout_compute(const struct layout_input *input, struct layout **layout);
/* The same owners, and what had none is spread over the room that is left, by number. */
int layout_extend(const struct layout *layout, const struct extents *extents, const uint64_t *room,
                  struct layout **extended);
/* A turn's next layout: a part of each node's extents, or all, changes its owner within the group; the node that owns
 * how many stays. Of an exchange or a shuffle; else -EINVAL. */
int layout_exchange(const struct layout *layout, const struct extents *extents, const struct turn *turn,
                    struct layout **next);
int layout_save(const struct layout *layout, const char *path); /* atomically */
uint64_t layout_most(const struct extents *extents);            /* no layout of them has more bytes */
/* -ENOENT; -EBADMSG: damaged, or of another catalog than this one. */
int layout_open(const char *path, const struct catalog *catalog, struct layout **layout);
int layout_open_fd(int fd, const struct catalog *catalog, struct layout **layout);
/* Of bytes that somebody else has sent, which it frees where that goes well. */
int layout_open_bytes(void *bytes, size_t n, const struct catalog *catalog, struct layout **layout);
/* A part of the bytes: how many there were, at most n; `length` of all. */
size_t layout_bytes(const struct layout *layout, uint64_t from, void *to, size_t n, uint64_t *length);
int layout_share(const struct layout *layout); /* its bytes in memory that nobody can change: a descriptor, or -errno */
struct layout *layout_get(struct layout *layout); /* one more reference, for each a layout_close */
void layout_close(struct layout *layout);

const struct digest *layout_digest(const struct layout *layout);
bool layout_is(const struct layout *layout, const struct digest *digest);
uint32_t layout_nodes(const struct layout *layout);
uint32_t layout_groups(const struct layout *layout);
uint32_t layout_group(const struct layout *layout, uint32_t node);
const struct layout_record *layout_node(const struct layout *layout, uint32_t node);
/* Within a group: the number of the node, or NO_OWNER. O(1), any thread. */
uint32_t layout_owner(const struct layout *layout, uint32_t group, uint64_t extent);
uint64_t layout_owned(const struct layout *layout, uint32_t node); /* bytes, as they cost raw */
uint64_t layout_unowned(const struct layout *layout);              /* how often an extent has no owner in a group */

#endif
