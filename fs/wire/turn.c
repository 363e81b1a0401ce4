#include "fs/wire/turn.h"

#include <string.h>

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

void turn_note(struct turn_history *h, const struct turn_record *record)
{
    memmove(h->record + 1, h->record, sizeof h->record - sizeof *h->record);
    h->record[0] = *record;
    h->count += h->count < TURNS_KEPT;
}

const struct turn_record *turn_find(const struct turn_history *h, const struct turn *turn)
{
    for (uint64_t i = 0; i < h->count; i++)
        if (turn_same(&h->record[i].turn, turn))
            return &h->record[i];
    return NULL;
}

uint64_t turn_number(const struct turn_history *h)
{
    return h->count ? h->record[0].k : 0;
}

bool turn_history_is_sound(const struct turn_history *h)
{
    for (uint64_t i = 0; i < TURNS_KEPT && i < h->count; i++)
        if (!turn_is_sound(&h->record[i].turn))
            return false;
    return h->count <= TURNS_KEPT;
}
