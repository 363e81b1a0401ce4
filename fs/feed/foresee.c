/* When to predict a plan, which plan to request, and when a prediction was wrong. */
#include "fs/feed/foresee.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/feed/desk.h"
#include "fs/feed/predict.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    GUESSES = 16,      /* number of remembered predictions */
    DRAWS = 150000,    /* numbers drawn per step: 1 to 2 ms of 50 */
    JUDGED = 192,      /* number of last reads that judge a prediction; of these: */
    RIGHT_LEAST = 115, /* if fewer are right, it is wrong: six tenths */
    WRONG_MOST = 2,    /* consecutive judgements: at the end of an epoch, reads belong to two epochs */
    NATURAL = 32,      /* number of reads that show a natural order */
    PAUSE_LEAST_S = 2, /* pause before the next search; it doubles each time, up to */
    PAUSE_MOST_S = 64,
    END_PART = 8, /* the last eighth of a list counts as its end */
    ANSWER_MOST = 1 << 16,
};
#define NO_SAMPLE UINT32_MAX

struct guess {
    uint64_t kind, epoch;
};

struct foresight {
    const struct mount_config *config;
    const struct feed_courses *courses;
    struct feed *feed;
    struct guess guess[GUESSES];
    unsigned guesses;
    /* for sampler=; NULL: none */
    struct predict *predict;
    const char *list; /* name of the sample list */
    uint32_t *sample; /* sample of each file; NO_SAMPLE: not in the list */
    uint32_t files;
    uint64_t kind, epoch; /* of the prediction that is followed */
    uint64_t searched, pause;
    struct seen_read {
        uint32_t file, sample;
        bool natural; /* it followed another one in natural order */
    } last[JUDGED];
    uint64_t reads, judged;
    unsigned wrong; /* consecutive wrong judgements */
    bool natural;   /* reads are in natural order */
};

/* --- asking --- */

/* 0, or why not. A failure only costs speed. */
static int ask_plan(const struct foresight *f, const struct str *request)
{
    const struct desk control = {f->config->control, f->config->control_minor};
    CLEANUP_STR struct str answer = STR_INIT;
    if (request->failed)
        return -ENOMEM;
    CLEANUP_CLOSE int desk = desk_open(&control);
    if (desk < 0)
        return desk;
    CLEANUP_CLOSE int fd = openat(desk, "control", O_RDWR | O_CLOEXEC);
    int error = fd < 0 ? -errno : file_write_all(fd, request->data, request->length);
    return error ? error : file_read_fd(fd, ANSWER_MOST, &answer);
}

static void note_guess(struct foresight *f, uint64_t kind, uint64_t epoch)
{
    f->guess[f->guesses++ % GUESSES] = (struct guess){kind, epoch};
}

static bool was_guessed(const struct foresight *f, uint64_t kind, uint64_t epoch)
{
    for (unsigned i = 0; i < f->guesses && i < GUESSES; i++)
        if (f->guess[i].kind == kind && f->guess[i].epoch == epoch)
            return true;
    return false;
}

static bool starts_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* The same pairs for another epoch, with the current layout, from the start of the epoch. False: its order is unknown,
 * or the layout determines which samples are read. */
static bool add_next(const struct feed_plan *r, uint64_t epoch, struct str *request)
{
    str_addf(request, "plan epoch=%" PRIu64 " feed=yes reply=summary", epoch);
    for (const char *at = r->pairs; *at; at += strcspn(at, ","), at += *at == ',') {
        if (starts_with(at, "order=") || starts_with(at, "digest=") || starts_with(at, "mode=local,") ||
            strcmp(at, "mode=local") == 0)
            return false;
        if (starts_with(at, "epoch=") || starts_with(at, "layout=") || starts_with(at, "skip="))
            continue;
        str_adds(request, " ");
        str_add(request, at, strcspn(at, ","));
    }
    str_adds(request, "\n");
    return !request->failed;
}

/* --- the next epoch --- */

/* One rank may be ahead of the others. If reads do not fit, a stray read may look like the end. */
static bool is_at_its_end(const struct feed_course *c)
{
    for (uint32_t i = 0; i < c->ranks; i++) {
        const struct window *w = &c->window[i];
        if (c->seen[i] > 0 && w->strays == 0 && w->count - w->reached <= w->count / END_PART + 1)
            return true;
    }
    return false;
}

static bool has_next(const struct feed_courses *courses, const struct feed_course *c)
{
    for (int i = 0; i < courses->count; i++)
        if (courses->course[i]->kind == c->kind && courses->course[i]->epoch > c->epoch)
            return true;
    return false;
}

static void guess_next(struct foresight *f)
{
    const struct feed_courses *courses = f->courses;
    for (int i = 0; i < courses->count; i++) {
        const struct feed_course *c = courses->course[i];
        CLEANUP_STR struct str request = STR_INIT;
        struct feed_plan recipe;
        if (c->slot < 0 || has_next(courses, c) || !is_at_its_end(c) || was_guessed(f, c->kind, c->epoch + 1))
            continue;
        note_guess(f, c->kind, c->epoch + 1); /* only once, whatever the result */
        if (!recipe_take(f->feed, (unsigned)c->slot, &recipe) || recipe.number != c->number ||
            !add_next(&recipe, c->epoch + 1, &request))
            continue;
        int error = ask_plan(f, &request);
        log_debug("feeder", "predicting epoch %" PRIu64 ": %s", c->epoch + 1, error ? strerror(-error) : "fed");
        return; /* one at a time */
    }
}

/* --- a sampler --- */

static struct samples *find_list(struct foresight *f, const struct catalog *catalog)
{
    static const char *const names[] = {"imagefolder", "all"};
    CLEANUP_STR struct str why = STR_INIT;
    for (int i = 0; i < 2; i++) {
        struct samples *base = i == 0 ? samples_imagefolder(catalog) : samples_all(catalog), *list = NULL;
        if (base && samples_select(base, f->config->sampler_under, NULL, &list, &why) == 0) {
            samples_put(base);
            f->list = names[i];
            if (samples_count(list) >= PREDICT_SAMPLES_LEAST)
                return list;
            samples_put(list);
        } else {
            samples_put(base);
        }
    }
    return NULL;
}

static int number_samples(struct foresight *f, const struct samples *list)
{
    f->sample = malloc((f->files + 1ul) * sizeof *f->sample);
    if (!f->sample)
        return -ENOMEM;
    memset(f->sample, 0xff, f->files * sizeof *f->sample); /* fills with NO_SAMPLE */
    for (uint32_t i = 0; i < samples_count(list); i++)
        f->sample[samples_file(list, i)] = i;
    const struct predict_terms terms = {.samples = samples_count(list),
                                        .ranks = (uint32_t)f->config->sampler_ranks,
                                        .batch = (uint32_t)f->config->sampler_batch,
                                        .seed = f->config->sampler_seed};
    return predict_create(&terms, &f->predict);
}

static void set_state(struct foresight *f, enum feed_foresight state)
{
    atomic_store(&f->feed->foresight, state);
}

int foresee_create(const struct mount_config *config, const struct catalog *catalog, struct feed *feed,
                   const struct feed_courses *courses, struct foresight **foresight)
{
    struct foresight *f = calloc(1, sizeof *f);
    if (!f)
        return -ENOMEM;
    *f = (struct foresight){.config = config, .courses = courses, .feed = feed, .files = catalog_files(catalog)};
    *foresight = f;
    if (config->sampler_ranks == 0)
        return 0;
    struct samples *list = find_list(f, catalog);
    int error = list ? number_samples(f, list) : -ENOENT;
    samples_put(list);
    if (error)
        log_warning("sampler=torch: no epoch is predicted: %s",
                    error == -ENOENT ? "there are too few files below its directory" : strerror(-error));
    else
        set_state(f, FORESIGHT_READING);
    return 0;
}

void foresee_destroy(struct foresight *f)
{
    if (!f)
        return;
    predict_destroy(f->predict);
    free(f->sample);
    free(f);
}

static void add_plan(const struct foresight *f, uint64_t epoch, struct str *request)
{
    const struct mount_config *c = f->config;
    str_addf(request, "plan epoch=%" PRIu64 " ranks=%d batch=%d mode=regular samples=%s feed=yes reply=summary", epoch,
             c->sampler_ranks, c->sampler_batch, f->list);
    if (c->sampler_seed)
        str_addf(request, " seed=%" PRIu64, c->sampler_seed);
    if (c->sampler_drop)
        str_adds(request, " tail=drop");
    if (c->sampler_under) {
        str_adds(request, " under=");
        str_add_percent(request, c->sampler_under, strlen(c->sampler_under));
    }
    str_adds(request, "\n");
}

static void note_mismatch(struct foresight *f)
{
    uint32_t ranks = predict_hint(f->predict).ranks;
    if (atomic_exchange(&f->feed->fitting_ranks, ranks) != ranks && ranks > 0)
        log_warning("sampler=torch: ranks=%d does not match the loaders' reads: ranks=%" PRIu32 " does",
                    f->config->sampler_ranks, ranks);
    atomic_store(&f->feed->unmatched, 1);
}

static void pause_search(struct foresight *f, uint64_t now)
{
    f->pause = f->pause == 0 ? PAUSE_LEAST_S : f->pause < PAUSE_MOST_S ? f->pause * 2 : PAUSE_MOST_S;
    f->searched = now;
    predict_restart(f->predict, f->epoch + 1);
    set_state(f, FORESIGHT_LOST);
}

/* Lists do not depend on it, so nothing is wrong but the option. */
static void note_batch(struct foresight *f)
{
    uint32_t batch = predict_hint(f->predict).batch;
    if (batch > 0 && atomic_exchange(&f->feed->fitting_batch, batch) != batch)
        log_warning("sampler=torch: loaders read batches of %" PRIu32 " samples or a divisor of it, not batch=%d",
                    batch, f->config->sampler_batch);
}

/* The kind of the plan is known as soon as it has a course. */
static void follow_epoch(struct foresight *f, uint64_t epoch, uint64_t now)
{
    CLEANUP_STR struct str request = STR_INIT;
    add_plan(f, epoch, &request);
    int error = ask_plan(f, &request);
    if (error) {
        log_warning("sampler=torch: loaders read epoch %" PRIu64 ", but it cannot be planned: %s", epoch,
                    strerror(-error));
        pause_search(f, now);
        return;
    }
    log_info("sampler=torch: loaders read epoch %" PRIu64 ": it is read ahead from now on", epoch);
    f->epoch = epoch;
    f->kind = 0;
    f->reads = f->judged = 0;
    f->natural = false;
    f->pause = 0;
    note_batch(f);
    atomic_store(&f->feed->unmatched, 0);
    atomic_store(&f->feed->foreseen, epoch);
    set_state(f, FORESIGHT_FOLLOWING);
}

static void search_epoch(struct foresight *f, uint64_t now)
{
    uint64_t epoch = 0;
    switch (predict_step(f->predict, DRAWS, &epoch)) {
    case PREDICT_FOUND:
        follow_epoch(f, epoch, now);
        break;
    case PREDICT_NATURAL: /* validation reads this way */
        predict_restart(f->predict, f->epoch + 1);
        set_state(f, FORESIGHT_READING);
        break;
    case PREDICT_NONE:
        if (f->pause == 0)
            log_info("sampler=torch: the loaders' reads match no epoch of the sampler; this is checked again from time "
                     "to time");
        note_mismatch(f);
        pause_search(f, now);
        break;
    case PREDICT_SEARCHING:
        set_state(f, FORESIGHT_SEARCHING);
        break;
    case PREDICT_READING:
        set_state(f, FORESIGHT_READING);
        break;
    }
}

/* Does it follow one of the last reads in natural order? */
static bool comes_after(const struct foresight *f, uint32_t sample)
{
    uint32_t ranks = (uint32_t)f->config->sampler_ranks;
    for (uint64_t i = f->reads > NATURAL ? f->reads - NATURAL : 0; i < f->reads; i++)
        if (f->last[i % JUDGED].sample + 1 == sample || f->last[i % JUDGED].sample + ranks == sample)
            return true;
    return false;
}

static bool are_natural(const struct foresight *f, uint32_t n)
{
    uint32_t in_order[JUDGED];
    for (uint32_t i = 0; i < n; i++)
        in_order[i] = f->last[(f->reads - n + i) % JUDGED].sample;
    return f->reads >= n && predict_is_natural(in_order, n, (uint32_t)f->config->sampler_ranks);
}

/* Mark those of the last reads that follow an earlier read in their list of this course. */
static uint32_t count_right(const struct foresight *f, const struct feed_course *c, bool *right)
{
    uint64_t place[JUDGED];
    uint32_t count = 0;
    for (uint32_t i = 0; i < JUDGED; i++) {
        struct course_places places = course_find(c, f->last[(f->reads + i) % JUDGED].file);
        place[i] = places.count > 0 ? places.place[0] + UINT64_C(1) : 0;
        bool follows = false;
        for (uint32_t j = 0; j < i && place[i] && !follows; j++)
            follows = place[j] && place[i] > place[j] && place[i] - place[j] <= 2;
        count += follows;
        right[i] |= follows;
    }
    return count;
}

/* Judge the prediction by the last reads: they must fit one epoch of this kind, or two at the end of an epoch.
 * Validation does not count against it. The epoch with most of the reads is the current one. */
static void judge_reads(struct foresight *f)
{
    const struct feed_courses *courses = f->courses;
    uint64_t epoch = f->epoch;
    uint32_t most = 0, all = 0;
    bool right[JUDGED];
    f->judged = f->reads;
    for (uint32_t i = 0; i < JUDGED; i++)
        right[i] = f->last[(f->reads + i) % JUDGED].natural;
    for (int i = 0; i < courses->count; i++) {
        const struct feed_course *c = courses->course[i];
        uint32_t count = c->kind == f->kind ? count_right(f, c, right) : 0;
        if (count > most) {
            most = count;
            epoch = c->epoch;
        }
    }
    for (uint32_t i = 0; i < JUDGED; i++)
        all += right[i];
    f->wrong = all < RIGHT_LEAST ? f->wrong + 1 : 0;
    if (f->wrong > 0)
        return;
    f->epoch = epoch;
    atomic_store(&f->feed->foreseen, epoch);
}

/* The read must follow an earlier one in its list; so the first reads after a validation are not taken for part of
 * it. */
static bool follow_read(struct foresight *f, uint32_t file, uint32_t sample)
{
    const struct seen_read *before = &f->last[(f->reads - 1) % JUDGED];
    bool after = comes_after(f, sample);
    if (f->reads > 0 && before->sample == sample)
        return f->natural && before->natural;
    f->last[f->reads++ % JUDGED] = (struct seen_read){file, sample, after};
    if (f->kind && f->reads - f->judged >= JUDGED)
        judge_reads(f);
    if (f->reads % (NATURAL / 4) == 0)
        f->natural = are_natural(f, NATURAL);
    return f->natural && after;
}

bool foresee_read(struct foresight *f, uint32_t file)
{
    uint32_t sample = f->predict && file < f->files ? f->sample[file] : NO_SAMPLE;
    uint32_t state = atomic_load(&f->feed->foresight);
    if (sample == NO_SAMPLE)
        return false;
    if (state == FORESIGHT_READING)
        predict_read(f->predict, sample);
    return state == FORESIGHT_FOLLOWING && follow_read(f, file, sample);
}

/* The course of the prediction. The next epoch's course is of the same kind. */
static const struct feed_course *find_course(const struct foresight *f)
{
    const struct feed_courses *courses = f->courses;
    for (int i = 0; i < courses->count; i++) {
        struct feed_plan recipe;
        const struct feed_course *c = courses->course[i];
        if (c->epoch == f->epoch && c->slot >= 0 && recipe_take(f->feed, (unsigned)c->slot, &recipe) &&
            recipe.number == c->number && strstr(recipe.pairs, "mode=regular"))
            return c;
    }
    return NULL;
}

static uint64_t judge_epoch(struct foresight *f, uint64_t now)
{
    const struct feed_course *c = f->kind ? NULL : find_course(f);
    if (c) {
        f->kind = c->kind;
        f->reads = f->judged = f->wrong = 0;
        note_guess(f, c->kind, c->epoch);
    }
    if (!f->kind || f->wrong < WRONG_MOST)
        return 0;
    log_warning("sampler=torch: the loaders' reads do not match epoch %" PRIu64 ": it is no longer read ahead",
                f->epoch);
    atomic_fetch_add(&f->feed->wrong, 1);
    note_mismatch(f);
    pause_search(f, now);
    return f->kind;
}

uint64_t foresee_step(struct foresight *f, uint64_t now)
{
    uint32_t state = atomic_load(&f->feed->foresight);
    guess_next(f);
    if (!f->predict)
        return 0;
    if (state == FORESIGHT_FOLLOWING)
        return judge_epoch(f, now);
    if (state == FORESIGHT_LOST && now - f->searched >= f->pause * SECOND)
        set_state(f, FORESIGHT_READING);
    else if (state != FORESIGHT_LOST)
        search_epoch(f, now);
    return 0;
}
