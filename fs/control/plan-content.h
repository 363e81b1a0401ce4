/* The content of a file below plan/: a text, or a stream. Both are reference-counted. */
#ifndef FS_CONTROL_PLAN_CONTENT_H
#define FS_CONTROL_PLAN_CONTENT_H

#include "fs/control/stream.h"
#include "fs/control/plan-question.h"

struct request_job;

struct file_content { /* one of the two is set */
    struct reply *text;
    struct epoch_stream *stream;
};
uint64_t content_bytes(const struct file_content *c); /* of memory */
uint64_t content_length(const struct file_content *c);
void content_put(struct file_content *c);

/* Parse a file name. `text` is changed, and `wanted` points into it. 0; or -errno and why. */
int content_parse(const struct control *control, char *text, struct plan_request *wanted, struct str *why);
/* Make the content for a name, with the layout origin->layout; sets `origin`. 0; or -errno and why. */
int content_make(struct request_job *job, const char *name, struct plan_origin *origin, struct file_content *content,
                 struct str *why);

#endif
