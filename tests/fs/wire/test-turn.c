/* What may be asked of a turn, and which turns are the same. */
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

static void test_same(void)
{
    const struct turn turn = {TURN_EXCHANGE, 10, 7, 2};
    struct turn other = turn;
    ok(turn_same(&turn, &other), "the same turn");
    other.seed++;
    ok(!turn_same(&turn, &other), "one with another seed is another one");
    other = turn;
    other.fraction++;
    ok(!turn_same(&turn, &other), "so is one of more");
    other = turn;
    other.epoch++;
    ok(!turn_same(&turn, &other), "or of another epoch");
    other = turn;
    other.cause = TURN_SHUFFLE;
    ok(!turn_same(&turn, &other), "or of another cause");
}

int main(void)
{
    test_sound();
    test_same();
    return done_testing();
}
