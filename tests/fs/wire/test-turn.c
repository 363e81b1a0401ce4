/* What may be asked of a turn, and which of the last ones are known. */
#include "fs/wire/turn.h"

#include "tests/lib/tap.h"

static void test_sound(void)
{
    static const struct {
        struct turn turn;
        bool sound;
        const char *what;
    } table[] = {
        {{0, 0, 0, 0}, false, "no cause"},
        {{4, 0, 0, 0}, false, "an unknown cause"},
        {{TURN_ROOM, 0, 5, 0}, true, "room"},
        {{TURN_ROOM, 1, 5, 0}, false, "a part of the room"},
        {{TURN_ROOM, 0, 5, 1}, false, "room by chance"},
        {{TURN_EXCHANGE, 0, 0, 0}, true, "an exchange of nothing"},
        {{TURN_EXCHANGE, TURN_WHOLE, UINT64_MAX, UINT64_MAX}, true, "of all"},
        {{TURN_EXCHANGE, TURN_WHOLE + 1, 0, 0}, false, "of more"},
        {{TURN_SHUFFLE, TURN_WHOLE, 0, 9}, true, "a shuffle"},
        {{TURN_SHUFFLE, TURN_WHOLE - 1, 0, 9}, false, "of a part"},
        {{TURN_SHUFFLE, TURN_WHOLE, 1, 9}, false, "of an epoch"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        is_int(turn_is_sound(&table[i].turn), table[i].sound, "%s", table[i].what);
}

static struct turn number(uint64_t k)
{
    return (struct turn){TURN_EXCHANGE, 10, k, 2};
}

static void test_history(void)
{
    struct turn_history h = {0};
    struct turn turn = number(1);
    ok(!turn_find(&h, &turn) && turn_number(&h) == 0, "nothing has turned yet");
    for (uint64_t k = 1; k <= TURNS_KEPT + 2; k++)
        turn_note(&h, &(struct turn_record){.turn = number(k), .k = k});
    is_uint(h.count, TURNS_KEPT, "the last turns are kept");
    is_uint(turn_number(&h), TURNS_KEPT + 2, "the newest first");
    turn = number(2);
    ok(!turn_find(&h, &turn), "those before are not known any more");
    for (uint64_t k = 3; k <= TURNS_KEPT + 2; k++) {
        turn = number(k);
        const struct turn_record *record = turn_find(&h, &turn);
        ok(record && record->k == k, "turn %ju is", (uintmax_t)k);
    }
    turn.seed++;
    ok(!turn_find(&h, &turn), "one with another seed is another one");
    turn = number(3);
    turn.fraction++;
    ok(!turn_find(&h, &turn), "so is one of more");
    ok(turn_history_is_sound(&h), "that is a history");
    h.record[TURNS_KEPT - 1].turn.cause = TURN_SHUFFLE + 1;
    ok(!turn_history_is_sound(&h), "not with what cannot be asked");
    h = (struct turn_history){.count = TURNS_KEPT + 1};
    ok(!turn_history_is_sound(&h), "nor of more turns than are kept");
}

int main(void)
{
    test_sound();
    test_history();
    return done_testing();
}
