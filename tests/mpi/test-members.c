/* Whether mounted nodes fit together, from what they send of themselves. The messages are made up here. */
#include "mpi/members.h"

#include "fs/base/cleanup.h"
#include "mpi/ask.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 3 };

static struct wire_member sent[NODES];
static int collect_error;
static unsigned refusals;
static char last[256]; /* the line of the last refusal */

int agree_on(const struct nodes *nodes, int error, const struct str *why)
{
    (void)nodes, (void)why;
    return error ? -ECANCELED : 0;
}

int agree_collect(const struct nodes *nodes, int error, const struct str *why, const void *mine, size_t n, void *all)
{
    (void)mine;
    if (collect_error || agree_on(nodes, error, why))
        return -ECANCELED;
    void *got = malloc(nodes->count * n);
    if (!got)
        bail_out("no memory");
    memcpy(got, sent, nodes->count * n);
    *(void **)all = got;
    return 0;
}

int agree_refuse(const struct nodes *nodes, const char *format, ...)
{
    va_list args;
    (void)nodes;
    va_start(args, format);
    vsnprintf(last, sizeof last, format, args);
    va_end(args);
    refusals++;
    return -ECANCELED;
}

const char *agree_name(const struct nodes *nodes, uint32_t node)
{
    static const char *const name[NODES] = {"node 0", "node 1", "node 2"};
    (void)nodes;
    return name[node];
}

int ask_hello(struct home *home, struct str *why)
{
    (void)home, (void)why;
    return 0;
}

/* Nodes that fit. */
static void reset_nodes(void)
{
    collect_error = 0;
    for (int i = 0; i < NODES; i++) {
        sent[i] = (struct wire_member){.magic = WIRE_MAGIC, .state = MEMBER_LIVE, .options = 5, .extents = 6};
        snprintf(sent[i].node.id, sizeof sent[i].node.id, "%032x", (unsigned)i);
        snprintf(sent[i].node.host, sizeof sent[i].node.host, "host%d", i);
    }
}

/* `blamed`: the node that the only refusal names; NULL: none. */
static void check(int error, const char *blamed, const char *what)
{
    struct home home = {.socket = -1};
    const struct arguments arguments = {.state = test_directory()};
    struct nodes nodes = {.count = NODES};
    struct members m = {.arguments = &arguments, .nodes = &nodes, .home = &home};
    refusals = 0;
    last[0] = '\0';
    is_int(members_gather_mounted(&m), error, "%s", what);
    ok(refusals == (blamed != NULL) && (!blamed || strncmp(last, blamed, strlen(blamed)) == 0), "one line: %s", last);
    members_fini(&m);
    reset_nodes();
}

int main(void)
{
    reset_nodes();
    check(0, NULL, "nodes that fit");
    collect_error = -ECANCELED;
    check(-ECANCELED, NULL, "a node that has failed has said so");
    sent[1].magic++;
    check(-ECANCELED, "node 1", "a malformed description");
    sent[2].node.id[0] = '\0';
    check(-ECANCELED, "node 2", "a mounted node without an id");
    sent[2].catalog.byte[0]++;
    check(-ECANCELED, "node 2", "another catalog");
    sent[1].extents++;
    check(-ECANCELED, "node 1", "another number of extents");
    for (int i = 0; i < NODES; i++)
        sent[i].extents = MESSAGE_HOLDERS_MOST + 1;
    check(-ECANCELED, "the dataset has 2147483649 extents", "more extents than could be sent when data is cached");
    for (int i = 0; i < NODES; i++) {
        sent[i].extents = MESSAGE_HOLDERS_MOST / 3 + 1;
        sent[i].groups = 3;
    }
    check(-ECANCELED, "the dataset has 715827883 extents", "in all groups together");
    for (int i = 0; i < NODES; i++)
        sent[i].extents = MESSAGE_HOLDERS_MOST;
    check(0, NULL, "as many as can be sent");
    sent[1].options++;
    check(-ECANCELED, "node 1", "other options");
    memcpy(&sent[2].node.id, &sent[0].node.id, sizeof sent[2].node.id);
    check(-ECANCELED, "node 2", "the id of another node");
    return done_testing();
}
