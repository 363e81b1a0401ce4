/* The layout: which node owns each extent, in one agreed state of the world. Every node computes it from the same input
 * by the same rule; equal digests show that the results are equal. It is immutable, and kept as a mapped file.
 *
 * With G groups, group g has the nodes with number·G/nodes = g. Each group owns the whole dataset. */
#ifndef FS_WORLD_LAYOUT_H
#define FS_WORLD_LAYOUT_H

#include "fs/wire/message.h"
#include "fs/wire/turn.h"
#include "fs/world/extents.h"

struct layout_input {
    const struct catalog *catalog;
    const struct extents *extents;
    uint32_t nodes, groups;
    const struct message_member *member; /* by node number */
    const uint16_t *holder;              /* per group, per extent: see claims_merge; NULL: all are NO_OWNER */
};

struct layout;
/* A node, as in the layout's file. */
struct layout_record {
    char id[40], host[72]; /* padded with NULs */
    uint64_t capacity;
    uint64_t zero;
};

/* Cached extents stay with their holder; if a group has several holders, with the lowest number. The others are spread
 * so that all nodes own the same number of extents, as far as their room allows. -EINVAL: no nodes, more groups than
 * nodes, or a holder in another group. -ENOMEM. */
int layout_compute(const struct layout_input *input, struct layout **layout);
/* The same owners. Extents without an owner are spread over `room`, which is per node. */
int layout_extend(const struct layout *layout, const struct extents *extents, const uint64_t *room,
                  struct layout **extended);
/* The next layout of a turn by exchange or shuffle: some or all extents of each node change their owner within the
 * group. Each node owns as many extents as before. -EINVAL: another kind of turn. */
int layout_exchange(const struct layout *layout, const struct extents *extents, const struct turn *turn,
                    struct layout **next);
int layout_save(const struct layout *layout, const char *path); /* atomically */
uint64_t layout_most(const struct extents *extents); /* maximum size of a layout of these extents, in bytes */
/* -ENOENT; -EBADMSG: the file is damaged, or of another catalog. */
int layout_open(const char *path, const struct catalog *catalog, struct layout **layout);
int layout_open_fd(int fd, const struct catalog *catalog, struct layout **layout);
/* Make a layout of bytes from another process. On success the layout owns them and frees them. */
int layout_open_bytes(void *bytes, size_t n, const struct catalog *catalog, struct layout **layout);
/* Copy up to n bytes from offset `from`; returns how many. `length`: of the whole. */
size_t layout_bytes(const struct layout *layout, uint64_t from, void *to, size_t n, uint64_t *length);
int layout_share(const struct layout *layout);    /* a descriptor of sealed memory with its bytes, or -errno */
struct layout *layout_get(struct layout *layout); /* adds a reference; layout_close removes it */
void layout_close(struct layout *layout);

const struct digest *layout_digest(const struct layout *layout);
bool layout_is(const struct layout *layout, const struct digest *digest);
uint32_t layout_nodes(const struct layout *layout);
uint32_t layout_groups(const struct layout *layout);
uint32_t layout_group(const struct layout *layout, uint32_t node);
const struct layout_record *layout_node(const struct layout *layout, uint32_t node);
/* The owning node's number, or NO_OWNER. O(1), any thread. */
uint32_t layout_owner(const struct layout *layout, uint32_t group, uint64_t extent);
uint64_t layout_owned(const struct layout *layout, uint32_t node); /* raw bytes */
uint64_t layout_unowned(const struct layout *layout); /* number of extents without an owner, summed over groups */

#endif
