/* The RAM tier of our server, as far as the server shares it: fs/wire/tier-share.h. Most questions of other nodes are
 * answered from here, without waking the server.
 *
 * It is empty until the server has shared its map, and again when the server has ended. Files of segments are opened
 * when a question needs them: the answer to that question comes from the server. */
#ifndef MPI_TIER_VIEW_H
#define MPI_TIER_VIEW_H

#include "fs/wire/tier-share.h"
#include "mpi/wire.h"

struct tier_view;

int tier_view_create(uint32_t nodes, struct tier_view **view); /* 0 or -ENOMEM */
void tier_view_destroy(struct tier_view *view);
void tier_view_close(struct tier_view *view); /* the server has ended */

/* The payload and the descriptors of MESSAGE_SHARED, or of MESSAGE_SEGMENT. Descriptors that are kept are set to -1.
 * -EBADMSG: the server broke the protocol. */
int tier_view_open(struct tier_view *view, const void *payload, size_t n, int fd[SHARE_FDS]);
int tier_view_add(struct tier_view *view, const void *payload, size_t n, int fd[SHARE_FDS]);

/* Compose the answer to a FETCH, marked as shared. 0: only the server can answer. Else the bytes stay valid until they
 * are given back. A peer may have as many answers as others could still get, so one that takes none leaves some to the
 * others: `held` is the number that it has. */
size_t tier_view_answer(struct tier_view *view, const struct wire_message *asked, unsigned held, void **bytes);
void tier_view_give_back(struct tier_view *view, void *bytes);

/* A segment to ask the server for. False: none now. The server's answer must follow before the next one. */
bool tier_view_wants(struct tier_view *view, uint32_t *segment);

#endif
