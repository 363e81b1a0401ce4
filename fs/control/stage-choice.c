#include "fs/control/stage-choice.h"

#include "fs/control/control-private.h"
#include "fs/control/lists.h"
#include "fs/control/plan-content.h"
#include "fs/control/verb-plan.h"

#include "fs/base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool stage_choice_given(const struct key_value value[CHOICE_KEYS])
{
    return value[CHOICE_UNDER].text || value[CHOICE_MATCH].text || value[CHOICE_SAMPLES].text ||
           value[CHOICE_PLAN].text;
}

/* Files in the order in which they first appeared. */
struct file_choice {
    uint64_t *seen; /* one bit per file */
    uint32_t *file;
    uint32_t count;
};

static int gather(void *user, const struct samples *list, uint32_t sample)
{
    struct file_choice *g = user;
    uint32_t file = samples_file(list, sample);
    uint64_t bit = UINT64_C(1) << file % 64;
    if (!(g->seen[file / 64] & bit))
        g->file[g->count++] = file;
    g->seen[file / 64] |= bit;
    return 0;
}

static int gather_list(struct control *control, const struct key_value *value, const struct asker *asker,
                       struct file_choice *g)
{
    const struct plan_request wanted = {.samples = value[CHOICE_SAMPLES].text ? value[CHOICE_SAMPLES].text : "all",
                                        .under = value[CHOICE_UNDER].text,
                                        .match = value[CHOICE_MATCH].text,
                                        .count = UINT64_MAX};
    CLEANUP_CHARGE struct charge charge = charge_like(asker->charge);
    CLEANUP_SAMPLES struct samples *list = NULL;
    int error = lists_choose(control, &wanted, asker, &charge, &list);
    for (uint32_t i = 0; !error && i < samples_count(list); i++)
        gather(g, list, i);
    return error;
}

static int gather_plan(struct control *control, const struct key_value *value, const struct asker *asker,
                       struct file_choice *g)
{
    struct plan_question question = {.asker = asker, .visit = gather, .user = g};
    struct plan_origin origin;
    CLEANUP_FREE char *keys = strdup(value[CHOICE_PLAN].text);
    if (!keys)
        return str_no_memory(asker->why);
    int error = content_parse(control, keys, &question.wanted, asker->why);
    if (error)
        return error;
    if (value[CHOICE_UNDER].text || value[CHOICE_MATCH].text || value[CHOICE_SAMPLES].text)
        return str_fail(
            asker->why, -EINVAL,
            "with `plan`, `under`, `match` and `samples` are keys of the plan: `plan=epoch=0,...,under=DIR`");
    if (plan_request_has_payload(&question.wanted))
        return str_fail(asker->why, -EINVAL,
                        "`plan`: an order in the payload cannot be staged: upload it as a sample list");
    question.wanted.feed = false;
    return plan_answer(control, &question, &origin);
}

int stage_choice_make(struct control *control, const struct key_value value[CHOICE_KEYS], const struct asker *asker,
                      struct samples **files)
{
    const struct catalog *c = control->config.catalog;
    uint64_t words = catalog_files(c) / 64 + 1, most = (uint64_t)catalog_files(c) + 1;
    CLEANUP_CHARGE struct charge charge = charge_like(asker->charge);
    struct file_choice g = {0};
    int error = charge_add(&charge, words * sizeof *g.seen + most * sizeof *g.file, asker->why);
    CLEANUP_FREE uint64_t *seen = g.seen = error ? NULL : calloc(words, sizeof *g.seen);
    g.file = error ? NULL : malloc(most * sizeof *g.file);
    if (!error && (!g.seen || !g.file))
        error = str_no_memory(asker->why);
    if (!error)
        error = (value[CHOICE_PLAN].text ? gather_plan : gather_list)(control, value, asker, &g);
    if (!error && g.count == 0)
        error = str_fail(asker->why, -EINVAL, "no file of the dataset is chosen");
    if (!error)
        error = samples_from_files(c, steal_pointer(g.file), g.count, files);
    free(g.file);
    return error;
}

/* A node that cannot be asked does not stage now; it is asked again later. */
int stage_choice_put(struct control *control, struct samples *files, uint64_t after, const struct asker *asker,
                     uint64_t *round)
{
    CLEANUP_STR struct str ignored = STR_INIT;
    struct asker quiet = *asker;
    quiet.reply = &ignored;
    int error = lists_put(control, &(struct list_put){STAGE_LIST, files, after}, &quiet);
    if (error == -EHOSTUNREACH) {
        str_clear(asker->why);
        error = 0;
    }
    *round = samples_table_version(control->samples, STAGE_LIST) | 1;
    return error;
}

int stage_choice_find(struct control *control, uint64_t round, struct samples **files)
{
    *files = NULL;
    if (!stage_is_chosen(round))
        return 0;
    if ((samples_table_version(control->samples, STAGE_LIST) | 1) == round)
        *files = samples_table_find(control->samples, STAGE_LIST);
    if (*files)
        return 0;
    control_joined(control);
    return -ENOENT;
}
