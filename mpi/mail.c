#include "mpi/mail.h"

#include "fs/base/clock.h"
#include "fs/base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PING_EVERY_MS = 4000, PING_A_NODE_MS = 16, PING_LOST_S = 30 };

struct letter { /* a message that is being sent */
    struct wire_message message;
    bool *busy;
};

int mail_init(struct mail *m, uint32_t me, uint32_t nodes, struct posts *post, struct doorbell *doorbell)
{
    *m = (struct mail){.me = me, .nodes = nodes, .post = post, .doorbell = doorbell};
    m->peer = calloc(nodes, sizeof *m->peer);
    m->bell = calloc(nodes, sizeof *m->bell);
    m->ping_lost = clock_bound("DEALFS_PING_LOST", PING_LOST_S);
    return m->peer && m->bell ? 0 : -ENOMEM;
}

void mail_fini(struct mail *m)
{
    free(m->peer);
    free(m->bell);
}

void mail_fail(struct mail *m, int error, const char *what)
{
    if (!m->broken && error != -EIO) /* -EIO has already been reported */
        log_error("%s: %s", what, strerror(-error));
    m->broken = true;
}

static void letter_left(void *user, int status, uint32_t from, size_t n)
{
    struct letter *letter = user;
    (void)status, (void)from, (void)n;
    if (letter->busy)
        *letter->busy = false;
    free(letter);
}

void mail_say(struct mail *m, uint32_t to, const struct wire_message *message, bool *busy)
{
    struct letter *letter = malloc(sizeof *letter);
    int error = letter ? 0 : -ENOMEM;
    if (!error) {
        *letter = (struct letter){*message, busy};
        letter->message.magic = WIRE_MAGIC;
        error = post_send(m->post, &letter->message, wire_length(message), to, TAG_MESSAGE, letter_left, letter);
    }
    if (error) {
        free(letter);
        mail_fail(m, error, "send a message");
        return;
    }
    if (busy)
        *busy = true;
    if (message->kind != WIRE_NEWS)
        mail_want_bell(m, to);
}

void mail_say_all(struct mail *m, const struct wire_message *message)
{
    for (uint32_t i = 0; i < m->nodes; i++)
        if (i != m->me && !m->peer[i].quit)
            mail_say(m, i, message, NULL);
}

void mail_want_bell(struct mail *m, uint32_t node)
{
    if (!m->peer[node].ring)
        m->bell[m->bells++] = node;
    m->peer[node].ring = true;
}

void mail_ring(struct mail *m)
{
    while (m->bells > 0) {
        uint32_t node = m->bell[--m->bells];
        m->peer[node].ring = false;
        doorbell_ring(m->doorbell, node);
    }
}

static uint64_t ping_every(const struct mail *m)
{
    return (PING_EVERY_MS + (uint64_t)m->nodes * PING_A_NODE_MS) * MILLISECOND;
}

bool mail_is_lost(struct mail *m, uint32_t node, uint64_t timeout, uint64_t now)
{
    struct mail_peer *peer = &m->peer[node];
    uint64_t most = 2 * timeout > m->ping_lost ? 2 * timeout : m->ping_lost;
    if (!peer->ping_at) {
        if (now < peer->ping_due || !doorbell_reaches(m->doorbell, node))
            return false;
        peer->ping_at = now;
        peer->ping_due = now + ping_every(m);
        mail_say(m, node, &(struct wire_message){.kind = WIRE_PING}, NULL);
        return false;
    }
    mail_want_bell(m, node);
    uint64_t silent = now - peer->ping_at, answered = doorbell_answered(m->doorbell, node);
    return silent >= most && answered >= most && answered >= silent / 2 + ping_every(m);
}

void mail_heard(struct mail *m, uint32_t from)
{
    m->peer[from].ping_at = 0;
}
