/* A peer that answers bells and no PING is lost, but not while TCP may still try again. */
#include "mpi/mail.h"

#include "fs/base/clock.h"
#include "tests/lib/tap.h"

enum { PEER = 1, NODES = 3, TIMEOUT_S = 2 };

static bool reached = true;
static uint64_t answered; /* bells: for how long */
static unsigned pings;

bool doorbell_reaches(const struct doorbell *doorbell, uint32_t node)
{
    (void)doorbell, (void)node;
    return reached;
}

uint64_t doorbell_answered(const struct doorbell *doorbell, uint32_t node)
{
    (void)doorbell, (void)node;
    return answered;
}

void doorbell_ring(struct doorbell *doorbell, uint32_t node)
{
    (void)doorbell, (void)node;
}

int post_send(struct posts *post, const void *bytes, size_t n, uint32_t to, int tag, post_done *done, void *user)
{
    struct wire_message m;
    (void)post;
    pings += tag == TAG_MESSAGE && wire_message_parse(bytes, n, &m) == 0 && m.kind == WIRE_PING && to == PEER;
    done(user, 0, 0, 0);
    return 0;
}

/* Looks once a second from `from` to `to`, seconds since a time at which all was well; bells are answered since
 * `bells`. Returns when the peer was lost, or -1. */
static int look(struct mail *m, uint64_t begin, int from, int to, int bells)
{
    for (int s = from; s <= to; s++) {
        answered = s > bells ? (uint64_t)(s - bells) * SECOND : 0;
        bool lost = mail_is_lost(m, PEER, TIMEOUT_S * SECOND, begin + (uint64_t)s * SECOND);
        mail_ring(m);
        if (lost)
            return s;
    }
    return -1;
}

static struct mail begin_mail(void)
{
    struct mail m;
    if (mail_init(&m, 0, NODES, NULL, NULL))
        bail_out("no memory");
    pings = 0;
    return m;
}

static void test_lost(void)
{
    uint64_t begin = clock_now();
    struct mail m = begin_mail();
    is_int(look(&m, begin, 0, 60, -100), 30, "bells are answered, and no PING: lost after half a minute");
    is_uint(pings, 1, "one PING is enough");
    mail_fini(&m);
    m = begin_mail();
    is_int(look(&m, begin, 0, 600, 1000), -1, "a peer that answers no bells either is not there");
    is_uint(pings, 1, "and gets one PING");
    mail_fini(&m);
}

static void test_answers(void)
{
    uint64_t begin = clock_now();
    struct mail m = begin_mail();
    int lost = -1;
    for (int s = 0; s < 100 && lost < 0; s++) {
        lost = look(&m, begin, s, s, -100);
        mail_heard(&m, PEER);
    }
    is_int(lost, -1, "a peer that answers stays");
    is_uint(pings, 20, "it is asked every few seconds");
    mail_fini(&m);
    m = begin_mail();
    reached = false;
    is_int(look(&m, begin, 0, 100, -100), -1, "one without a socket is not asked");
    is_uint(pings, 0, "at all");
    reached = true;
    mail_fini(&m);
}

/* A link is cut from 0 to 52 s. What was sent at 0 TCP sends again after 51 and 102 s; the PING was sent at 4. */
static void test_cut(void)
{
    uint64_t begin = clock_now();
    struct mail m = begin_mail();
    is_int(look(&m, begin, 4, 103, 52), -1, "after a cut TCP is given the time to send again");
    mail_heard(&m, PEER);
    is_int(look(&m, begin, 104, 133, 52), -1, "which has answered it");
    mail_fini(&m);
    m = begin_mail();
    is_int(look(&m, begin, 4, 200, 52), 109, "where it does not, the peer is lost");
    mail_fini(&m);
}

int main(void)
{
    test_lost();
    test_answers();
    test_cut();
    return done_testing();
}
