/* `stage`: fill the shards from the source, stop that, or report the progress of all nodes of the world.
 *
 *   1. The node that starts staging chooses a round: a number greater than all before (the time). It tells other nodes.
 *   2. Each node's news have the last round that it knows, so that reports about earlier rounds are recognised.
 *   3. A node that does not know the round after a while is told again.
 *   4. A server that dies leaves its round to the next one.
 *   5. Rounds are even; rounds of chosen files are odd. */
#include "fs/control/control-private.h"
#include "fs/control/stage-choice.h"
#include "fs/control/verbs.h"
#include "fs/control/world-view.h"

#include "fs/wire/handover.h"

#include "fs/base/clock.h"
#include "fs/base/json.h"
#include "fs/base/log.h"
#include "fs/world/layout.h"

#include <errno.h>
#include <string.h>

#define TELL_AGAIN (3 * SECOND)

static const char *const state_names[] = {
    [STAGE_IDLE] = "idle",       [STAGE_RUNNING] = "running", [STAGE_DONE] = "done",
    [STAGE_STOPPED] = "stopped", [STAGE_FAILED] = "failed",
};

/* Progress of all nodes that can be asked. */
struct whole {
    struct stage_progress sum;
    uint32_t nodes;
    uint32_t unheard; /* nodes that do not know this round */
    int own;          /* of this node */
    bool dealing;     /* all are done, and extents without an owner will be dealt next */
    const struct world_view *view;
    const struct peer_view *failed_at; /* the first other node with a failed file; NULL: none */
};

static void look_here(struct control *control, struct stage_progress *progress)
{
    memset(progress, 0, sizeof *progress);
    if (control_filled(control) && control->config.store)
        store_stage_progress(control->config.store, progress);
}

static void add_stage(struct json *json, const char *key, const struct stage_progress *p, const char *error)
{
    json_begin_object(json, key);
    json_string(json, "state", state_names[p->state]);
    json_string(json, "error", error);
    json_uints(json, {"failed", p->failed}, {"files", p->files}, {"files_total", p->files_total}, {"bytes", p->bytes},
               {"bytes_total", p->bytes_total}, {"kept", p->kept}, {"elapsed", p->elapsed});
}

void verb_stage_add_status(struct json *json, struct control *control)
{
    struct stage_progress p;
    look_here(control, &p);
    add_stage(json, "stage", &p, p.error ? control_error_text(p.error) : NULL);
    json_end_object(json);
}

/* --- the world's --- */

/* If staging runs anywhere, it runs; else the worst state of all. A node that knows the round but is idle was restarted
 * too often to continue. */
static int worse_state(int a, int b)
{
    static const int rank[] = {
        [STAGE_DONE] = 0, [STAGE_IDLE] = 1, [STAGE_STOPPED] = 2, [STAGE_FAILED] = 3, [STAGE_RUNNING] = 4};
    return rank[b] > rank[a] ? b : a;
}

static void add_peer(struct whole *whole, const struct peer_view *peer, uint64_t owned)
{
    const struct node_news *news = &peer->news;
    struct stage_progress *sum = &whole->sum;
    if (news->stage_round < sum->round) {
        whole->unheard++;
        sum->state = STAGE_RUNNING;
        if (stage_is_chosen(sum->round))
            return;
        if (news->staging != STAGE_DONE) { /* if done, these are the results of an earlier stage */
            sum->bytes_total += owned;
            return;
        }
    } else {
        sum->state = worse_state(sum->state, news->staging <= STAGE_FAILED ? (int)news->staging : STAGE_FAILED);
    }
    sum->bytes += news->stage_bytes;
    sum->bytes_total += news->stage_total;
    sum->files += news->stage_files;
    sum->files_total += news->stage_files_total;
    sum->kept += news->stage_kept;
    sum->failed += news->stage_failed;
    if (news->stage_failed && !whole->failed_at)
        whole->failed_at = peer;
}

static bool takes_part(const struct world_view *view, uint32_t node)
{
    return view->state != WORLD_ALONE && node != view->me && view->peer && view->peer[node].state != PEER_LOST;
}

/* Is everything staged, and could room be used for extents without an owner? Node 0 does that, while it can be
 * asked. */
static bool is_dealing(const struct world_view *view, const struct stage_progress *sum)
{
    if (sum->state != STAGE_DONE || view->state != WORLD_JOINED || stage_is_chosen(sum->round))
        return false;
    bool will_be = view->me == 0 || view->peer[0].state == PEER_GOOD;
    return view->turning || (will_be && view->settled < sum->round && layout_unowned(view->owners) > 0);
}

/* Sum of this node and of the others that have the same round. */
static void sum_up_world(struct control *control, const struct world_view *view, struct whole *whole)
{
    *whole = (struct whole){.view = view, .nodes = 1};
    look_here(control, &whole->sum);
    whole->own = (int)whole->sum.state;
    if (whole->sum.round == 0)
        return;
    uint64_t round = whole->sum.round, now = clock_realtime();
    for (uint32_t i = 0; i < view->nodes; i++) {
        if (!takes_part(view, i))
            continue;
        whole->nodes++;
        add_peer(whole, &view->peer[i], view->owners ? layout_owned(view->owners, i) : 0);
    }
    whole->dealing = is_dealing(view, &whole->sum);
    if (whole->dealing)
        whole->sum.state = STAGE_RUNNING;
    if (whole->sum.state == STAGE_RUNNING && whole->nodes > 1 && now > round)
        whole->sum.elapsed = now - round;
    if (whole->sum.state == STAGE_IDLE && whole->nodes > 1)
        whole->sum.state = STAGE_STOPPED;
}

static void add_whole(struct json *json, const struct whole *whole)
{
    CLEANUP_STR struct str error = STR_INIT;
    if (whole->sum.error)
        str_adds(&error, control_error_text(whole->sum.error));
    else if (whole->failed_at)
        str_addf(&error, "see `dealfs status` on %s", whole->failed_at->node.host);
    add_stage(json, NULL, &whole->sum, error.length && !error.failed ? error.data : NULL);
    json_uints(json, {"nodes", whole->nodes}, {"waiting_for", whole->unheard},
               {"chosen", stage_is_chosen(whole->sum.round)});
    json_end_object(json);
}

/* --- telling others --- */

static int tell_others(struct control *control, enum world_command command, uint64_t round)
{
    int error = control->config.peers ? peers_command(control->config.peers, command, round) : -ENOTCONN;
    if (!error)
        atomic_store(&control->stage_told, clock_now());
    return error == -ENOTCONN ? 0 : error;
}

static void tell_others_again(struct control *control, const struct whole *whole)
{
    bool over = whole->own == STAGE_STOPPED || whole->own == STAGE_FAILED;
    if (over || whole->unheard == 0 || clock_now() - atomic_load(&control->stage_told) < TELL_AGAIN)
        return;
    int error = tell_others(control, WORLD_STAGE, whole->sum.round);
    if (error)
        log_limited(LOG_LEVEL_WARNING, 1, "tell other nodes to stage: %s", strerror(-error));
}

/* For the next server. A repeated round is not new. */
static void note_round(struct control *control, uint64_t round)
{
    struct staging *staging = control->config.staging;
    if (!staging || (round && round <= atomic_load(&staging->round)))
        return;
    atomic_store(&staging->deaths, 0);
    atomic_store(&staging->round, round);
}

static int start_round(struct control *control, uint64_t round)
{
    CLEANUP_SAMPLES struct samples *chosen = NULL;
    int error = stage_choice_find(control, round, &chosen);
    if (!error)
        error = store_stage_start(control->config.store, round, chosen);
    if (!error)
        note_round(control, round);
    return error;
}

static int start_everywhere(struct control *control, uint64_t round)
{
    int error = tell_others(control, WORLD_STAGE, round);
    if (error)
        return error;
    error = start_round(control, round);
    if (error)
        tell_others(control, WORLD_STAGE_STOP, round);
    return error;
}

/* Are other files than these (NULL: all) being staged in the world? Then see `why`. */
static int check_choice(struct control *control, const struct samples *chosen, bool *runs, struct str *why)
{
    CLEANUP_WORLD_VIEW struct world_view view = world_view_get(control);
    struct whole whole;
    CLEANUP_SAMPLES struct samples *now = NULL;
    sum_up_world(control, &view, &whole);
    *runs = whole.sum.state == STAGE_RUNNING;
    bool known = *runs && stage_choice_find(control, whole.sum.round, &now) == 0;
    bool same = known && (chosen && now ? digest_equal(samples_digest(chosen), samples_digest(now)) : chosen == now);
    if (!*runs || same)
        return 0;
    return str_fail(why, -EBUSY,
                    "other files are being staged; wait until that ends, or stop it with `dealfs stage --stop`");
}

static int start_staging(struct control *control, const struct key_value *value, const struct asker *asker)
{
    struct stage_progress p;
    struct samples *chosen = NULL;
    bool runs;
    int error = stage_choice_given(value) ? stage_choice_make(control, value, asker, &chosen) : 0;
    if (!error)
        error = check_choice(control, chosen, &runs, asker->why);
    if (error || (chosen && runs)) {
        samples_put(chosen);
        return error;
    }
    look_here(control, &p);
    uint64_t now = clock_realtime(), round = (now > p.round ? now : p.round + 1) + 1;
    round -= round & 1;
    if (chosen)
        error = stage_choice_put(control, chosen, p.round, asker, &round);
    return error ? error : start_everywhere(control, round);
}

static int stop_staging(struct control *control)
{
    struct stage_progress p;
    store_stage_stop(control->config.store);
    note_round(control, 0);
    look_here(control, &p);
    return tell_others(control, WORLD_STAGE_STOP, p.round);
}

void control_command(void *user, enum world_command command, uint64_t token)
{
    struct control *control = user;
    if (!control_filled(control) || !control->config.store)
        return;
    if (command == WORLD_STAGE) {
        int error = start_round(control, token);
        if (error == -ENOENT)
            log_warning("stage: the list `" STAGE_LIST "` of the chosen files is not on this node yet");
        else if (error)
            log_error("continue the staging that another node or server began: %s", strerror(-error));
    } else if (command == WORLD_STAGE_STOP) {
        store_stage_stop(control->config.store);
        note_round(control, 0);
    }
}

/* --- the request --- */

static void reply_whole(struct control *control, struct str *reply)
{
    struct json json = {.out = reply};
    CLEANUP_WORLD_VIEW struct world_view view = world_view_get(control);
    struct whole whole;
    sum_up_world(control, &view, &whole);
    tell_others_again(control, &whole);
    add_whole(&json, &whole);
    str_adds(reply, "\n");
}

enum { KEY_ACTION, KEY_CHOICE };
enum { ACTION_START, ACTION_STOP }; /* `look` changes nothing */
static const struct key keys[] = {{.name = "action", .choices = "start|stop|look"}, STAGE_CHOICE_KEYS, {0}};

bool verb_stage_chooses(const struct request *request)
{
    return stage_choice_given(request->value + KEY_CHOICE);
}

static int stage_run(struct control *control, const struct request *request, const struct asker *asker)
{
    unsigned action = request->value[KEY_ACTION].choice;
    int error = 0;
    if (action != ACTION_START && verb_stage_chooses(request))
        return str_fail(asker->why, -EINVAL, "files can only be chosen with `action=start`");
    if (!control->config.store)
        error = -ENODEV;
    else if (action == ACTION_START)
        error = start_staging(control, request->value + KEY_CHOICE, asker);
    else if (action == ACTION_STOP)
        error = stop_staging(control);
    if (error && !asker->why->length)
        str_addf(asker->why, "cannot %s staging: %s", action == ACTION_STOP ? "stop" : "start", strerror(-error));
    if (error)
        return error;
    reply_whole(control, asker->reply);
    return 0;
}

const struct verb verb_stage = {
    .name = "stage",
    .about = "reply: JSON, the progress on all nodes",
    .keys = keys,
    .run = stage_run,
};
