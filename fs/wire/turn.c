#include "fs/wire/turn.h"

const char *const turn_names[] = {[TURN_ROOM] = "room", [TURN_EXCHANGE] = "exchange", [TURN_SHUFFLE] = "shuffle"};

bool turn_is_sound(const struct turn *t)
{
    switch (t->cause) {
    case TURN_ROOM:
        return t->fraction == 0 && t->seed == 0;
    case TURN_EXCHANGE:
        return t->fraction <= TURN_WHOLE;
    case TURN_SHUFFLE:
        return t->fraction == TURN_WHOLE && t->epoch == 0;
    }
    return false;
}

bool turn_same(const struct turn *a, const struct turn *b)
{
    return a->cause == b->cause && a->fraction == b->fraction && a->epoch == b->epoch && a->seed == b->seed;
}
