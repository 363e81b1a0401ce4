/* Makes courses from the plans that the server recorded. */
#include "fs/feed/feeder.h"

#include "fs/base/clock.h"
#include "fs/base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum {
    ATTEMPTS_MOST = 8, /* attempts to get the lists of a plan */
    AGAIN_S = 1,
};

static struct feed_course *find_course(const struct feeder *f, int slot)
{
    for (int i = 0; i < f->courses.count; i++)
        if (f->courses.course[i]->slot == slot)
            return f->courses.course[i];
    return NULL;
}

static void drop_course(struct feeder *f, int slot)
{
    struct feed_course *c = find_course(f, slot);
    if (c && c->coverage)
        coverage_forget(f->coverage, c->coverage);
    if (c)
        courses_remove(&f->courses, c);
}

/* What was not watched for a list, or not all the time by this feeder. */
static uint32_t doubts_of(const struct feeder *f, const struct feed_course *c, const struct feed_asking *asking)
{
    bool here = asking->watcher == (uint32_t)getpid() && asking->since > f->blind;
    return (here && !c->records ? 0 : FEED_UNWATCHED) | (c->watched ? 0 : FEED_PARTLY);
}

/* Has an earlier feeder ended this list? */
static bool is_closed(const struct feeder *f, const struct feed_course *c, uint32_t list,
                      const struct feed_asking *asking)
{
    const struct feed_rank *r = &f->feed->rank[c->slot][list];
    return asking->ended && atomic_load(&r->number) == c->number && atomic_load(&r->closed) == asking->ended;
}

static int cover_list(struct feeder *f, struct feed_course *c, uint32_t list, const struct feed_asking *asking)
{
    int error = 0;
    if (asking->asked == 0 || is_closed(f, c, list, asking))
        return 0;
    if (!c->coverage)
        error = coverage_follow(f->coverage, c, &c->coverage);
    if (!error && coverage_begun(c->coverage, list) != asking->asked)
        error = coverage_begin(f->coverage, c->coverage, list, asking, doubts_of(f, c, asking));
    if (error)
        return error;
    if (!c->records && asking->watcher == (uint32_t)getpid() && asking->since > f->blind)
        coverage_watched(c->coverage, list);
    if (asking->ended)
        coverage_end(c->coverage, list, asking);
    return 0;
}

/* Begin and end lists as the server has recorded. */
static void cover_course(struct feeder *f, struct feed_course *c, const struct feed_plan *recipe)
{
    for (uint32_t list = 0; list < c->ranks; list++) {
        int error = cover_list(f, c, list, &recipe->asking[list]);
        if (error)
            log_warning("count the reads of rank %u in epoch %" PRIu64 ": %s", c->rank[list], c->epoch,
                        strerror(-error));
    }
}

/* An earlier feeder may have followed the plan: continue from its positions. */
static void resume_course(struct feeder *f, struct feed_course *c)
{
    for (uint32_t list = 0; list < c->ranks; list++) {
        const struct feed_rank *r = &f->feed->rank[c->slot][list];
        if (atomic_load(&r->number) != c->number || atomic_load(&r->rank) != c->rank[list])
            continue;
        window_resume(&c->window[list], atomic_load(&r->reached));
        c->seen[list] = atomic_load(&r->seen);
        c->left[list] = atomic_load(&r->flags) & FEED_ENDED;
    }
}

/* A course needs at least 20 bytes per sample. A loader that returns to this epoch requests its plan again. */
static void drop_stale(struct feeder *f)
{
    for (const struct feed_course *c; (c = courses_stale(&f->courses)) && c->slot >= 0;)
        drop_course(f, c->slot);
}

static void begin_course(struct feeder *f, struct feed_course *c, int slot, const struct feed_plan *recipe)
{
    struct pace_watched watched = {0};
    c->slot = slot;
    c->began = clock_now();
    resume_course(f, c);
    int error = c->records ? 0 : f->pace ? pace_watch(f->pace, c->file, c->start[c->ranks], &watched) : -EMFILE;
    c->watched = !error && !c->records && watched.watched == watched.directories;
    if (watched.fresh > 0)
        f->blind = clock_now();
    cover_course(f, c, recipe);
    courses_add(&f->courses, c);
    headroom_begin(&f->headroom);
    drop_stale(f);
    log_debug("feeder", "plan %" PRIu64 ", epoch %" PRIu64 ": %u lists, %u samples, %u of %u directories watched",
              c->number, c->epoch, c->ranks, c->start[c->ranks], watched.watched, watched.directories);
}

/* While a plan is tried again, reads of it are not matched. */
static void try_plan(struct feeder *f, int slot, const struct feed_plan *recipe)
{
    struct feeder_plan *plan = &f->plan[slot];
    struct feed_course *course;
    int error = recipe_make(&f->book, recipe, &f->files, &course);
    plan->again = 0;
    if (!error) {
        begin_course(f, course, slot, recipe);
        return;
    }
    f->blind = clock_now();
    if (++plan->attempts < ATTEMPTS_MOST)
        plan->again = clock_now() + AGAIN_S * SECOND;
    else
        log_warning("epoch %" PRIu64 " is not read ahead: get its lists: %s", recipe->epoch, strerror(-error));
}

void plans_drop_guesses(struct feeder *f, uint64_t kind)
{
    for (int i = f->courses.count; i-- > 0;) {
        const struct feed_course *c = f->courses.course[i];
        if (c->kind == kind && c->guessed && c->slot >= 0)
            drop_course(f, c->slot);
    }
}

/* A known plan: a loader requested it again (or requested a guess), or one of its lists ended. False: it was
 * dropped. */
static bool confirm_plan(struct feeder *f, int slot, const struct feed_plan *recipe)
{
    struct feed_course *c = find_course(f, slot);
    if (!c)
        return false;
    /* files that were fed for a guess may have left the page cache */
    for (uint32_t list = 0; c->guessed && !recipe->guessed && list < c->ranks; list++)
        if (c->seen[list] == 0)
            window_restart(&c->window[list]);
    c->guessed = recipe->guessed;
    cover_course(f, c, recipe);
    return true;
}

static void look_at_plan(struct feeder *f, int slot, uint64_t now)
{
    struct feeder_plan *plan = &f->plan[slot];
    struct feed_plan recipe;
    uint32_t version = atomic_load_explicit(&f->feed->plan[slot].version, memory_order_acquire);
    if (version == plan->version && !(plan->again && now >= plan->again))
        return;
    if (!recipe_take(f->feed, (unsigned)slot, &recipe))
        return;
    plan->version = version;
    if (recipe.number != plan->number) {
        if (plan->number)
            drop_course(f, slot);
        *plan = (struct feeder_plan){.version = version, .number = recipe.number, .again = now};
    } else if (!plan->again && !confirm_plan(f, slot, &recipe)) {
        plan->attempts = 0;
        plan->again = now;
    }
    if (plan->again)
        try_plan(f, slot, &recipe);
}

void plans_look(struct feeder *f, const volatile sig_atomic_t *stop)
{
    uint64_t now = clock_now();
    for (int slot = 0; slot < FEED_PLANS && !*stop; slot++)
        look_at_plan(f, slot, now);
    if (*stop)
        f->blind = clock_now();
}

void plans_drop(struct feeder *f)
{
    for (int slot = 0; slot < FEED_PLANS; slot++)
        drop_course(f, slot);
}
