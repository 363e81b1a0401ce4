/* Compares this node's lists with other nodes' lists.
 *
 * Threads: workers do so for requests. One thread of its own looks at the nodes in `wanted`; threads of peers add to
 * these, and read records and lists. */
#include "fs/control/list-sharing.h"

#include "fs/control/control-private.h"
#include "fs/control/index-parts.h"
#include "fs/control/world-view.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/base/thread.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { KEY_RECORDS, KEY_LOOK }; /* keys of blobs */
enum { SPREAD_S = 60, LOOK_AGAIN_MS = 500, LOOKS = 60, ASK_AGAIN_MS = 20, TELL_AGAIN = 50, NAMED = 4 };

struct sharing {
    struct control *control;
    pthread_t thread;
    bool running;
    pthread_mutex_t lock;  /* guards all fields below */
    pthread_cond_t wanted; /* signals: there is a node to look at, or the end */
    bool stopping;
    bool all;                              /* look at all nodes, */
    uint64_t node[(NODES_MOST + 63) / 64]; /* or at these */
    struct lackings lackings;              /* has its own lock */
};

/* The records of another node. */
struct records {
    struct samples_record record[SAMPLES_RECORDS];
    uint32_t count;
};

static int fetch_records(struct control *control, uint32_t node, uint64_t key, void *piece, struct records *r)
{
    uint64_t length;
    int error = peers_blob(control->config.peers, &(struct blob_question){node, key, 0}, piece, &length);
    r->count = 0;
    if (error)
        return error == -ENOENT ? 0 : error;
    if (length % sizeof *r->record || length > sizeof r->record)
        return -EBADMSG;
    memcpy(r->record, piece, length);
    r->count = (uint32_t)(length / sizeof *r->record);
    return 0;
}

/* Fetch into memory: nothing of it is trusted yet. */
static int fetch_list(struct control *control, uint32_t node, const struct samples_record *record, void *piece, int fd)
{
    const uint64_t files = SAMPLES_HEADER + record->count * sizeof(uint32_t);
    const uint64_t records = SAMPLES_HEADER + record->count * sizeof(struct record);
    uint64_t key = digest_head(&record->digest), length = 1, said;
    for (uint64_t at = 0; at < length; at += BLOB_PIECE) {
        int error = peers_blob(control->config.peers, &(struct blob_question){node, key, at}, piece, &said);
        if (!error && (at > 0 ? said != length : said != files && said != records))
            error = -EBADMSG;
        if (error)
            return error;
        length = said;
        error = file_write_all(fd, piece, length - at < BLOB_PIECE ? length - at : BLOB_PIECE);
        if (error)
            return error;
    }
    return 0;
}

static int take_record(struct control *control, uint32_t node, const struct samples_record *record, void *piece)
{
    CLEANUP_CLOSE int fd = memfd_create("dealfs-samples", MFD_CLOEXEC);
    int error = fd < 0 ? -errno : record->count > 0 ? fetch_list(control, node, record, piece, fd) : 0;
    if (!error)
        error = samples_table_take(control->samples, record, fd);
    if (error)
        log_limited(LOG_LEVEL_WARNING, 1, "sample list %s of node %" PRIu32 ": %s", record->name, node,
                    error == -EDQUOT  ? "not taken: this node already has the maximum number of lists"
                    : error == -E2BIG ? "not taken: the lists of this node would be too large"
                                      : strerror(-error));
    else
        log_info("sample list %s: %s, from node %" PRIu32, record->name, record->count > 0 ? "taken" : "removed", node);
    return error;
}

/* Take over the removals, or the other records. One record's failure does not stop the following ones. */
static int take_records(struct control *control, uint32_t node, const struct records *r, bool removals, void *piece)
{
    int worst = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        if ((r->record[i].count == 0) != removals || !samples_table_wants(control->samples, &r->record[i]))
            continue;
        int error = take_record(control, node, &r->record[i], piece);
        if (error && error != -EDQUOT && error != -E2BIG) /* after these two errors, another look would not help */
            worst = error;
    }
    return worst;
}

/* Look at one node; `piece` has room for one piece. KEY_LOOK also makes that node look at this one. */
static int look_at(struct control *control, uint32_t node, uint64_t key, void *piece)
{
    CLEANUP_FREE struct records *r = malloc(sizeof *r);
    int error = r ? fetch_records(control, node, key, piece, r) : -ENOMEM;
    if (error)
        return error;
    int removed = take_records(control, node, r, true, piece); /* first: removals make room */
    error = take_records(control, node, r, false, piece);
    return error ? error : removed;
}

static uint32_t count_nodes(struct control *control, uint32_t *me)
{
    CLEANUP_WORLD_VIEW struct world_view view = world_view_get(control);
    *me = view.me;
    return view.courier ? view.nodes : 0;
}

static bool is_in_world(struct control *control)
{
    CLEANUP_WORLD_VIEW struct world_view view = world_view_get(control);
    return view.known || view.lost;
}

int sharing_look(struct control *control, const struct asker *asker)
{
    if (!is_in_world(control))
        return 0;
    if (control->config.peers)
        peers_await_courier(control->config.peers, asker->gave_up, asker->user);
    CLEANUP_FREE void *piece = malloc(BLOB_PIECE);
    uint32_t me, nodes = count_nodes(control, &me);
    int worst = !piece ? -ENOMEM : nodes == 0 ? -ENOTCONN : 0;
    for (uint32_t node = 0; piece && node < nodes; node++) {
        int error = node == me ? 0 : asker_gave_up(asker) ? -EINTR : look_at(control, node, KEY_RECORDS, piece);
        worst = error ? error : worst;
    }
    return worst;
}

/* --- the thread --- */

/* Take the nodes to look at. The caller holds the lock. False: there are none. */
static bool take_wanted(struct sharing *s, uint32_t nodes, uint32_t me, uint64_t *node, uint64_t *key)
{
    bool some = false;
    for (uint32_t v = 0; v < nodes; v++) {
        bool wanted = v != me && (s->all || s->node[v / 64] >> v % 64 & 1);
        node[v / 64] |= (uint64_t)wanted << v % 64;
        some |= wanted;
    }
    *key = s->all ? KEY_LOOK : KEY_RECORDS; /* while this node was away, its own lists may have changed as well */
    s->all = false;
    memset(s->node, 0, sizeof s->node);
    return some;
}

static bool is_stopping(struct sharing *s)
{
    LOCK_SCOPE(&s->lock);
    return s->stopping;
}

/* A node that cannot be asked is tried again: its server may have just died. */
static void look_at_wanted(struct sharing *s, uint32_t nodes, uint64_t *node, uint64_t key, void *piece)
{
    bool left = true;
    for (int looks = 0; left && looks < LOOKS; looks++) {
        left = false;
        for (uint32_t v = 0; v < nodes && !is_stopping(s); v++)
            if (node[v / 64] >> v % 64 & 1) {
                int error = look_at(s->control, v, key, piece);
                if (!error || error == -ENOTCONN)
                    node[v / 64] &= ~(UINT64_C(1) << v % 64);
                left |= node[v / 64] != 0;
            }
        LOCK_SCOPE(&s->lock);
        uint64_t until = clock_now() + LOOK_AGAIN_MS * MILLISECOND;
        while (left && !s->stopping && !s->all && cond_wait_until(&s->wanted, &s->lock, until))
            ;
        left &= !s->stopping && !s->all;
    }
}

static bool has_wanted(const struct sharing *s)
{
    bool some = s->all;
    for (size_t i = 0; i < sizeof s->node / sizeof *s->node && !some; i++)
        some = s->node[i] != 0;
    return some;
}

/* One round. Called with the lock, which is released meanwhile. Without memory, tries again a little later. */
static void look_round(struct sharing *s)
{
    uint64_t node[(NODES_MOST + 63) / 64] = {0}, key;
    pthread_mutex_unlock(&s->lock);
    CLEANUP_FREE void *piece = malloc(BLOB_PIECE);
    uint32_t me, nodes = count_nodes(s->control, &me);
    pthread_mutex_lock(&s->lock);
    if (!piece) {
        cond_wait_until(&s->wanted, &s->lock, clock_now() + LOOK_AGAIN_MS * MILLISECOND);
        return;
    }
    bool some = take_wanted(s, nodes, me, node, &key);
    pthread_mutex_unlock(&s->lock);
    if (some && control_filled(s->control))
        look_at_wanted(s, nodes, node, key, piece);
    pthread_mutex_lock(&s->lock);
}

static void *sharing_main(void *user)
{
    struct sharing *s = user;
    LOCK_SCOPE(&s->lock);
    while (!s->stopping)
        if (has_wanted(s))
            look_round(s);
        else
            pthread_cond_wait(&s->wanted, &s->lock);
    return NULL;
}

int sharing_create(struct control *control, struct sharing **sharing)
{
    struct sharing *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->control = control;
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->lackings.lock, NULL);
    cond_init(&s->wanted);
    int error = thread_create(&s->thread, "sample-lists", sharing_main, s);
    s->running = !error;
    *sharing = s;
    return error;
}

void sharing_destroy(struct sharing *s)
{
    if (!s)
        return;
    if (s->running)
        thread_stop(s->thread, &s->lock, &s->wanted, &s->stopping);
    pthread_cond_destroy(&s->wanted);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->lackings.lock);
    free(s);
}

/* --- from other nodes --- */

static void want(struct sharing *s, bool all, uint32_t node)
{
    LOCK_SCOPE(&s->lock);
    s->all |= all;
    if (!all && node < NODES_MOST)
        s->node[node / 64] |= UINT64_C(1) << node % 64;
    pthread_cond_signal(&s->wanted);
}

void control_joined(void *user)
{
    struct control *control = user;
    lackings_clear(&control->sharing->lackings);
    want(control->sharing, true, 0);
}

ssize_t control_blob(void *user, const struct blob_question *q, void *to, size_t room, uint64_t *length)
{
    struct control *control = user;
    if (!control_filled(control))
        return -ENOENT;
    if (index_key_is(q->key))
        return index_parts_bytes(control->parts, q, to, room, length);
    if (q->key > KEY_LOOK)
        return samples_table_bytes(control->samples, q->key, q->offset, to, room, length);
    if (q->key == KEY_LOOK)
        want(control->sharing, false, q->node);
    _Static_assert(sizeof(struct samples_record[SAMPLES_RECORDS]) <= BLOB_PIECE, "records are one piece");
    if (q->offset > 0 || room < sizeof(struct samples_record[SAMPLES_RECORDS]))
        return -ENOENT;
    *length = samples_table_records(control->samples, to) * sizeof(struct samples_record);
    return (ssize_t)*length;
}

/* --- to other nodes --- */

static const struct samples_record *find_record(const struct records *r, const char *name)
{
    for (uint32_t i = 0; i < r->count; i++)
        if (strncmp(r->record[i].name, name, sizeof r->record[i].name) == 0)
            return &r->record[i];
    return NULL;
}

/* All memory that sharing_spread needs. */
struct spreading {
    struct control *control;
    struct samples_record record; /* what all nodes should have */
    struct records told;          /* what a node reported */
    uint64_t until;
    bool missing[NODES_MOST];
    char piece[BLOB_PIECE];
};

/* Does the node have the list, or one that replaces it? */
static bool has_record(struct spreading *p, uint32_t node, uint64_t key)
{
    if (fetch_records(p->control, node, key, p->piece, &p->told))
        return false;
    const struct samples_record *r = find_record(&p->told, p->record.name);
    return r && samples_record_compare(r, &p->record) >= 0;
}

static void name_missing(const struct spreading *p, uint32_t nodes, struct str *why)
{
    CLEANUP_WORLD_VIEW struct world_view view = world_view_get(p->control);
    uint32_t named = 0, left = 0;
    str_adds(why, "this node has done it; these other nodes do it when they can be reached:");
    for (uint32_t v = 0; v < nodes; v++) {
        left += p->missing[v] && named == NAMED;
        if (!p->missing[v] || named == NAMED)
            continue;
        str_addf(why, "%s node %" PRIu32, named++ ? "," : "", v);
        if (view.peer && v < view.nodes) {
            str_adds(why, " (");
            str_add_printable(why, view.peer[v].node.host, strlen(view.peer[v].node.host));
            str_adds(why, ")");
        }
    }
    if (left)
        str_addf(why, " and %" PRIu32 " more", left);
}

/* Number of nodes that lack it. A lost node gets it when it joins again. */
static uint32_t ask_missing(struct spreading *p, uint32_t nodes, uint64_t key, bool *hopeless)
{
    CLEANUP_WORLD_VIEW struct world_view view = world_view_get(p->control);
    uint32_t left = 0;
    *hopeless = true;
    for (uint32_t v = 0; v < nodes; v++) {
        bool lost = !view.peer || v >= view.nodes || view.peer[v].state == PEER_LOST;
        p->missing[v] = p->missing[v] && (lost || clock_now() > p->until || !has_record(p, v, key));
        left += p->missing[v];
        *hopeless &= !p->missing[v] || lost;
    }
    return left;
}

static int fail_spread(const struct spreading *p, uint32_t nodes, struct str *why)
{
    lackings_note(&p->control->sharing->lackings, p->record.name, p->missing, nodes);
    name_missing(p, nodes, why);
    return -EHOSTUNREACH;
}

/* The nodes of the last world, if it has ended; 0: it has not. */
static uint32_t count_ended(struct control *control, uint32_t *me)
{
    CLEANUP_WORLD_VIEW struct world_view view = world_view_get(control);
    *me = view.me;
    return view.known && !view.courier ? view.nodes : 0;
}

static int spread_record(struct spreading *p, const struct asker *asker)
{
    peers_await_courier(p->control->config.peers, asker->gave_up, asker->user);
    uint32_t me, nodes = count_nodes(p->control, &me), ended = count_ended(p->control, &me);
    bool hopeless;
    p->until = clock_now() + SPREAD_S * SECOND;
    for (uint32_t v = 0; v < nodes || v < ended; v++)
        p->missing[v] = v != me;
    if (ended > 1)
        return fail_spread(p, ended, asker->why);
    if (nodes < 2)
        return 0;
    /* A node may miss the request, or get a damaged answer: it is asked again each second. */
    for (int asks = 0;; asks++) {
        uint64_t key = asks % TELL_AGAIN == 0 ? KEY_LOOK : KEY_RECORDS;
        if (ask_missing(p, nodes, key, &hopeless) == 0) {
            lackings_note(&p->control->sharing->lackings, p->record.name, p->missing, nodes);
            return 0;
        }
        if (asker_gave_up(asker))
            return -EINTR;
        if (hopeless || clock_now() > p->until)
            return fail_spread(p, nodes, asker->why);
        clock_sleep(ASK_AGAIN_MS * MILLISECOND);
    }
}

int sharing_prepare(struct control *control, struct spreading **spreading, struct str *why)
{
    *spreading = NULL;
    if (!control->config.peers)
        return 0;
    *spreading = malloc(sizeof **spreading);
    if (!*spreading)
        return str_no_memory(why);
    (*spreading)->control = control;
    return 0;
}

int sharing_spread(struct spreading *p, const char *name, const struct asker *asker)
{
    if (!p)
        return 0;
    p->told.count = samples_table_records(p->control->samples, p->told.record);
    const struct samples_record *own = find_record(&p->told, name);
    if (!own)
        return 0;
    p->record = *own;
    return spread_record(p, asker);
}

uint32_t sharing_lacking(struct control *control, const char *name, uint32_t node[LACKING_MOST])
{
    return lackings_find(&control->sharing->lackings, name, node);
}
