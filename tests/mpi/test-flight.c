/* What a courier says to its peers and when, with posts and bells that are none: the test plays MPI, the peers and the
 * server. The clock stands. */
#include "mpi/flight.h"

#include "mpi/mail.h"
#include "tests/fs/base/moved-clock.h"
#include "tests/lib/tap.h"

#include <string.h>

enum { NODES = 3, ASKER = 1, OTHER = 2, INBOXES = 64, HELD_MOST = 16, FETCH_TAG = TAG_ANSWER + 5 };
#define TIMEOUT (40 * SECOND)

/* --- posts and bells --- */

static struct {
    void *bytes;
    post_done *done;
    void *user;
} inbox[INBOXES], held[HELD_MOST];
static unsigned inboxes, helds;
static bool holds; /* sends do not end; else they end when time passes */
static unsigned said[WIRE_PONG + 1][NODES];
static struct wire_news news_at[NODES]; /* the last news that a node got */
static int failure;                     /* of the last answer; 0: there was none */

int post_receive(struct posts *post, void *bytes, size_t n, int from, int tag, post_done *done, void *user)
{
    (void)post, (void)n, (void)from;
    if (tag != TAG_MESSAGE)
        return 0;
    if (inboxes == INBOXES)
        bail_out("too many receives");
    inbox[inboxes].bytes = bytes;
    inbox[inboxes].done = done;
    inbox[inboxes++].user = user;
    return 0;
}

int post_send(struct posts *post, const void *bytes, size_t n, uint32_t to, int tag, post_done *done, void *user)
{
    struct wire_message m;
    (void)post;
    if (tag == TAG_MESSAGE && wire_message_parse(bytes, n, &m) == 0) {
        said[m.kind][to]++;
        if (m.kind == WIRE_NEWS)
            news_at[to] = m.news;
    }
    if (tag == FETCH_TAG && wire_failure_parse(bytes, n, &failure))
        failure = 0;
    if (helds == HELD_MOST)
        bail_out("too many sends");
    held[helds].done = done;
    held[helds++].user = user;
    return 0;
}

unsigned post_sends(const struct posts *post)
{
    (void)post;
    return helds;
}

static void end_sends(void)
{
    while (helds > 0) {
        helds--;
        held[helds].done(held[helds].user, 0, 0, 0);
    }
}

bool doorbell_reaches(const struct doorbell *doorbell, uint32_t node)
{
    (void)doorbell, (void)node;
    return false;
}

uint64_t doorbell_answered(const struct doorbell *doorbell, uint32_t node)
{
    (void)doorbell, (void)node;
    return 0;
}

void doorbell_ring(struct doorbell *doorbell, uint32_t node)
{
    (void)doorbell, (void)node;
}

/* --- a flight of node 0, whose server lives --- */

static struct home home;
static struct flight *flight;

static void begin_flight(void)
{
    static const uint8_t world[16];
    memset(said, 0, sizeof said);
    inboxes = helds = 0;
    failure = 0;
    home_init(&home, "/nowhere", NODES, world);
    home.nodes = NODES;
    home.state = HOME_LIVE;
    const struct flight_config config = {.nodes = NODES, .timeout = TIMEOUT, .last_tag = 1 << 20, .home = &home};
    if (hold_create(NODES, &home.hold) || flight_create(&config, &flight))
        bail_out("no memory");
    flight_look(flight);
}

static void end_flight(void)
{
    end_sends();
    flight_destroy(flight);
    home_fini(&home);
}

static void write_news(const struct node_news *news)
{
    news_write(ring_news(&home.hold->ring, 0), news);
}

static void pass_time(uint64_t time)
{
    if (!holds)
        end_sends();
    clock_add(time);
    flight_tick(flight, clock_now());
}

static void bring_fetch(uint32_t flags)
{
    struct wire_message m = {.magic = WIRE_MAGIC, .kind = WIRE_FETCH, .tag = FETCH_TAG, .count = 1, .flags = flags};
    size_t n = wire_length(&m);
    inboxes--;
    memcpy(inbox[inboxes].bytes, &m, n);
    inbox[inboxes].done(inbox[inboxes].user, 0, ASKER, n);
}

/* --- tests --- */

static void test_waits(void)
{
    struct ring_message m;
    begin_flight();
    bring_fetch(0);
    if (ring_take(&home.hold->ring.shared->to_server, &m))
        bail_out("the server got no question");
    is_int(m.kind, RING_SERVE, "the server gets the question of a peer");
    m.kind = RING_REPLY;
    m.status = -EAGAIN;
    flight_take(flight, &m);
    is_uint(said[WIRE_WAIT][ASKER], 1, "it must wait, and the peer is told so at once");
    for (unsigned i = 0; i < 8; i++) {
        write_news(&(struct node_news){.held = 1});
        pass_time(TIMEOUT / 4);
        pass_time(0); /* the first look has seen the news */
    }
    is_uint(said[WIRE_WAIT][ASKER], 9, "and repeatedly while the server writes its news");
    pass_time(TIMEOUT / 4);
    is_uint(said[WIRE_WAIT][ASKER], 10, "one more time after the last ones");
    for (int i = 0; i < 8; i++)
        pass_time(TIMEOUT / 4);
    is_uint(said[WIRE_WAIT][ASKER], 10, "but not for a server that has stopped");
    end_flight();
}

static void test_news(void)
{
    struct node_news news = {.held = 1};
    begin_flight();
    write_news(&news);
    pass_time(SECOND);
    is_uint(said[WIRE_NEWS][ASKER] + said[WIRE_NEWS][OTHER], 2, "all peers get the news");
    news.held = 2;
    write_news(&news);
    pass_time(MILLISECOND);
    is_uint(said[WIRE_NEWS][ASKER], 1, "the next ones only after a second");
    news.turn = 1;
    write_news(&news);
    pass_time(MILLISECOND);
    is_uint(said[WIRE_NEWS][ASKER], 2, "at once if the node has turned");
    news.moved = 1;
    write_news(&news);
    pass_time(MILLISECOND);
    is_uint(said[WIRE_NEWS][ASKER], 3, "or if its samples have moved");
    end_flight();
}

static void test_busy_peers(void)
{
    struct node_news news = {.held = 1};
    struct node_news got = {0};
    begin_flight();
    holds = true;
    write_news(&news);
    pass_time(SECOND);
    news.held = 2;
    write_news(&news);
    pass_time(2 * SECOND);
    is_uint(said[WIRE_NEWS][ASKER], 1, "a peer that is still getting news gets no others");
    holds = false;
    write_news(&news);
    pass_time(2 * SECOND);
    wire_news_to(&got, &news_at[ASKER]);
    is_uint(got.held, 2, "when it has got them, it gets the last ones, although they have not changed");
    write_news(&news);
    pass_time(2 * SECOND);
    is_uint(said[WIRE_NEWS][ASKER], 2, "once");
    end_flight();
}

static void test_without_server(void)
{
    begin_flight();
    home.state = HOME_LOST;
    flight_look(flight);
    bring_fetch(FETCH_SHARED);
    is_int(failure, -EHOSTUNREACH, "no server: a question for the courier alone is refused at once");
    is_uint(said[WIRE_WAIT][ASKER], 0, "nobody waits");
    bring_fetch(0);
    is_uint(said[WIRE_WAIT][ASKER], 1, "another question waits for the next server");
    end_flight();
}

int main(void)
{
    clock_stand();
    test_waits();
    test_news();
    test_busy_peers();
    test_without_server();
    return done_testing();
}
