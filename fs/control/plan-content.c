/* The content of plan files: made by the verb `plan`, cached by plan-files.c. */
#include "fs/control/plan-content.h"

#include "fs/control/control-private.h"
#include "fs/control/jobs.h"
#include "fs/control/verb-plan.h"

#include "fs/base/cleanup.h"

#include <errno.h>
#include <string.h>

uint64_t content_bytes(const struct file_content *c)
{
    return c->text ? c->text->text.length : c->stream ? epoch_stream_memory(c->stream) : 0;
}

uint64_t content_length(const struct file_content *c)
{
    return c->text ? c->text->text.length : epoch_stream_length(c->stream);
}

void content_put(struct file_content *c)
{
    reply_put(c->text);
    epoch_stream_put(c->stream);
    *c = (struct file_content){0};
}

int content_parse(const struct control *control, char *text, struct plan_request *wanted, struct str *why)
{
    struct key_value value[KEYS_MOST] = {0};
    if (!control_filled(control))
        return str_fail(why, -EAGAIN, "%s", CONTROL_NOT_FILLED);
    int error = keys_parse(&(struct key_words){plan_keys, "plan", ','}, text, strlen(text), value, why);
    return error ? error : plan_request_parse(value, wanted, why);
}

/* As the verb replies, with the layout at the time of the lookup. */
int content_make(struct request_job *job, const char *name, struct plan_origin *origin, struct file_content *content,
                 struct str *why)
{
    struct control *control = fuse_req_userdata(job->req);
    CLEANUP_CHARGE struct charge charge = control_charge(control, fuse_req_ctx(job->req)->uid);
    CLEANUP_STR struct str reply = STR_INIT;
    const struct asker asker = {job_gave_up, job, &charge, fuse_req_ctx(job->req)->pid, &reply, why};
    struct plan_question question = {.asker = &asker, .stream = &content->stream};
    CLEANUP_FREE char *pairs = node_texts_expand(&control->node_texts, name);
    int error = pairs ? content_parse(control, pairs, &question.wanted, why) : -ENOMEM;
    if (!error) {
        question.wanted.pinned = true;
        question.wanted.layout = origin->layout;
        error = plan_answer(control, &question, origin);
    }
    if (error || content->stream)
        return error;
    charge_keep(&charge);
    content->text = reply_create(&reply, &charge);
    return content->text ? 0 : -ENOMEM;
}
