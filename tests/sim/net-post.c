/* Simulates mpi/post.h: a message is received when it has arrived and a receive for it was posted. */
#include "tests/sim/net-inside.h"

#include "tests/lib/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RENDEZVOUS = 64 << 10 };

int post_create(struct posts **post)
{
    struct posts *p = calloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    p->rank = net_me;
    STAILQ_INIT(&p->list);
    net_me->posts = p;
    *post = p;
    return 0;
}

void post_destroy(struct posts *post)
{
    struct posted *p;
    if (!post)
        return;
    post->rank->posts = NULL;
    while ((p = STAILQ_FIRST(&post->list))) {
        STAILQ_REMOVE_HEAD(&post->list, next);
        if (!p->send || p->ended)
            free(p);
    }
    free(post);
}

static struct posted *post_add(struct posts *post, const struct posted *what)
{
    struct posted *p = malloc(sizeof *p);
    if (!p)
        return NULL;
    *p = *what;
    p->rank = post->rank;
    STAILQ_INSERT_TAIL(&post->list, p, next);
    return p;
}

int post_receive(struct posts *post, void *bytes, size_t n, int from, int tag, post_done *done, void *user)
{
    const struct posted what = {.bytes = bytes, .n = n, .from = from, .tag = tag, .done = done, .user = user};
    return post_add(post, &what) ? 0 : -ENOMEM;
}

int post_send(struct posts *post, const void *bytes, size_t n, uint32_t to, int tag, post_done *done, void *user)
{
    const struct posted what = {.send = true, .bytes = (void *)bytes, .n = n, .tag = tag, .done = done, .user = user};
    struct parcel *parcel = calloc(1, sizeof *parcel);
    struct posted *p = parcel ? post_add(post, &what) : NULL;
    if (!p) {
        free(parcel);
        return -ENOMEM;
    }
    *parcel = (struct parcel){
        .from = post->rank->number, .to = to, .tag = tag, .n = n, .sent = p, .world = post->rank->world};
    if (n < RENDEZVOUS) {
        parcel->bytes = malloc(n + 1);
        if (!parcel->bytes)
            bail_out("no memory for a message");
        memcpy(parcel->bytes, bytes, n);
    }
    post->sends++;
    net_send(parcel);
    return 0;
}

static struct posted *find_receive(struct posts *post, const struct parcel *parcel)
{
    struct posted *p;
    STAILQ_FOREACH(p, &post->list, next)
    if (!p->send && !p->ended && p->tag == parcel->tag && (p->from == POST_ANY || p->from == (int)parcel->from))
        return p;
    return NULL;
}

/* Whether its sender is to be woken. */
static bool receive(struct posted *p, struct parcel *parcel)
{
    p->got = parcel->n < p->n ? parcel->n : p->n;
    p->status = parcel->n > p->n ? -EMSGSIZE : 0;
    p->source = parcel->from;
    memcpy(p->bytes, parcel->bytes ? parcel->bytes : parcel->sent->bytes, p->got);
    net_ended(p);
    if (!parcel->bytes)
        net_ended(parcel->sent);
    return !parcel->bytes;
}

static void match_arrived(struct posts *post)
{
    struct net_rank *r = post->rank;
    uint32_t senders = 0;
    for (struct parcel *parcel = STAILQ_FIRST(&r->arrived), *next; parcel; parcel = next) {
        next = STAILQ_NEXT(parcel, next);
        struct posted *p = parcel->lost ? NULL : find_receive(post, parcel);
        if (!p && !parcel->lost)
            continue;
        STAILQ_REMOVE(&r->arrived, parcel, parcel, next);
        if (p && receive(p, parcel))
            senders |= 1u << parcel->from;
        free(parcel->bytes);
        free(parcel);
    }
    for (uint32_t i = 0; senders; i++, senders >>= 1)
        if (senders & 1)
            net_wake_sockets(&r->world->rank[i], r->number);
}

int post_progress(struct posts *post)
{
    int ended = 0;
    struct posted *p, *next;
    net_drain(post->rank->sockets);
    match_arrived(post);
    for (p = STAILQ_FIRST(&post->list); p && post->rank->ended; p = next) {
        next = STAILQ_NEXT(p, next);
        if (!p->ended)
            continue;
        post->rank->ended--;
        STAILQ_REMOVE(&post->list, p, posted, next);
        post->sends -= p->send;
        p->done(p->user, p->status, p->source, p->got);
        free(p);
        ended++;
        next = STAILQ_FIRST(&post->list); /* `done` may have posted and cancelled others */
    }
    return ended;
}

int post_look(struct posts *post)
{
    (void)post;
    return 0;
}

unsigned post_sends(const struct posts *post)
{
    return post->sends;
}
