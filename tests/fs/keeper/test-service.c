/* When a server counts as serving, and its requests as answered in time. */
#include "fs/keeper/service.h"

#include "fs/base/clock.h"
#include "fs/wire/handover.h"
#include "fs/wire/lane.h"
#include "tests/lib/tap.h"

static struct handover *h;
static struct service s;

/* A server starts, and its last sign of life is long ago. */
static void begin_server(void)
{
    atomic_store(&h->pulse.beats, 0);
    atomic_store(&h->started, clock_now());
    service_begin(&s);
    s.lived_at = 0;
}

static bool has_lived(void)
{
    service_look(&s);
    return s.lived_at != 0;
}

int main(void)
{
    if (handover_reserve() || handover_open(true, &h))
        bail_out("make the shared memory");
    service_init(&s, h, 3600 * SECOND);
    ok(s.lived_at != 0, "time counts from the start of the keeper");
    begin_server();
    ok(service_progress(&s) == 0 && !has_lived(), "a server that does nothing does not serve");
    atomic_fetch_add(&handover_data(h)->answered, 20);
    ok(service_progress(&s) == 20 && has_lived(), "one that has answered reads before its first beat serves");
    begin_server();
    ok(service_progress(&s) == 0 && !has_lived(), "the next one does not, before it answers");
    atomic_fetch_add(&handover_control(h)->answered, 1);
    ok(service_progress(&s) == 0 && !has_lived(), "not even if it answers requests for its status");
    atomic_fetch_add(&h->pulse.beats, 1);
    ok(service_progress(&s) == 1 && !has_lived(), "a beat shows that it serves, but it may die young");
    s.young = 0;
    ok(has_lived(), "one that is not young any more has lived");
    handover_close(h);
    return done_testing();
}
