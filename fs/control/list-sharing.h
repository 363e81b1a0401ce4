/* Uploaded sample lists are the same on all nodes of a world.
 *
 * Each node keeps a record per name (struct samples_record): which list it stands for, or that it was removed, and a
 * version. Of two nodes' records the one with the higher version is right. So it is enough that nodes look at each
 * other's records, at any time and in any order:
 *
 *   when a world lives, and after a restart   each node looks at all others
 *   after a put or a remove                   the node asks all others to look at its own records; the reply waits
 *                                             until they have what it has
 *   when a plan names an unknown list         the node looks at all others
 *
 * A node that looks fetches the records, then the lists that it lacks. Blobs of peers_blob: key 0 the records, 1 the
 * same and a request to look at those of the asking node, marked ones the records of a container (index-parts.h), other
 * keys the list whose digest begins so. */
#ifndef FS_CONTROL_LIST_SHARING_H
#define FS_CONTROL_LIST_SHARING_H

#include "fs/control/protocol.h"
#include "fs/world/self.h"

struct sharing;

int sharing_create(struct control *control, struct sharing **sharing);
void sharing_destroy(struct sharing *sharing);

/* Looks at all other nodes, on this thread: what they have is here then, as far as they can be asked. */
void sharing_look(struct control *control, const struct asker *asker);
/* Memory for sharing_spread, freed by free(). Get it before a list is changed: without memory, other nodes would not
 * hear of the change before the next join. */
struct spreading;
int sharing_prepare(struct control *control, struct spreading **spreading, struct str *why);
/* What stands for the name here goes to all other nodes. 0: they have it, or there are none; -EHOSTUNREACH: not all
 * have it after a minute, `why` names some; -EINTR. */
int sharing_spread(struct spreading *spreading, const char *name, const struct asker *asker, struct str *why);

#endif
