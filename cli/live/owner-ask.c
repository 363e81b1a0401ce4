/* Gets a container's records from the node that owns it.
 *
 * The question is repeated until the answer is complete, because a server never waits for another node's work. The
 * pause between questions doubles up to ASK_MOST_MS. If a node makes no progress with any container for PATIENCE_S, the
 * caller parses the container itself; so it does whenever an answer is missing or malformed. */
#include "cli/live/owner-ask.h"

#include "cli/live/client.h"
#include "fs/base/clock.h"

#include <errno.h>
#include <string.h>

enum { ASK_LEAST_MS = 2, ASK_MOST_MS = 64, PATIENCE_S = 30 };

static int ask_piece(const struct owner_question *q, uint64_t piece, struct str *reply)
{
    CLEANUP_STR struct str line = STR_INIT, why = STR_INIT;
    str_addf(&line, "index file=%u format=%s text=%s piece=%llu\n", q->file, q->format, q->text ? "yes" : "no",
             (unsigned long long)piece);
    str_clear(reply);
    return client_wait(q->live, &line, -1, reply, &why) ? -EREMOTE : 0;
}

static int ask_first(const struct owner_question *q, struct str *reply, struct index_answer *answer)
{
    if (ask_piece(q, 0, reply) || reply->length < sizeof *answer)
        return -EREMOTE;
    memcpy(answer, reply->data, sizeof *answer);
    bool whole = answer->state == INDEX_DONE || answer->state == INDEX_REFUSED;
    uint64_t all = sizeof *answer + answer->length;
    if (answer->state >= INDEX_STATES || answer->format[sizeof answer->format - 1] || all < answer->length ||
        (whole && reply->length != (all < INDEX_PIECE ? all : INDEX_PIECE)))
        return -EREMOTE;
    return answer->state == INDEX_HERE ? -EREMOTE : 0;
}

static int await_answer(const struct owner_question *q, struct str *reply, struct index_answer *answer)
{
    uint64_t pause = ASK_LEAST_MS, worked = 0, since = clock_now();
    int error;
    while (!(error = ask_first(q, reply, answer)) && answer->state == INDEX_RUNS) {
        if (!q->seen(q->user, answer->seen))
            return -EINTR;
        if (answer->worked != worked)
            since = clock_now();
        else if (clock_now() > since + clock_bound("DEALFS_INDEX_PATIENCE", PATIENCE_S))
            return -EREMOTE;
        worked = answer->worked;
        clock_sleep(pause * MILLISECOND);
        pause = pause * 2 < ASK_MOST_MS ? pause * 2 : ASK_MOST_MS;
    }
    return error;
}

static int take_refusal(const struct index_answer *answer, const struct str *reply, struct str *why)
{
    if (answer->error != -EBADMSG && answer->error != -ENOTSUP && answer->error != -EFBIG)
        return -EREMOTE;
    str_add_printable(why, reply->data + sizeof *answer, reply->length - sizeof *answer);
    return answer->error;
}

int owner_ask(const struct owner_question *q, struct str *why)
{
    CLEANUP_STR struct str reply = STR_INIT;
    struct index_answer answer;
    int error = await_answer(q, &reply, &answer);
    if (error)
        return error;
    if (answer.state == INDEX_REFUSED)
        return take_refusal(&answer, &reply, why);
    uint64_t all = sizeof answer + answer.length, got = reply.length;
    error = q->take(q->user, &answer, reply.data + sizeof answer, reply.length - sizeof answer);
    for (uint64_t piece = 1; got < all && !error; piece++) {
        if (!q->seen(q->user, answer.seen))
            return -EINTR;
        error = ask_piece(q, piece, &reply);
        if (!error && reply.length != (all - got < INDEX_PIECE ? all - got : INDEX_PIECE))
            error = -EREMOTE;
        if (!error)
            error = q->take(q->user, &answer, reply.data, reply.length);
        got += reply.length;
    }
    return error;
}

uint32_t owner_nodes(const struct live *live)
{
    CLEANUP_STR struct str text = STR_INIT;
    uint32_t nodes = 0;
    if (client_file(live, "nodes", &text) == 0)
        for (size_t i = 0; i < text.length; i++)
            nodes += text.data[i] == '\n';
    return nodes ? nodes : 1;
}
