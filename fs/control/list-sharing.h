/* Keeps uploaded sample lists equal on all nodes of a world.
 *
 * Each node has a record per name (struct samples_record): the list's digest, or that it was removed, and a version. Of
 * two nodes' records for a name, the one with the higher version is right. So it is enough that nodes look at each
 * other's records, at any time and in any order:
 *
 *   when a world lives, and after a restart   each node looks at all others
 *   after a put or a remove                   the node asks all others to look at its own records; the reply waits
 *                                             until they have the same
 *   when a plan names an unknown list         the node looks at all others
 *
 * A node that looks fetches the records, then the lists that it lacks. Keys of peers_blob: 0 the records; 1 the
 * records, with a request to look at those of the asking node; marked keys the records of a container (index-parts.h);
 * other keys the list whose digest begins with the key. */
#ifndef FS_CONTROL_LIST_SHARING_H
#define FS_CONTROL_LIST_SHARING_H

#include "fs/control/lackings.h"
#include "fs/control/protocol.h"

struct sharing;

int sharing_create(struct control *control, struct sharing **sharing);
void sharing_destroy(struct sharing *sharing);

/* Look at all other nodes, on this thread, and fetch what they have, as far as they can be asked. If the courier is
 * about to come back, wait for it. 0: all have been asked, or this node was never in a world. -errno: some could not be
 * asked, or this node could not take something that they have. */
int sharing_look(struct control *control, const struct asker *asker);
/* Memory for sharing_spread; release it with free(). Allocate it before a list is changed: otherwise, without memory,
 * other nodes would learn of the change only at the next join. */
struct spreading;
int sharing_prepare(struct control *control, struct spreading **spreading, struct str *why);
/* Bring this name's record and list to all other nodes. 0: they have it, or there are none; -EHOSTUNREACH: after a
 * minute, or because the world has ended, some lack it, `why` names some; -EINTR. */
int sharing_spread(struct spreading *spreading, const char *name, const struct asker *asker);
/* See lackings_find. */
uint32_t sharing_lacking(struct control *control, const char *name, uint32_t node[LACKING_MOST]);

#endif
