/* Turns that are asked for here: by a request that waits until the world has turned, or on behalf of a plan, which does
 * not wait. Who asks repeats it: what is asked gets lost with a server or a courier, and is refused while the turn
 * before it, or its move, goes on. */
#ifndef FS_CONTROL_TURNS_H
#define FS_CONTROL_TURNS_H

#include "fs/control/protocol.h"
#include "fs/wire/turn.h"
#include "fs/world/peers.h"

struct turns;

int turns_create(struct control *control, struct turns **turns);
void turns_destroy(struct turns *turns); /* NULL is nothing */

/* With an exchange before each epoch, which layout an epoch is planned from, as the last turns tell. `exchange` is the
 * turn for this epoch. All who ask get the same, whether that for the next one has been taken by then or not. 0 and
 * `layout` (zeros: there never was a world); -EAGAIN: the exchange for this epoch is still to be taken. */
int turns_layout(const struct world_view *view, const struct turn *exchange, struct digest *layout);

/* Ask for a turn and wait until it is taken. 0 and `record`; -EINTR: the asker gave up; -ENOTCONN: nobody is there to
 * turn with, or not all nodes of the world are; -EINVAL. */
int turns_await(struct control *control, const struct turn *turn, const struct asker *asker,
                struct turn_record *record);
/* The same without waiting, and also when the asker is gone, while the world is whole. Of several the newest counts. */
void turns_wish(struct turns *turns, const struct turn *turn);
bool turns_wishes(struct turns *turns, const struct turn *turn); /* it still does so */

#endif
