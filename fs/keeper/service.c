/* Implements service.h. */
#include "fs/keeper/service.h"

#include "fs/base/clock.h"
#include "fs/wire/handover.h"
#include "fs/wire/lane.h"

static uint64_t answers(const struct service *s)
{
    return atomic_load_explicit(&handover_data(s->handover)->answered, memory_order_relaxed);
}

void service_init(struct service *s, struct handover *handover, uint64_t young)
{
    *s = (struct service){.handover = handover, .young = young, .lived_at = clock_now()};
    service_begin(s);
}

void service_begin(struct service *s)
{
    s->before = s->answered = answers(s);
}

uint64_t service_progress(const struct service *s)
{
    return atomic_load(&s->handover->pulse.beats) + answers(s) - s->before;
}

void service_look(struct service *s)
{
    uint64_t now = clock_now(), answered = answers(s);
    bool old = now - atomic_load(&s->handover->started) > s->young;
    if (answered != s->answered || (old && service_progress(s) > 0))
        s->lived_at = now;
    s->answered = answered;
}
