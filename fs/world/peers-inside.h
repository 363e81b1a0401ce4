/* Shared by peers.c and peers-layout.c. */
#ifndef FS_WORLD_PEERS_INSIDE_H
#define FS_WORLD_PEERS_INSIDE_H

#include "fs/world/listener.h"
#include "fs/world/mover.h"
#include "fs/world/peers.h"

#include <pthread.h>

struct peers {
    struct self self;
    struct membership membership;
    struct courier_listener *listener;
    struct mover *mover;
    bool keeps_time;
    pthread_t timer;
    /* only used by the timer: the round after which it last asked for a turn, and when */
    uint64_t room_round, room_asked;
};

#endif
