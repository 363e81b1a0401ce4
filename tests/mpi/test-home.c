/* How long a courier waits for the next server. */
#include "mpi/home.h"

#include "fs/base/clock.h"
#include "tests/lib/tap.h"

#include <stdlib.h>

enum { GONE_S = 20 };

static struct home home;

/* Its server ends at `now`. No other one has this state directory. */
static void lose_server(uint64_t now)
{
    static const uint8_t world[16];
    home_init(&home, test_path("state"), 2, world);
    home.state = HOME_LOST;
    home.lost_at = home.next_at = now;
}

/* Number of seconds until it is not waited for any more, with a look in each; `most`: it is still waited for. */
static int wait_for_server(uint64_t *now, int most)
{
    int s = 0;
    while (s < most && home.state != HOME_ENDED) {
        home_tick(&home, *now += SECOND);
        s++;
    }
    return s;
}

static void test_wait(void)
{
    uint64_t now = clock_now();
    lose_server(now);
    is_int(wait_for_server(&now, 100), GONE_S + 1, "after a while no other server is waited for");
    home_fini(&home);
}

/* The next server may have come while the courier was stopped. */
static void test_stopped(void)
{
    uint64_t now = clock_now();
    lose_server(now);
    is_int(wait_for_server(&now, GONE_S / 2), GONE_S / 2, "a courier waits for the next server");
    now += 3600 * SECOND;
    home_tick(&home, now);
    ok(home.state != HOME_ENDED, "then it is stopped for an hour, and still waits");
    is_int(wait_for_server(&now, 100), GONE_S / 2 + 1, "for the rest of the time");
    home_fini(&home);
}

int main(void)
{
    setenv("DEALFS_SERVER_GONE", "20", 1);
    test_wait();
    test_stopped();
    return done_testing();
}
