/* A READ takes at most the sum of these, by what happens while it waits:
 *
 * 1. BASE, when nothing hinders it.
 * 2. peer_timeout (rule 5 of the design), if a fault keeps some peer from answering. With two faults twice: the owner
 *    waits for the previous owner and says WAIT, and is lost then. A request may ask all peers for a layout in turn.
 *    The courier of a server that has stopped says WAIT for PULSE_MS and a quarter of peer_timeout.
 * 3. The time of a call of the source, for all READs that may stand before it and its own: once at the owner, which
 *    says WAIT meanwhile, and once here, if the owner is then lost. A feeder leaves them one thread of the source.
 * 4. The time of a message, for MESSAGES messages: a question, WAIT, the answer; and these for the previous owner.
 *    A request that names a list which is not here asks each node which ones it has, and for these, one by one.
 *
 * A server that takes the place of one that died begins again. For COURIER_BACK_MS (fs/world/turn-wait.c) it waits for
 * its courier where a request needs a layout that it has not: another node may have it. */
#include "tests/sim/bound.h"

#include "fs/base/clock.h"
#include "tests/lib/tap.h"

#include <string.h>

enum { BASE_MS = 500, MESSAGES = 6, LISTS = 8, HINDRANCES = 4096, COURIER_BACK_MS = 5000, PULSE_MS = 1000 };

static struct {
    struct {
        uint64_t from, until;
    } hindrance[HINDRANCES]; /* of peers */
    uint32_t count;
    uint64_t source, message; /* the longest times so far */
    uint32_t reads, most;     /* of crowds, that wait; at the same time, so far */
    bool fed;
} bound;

void bound_peers(uint64_t until)
{
    if (bound.count == HINDRANCES)
        bail_out("more faults of peers than are expected");
    bound.hindrance[bound.count].from = sim_now();
    bound.hindrance[bound.count++].until = until;
}

void bound_source(uint64_t delay)
{
    bound.source = delay > bound.source ? delay : bound.source;
}

void bound_fed(void)
{
    bound.fed = true;
}

void bound_reads(int change)
{
    bound.reads += (uint32_t)change;
    bound.most = bound.reads > bound.most ? bound.reads : bound.most;
}

void bound_messages(uint64_t delay)
{
    bound.message = delay > bound.message ? delay : bound.message;
}

static uint64_t courier_back(const struct sim_node *n, const struct sim_request *read)
{
    uint64_t until = n->serving_since + COURIER_BACK_MS * MILLISECOND;
    return read->text && n->losses && until > read->began ? until - read->began : 0;
}

static uint32_t messages_of(const struct sim_request *read)
{
    bool looks = read->text && strstr(read->text, "samples=");
    return MESSAGES + (looks ? 2 * (sim_options->nodes - 1) * (1 + LISTS) : 0);
}

uint64_t bound_of(const struct sim_node *n, const struct sim_request *read)
{
    uint32_t lost = 0, most = read->text ? sim_options->nodes - 1 : 2;
    for (uint32_t i = 0; i < bound.count; i++)
        lost += bound.hindrance[i].until >= read->began;
    if (lost > most || (lost && read->text))
        lost = most;
    uint32_t before = sim_options->readers + bound.most;
    uint64_t calls = 2 * (1 + before / (bound.fed ? 1 : SIM_SOURCE_THREADS));
    uint64_t silence = n->mount.peer_timeout + n->mount.peer_timeout / 4 + PULSE_MS * MILLISECOND;
    uint64_t once = BASE_MS * MILLISECOND + lost * silence + calls * bound.source + messages_of(read) * bound.message;
    return (1 + n->losses - read->losses) * once + courier_back(n, read);
}
