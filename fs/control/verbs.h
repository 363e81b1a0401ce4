/* The verbs of `control`, and how requests reach them. */
#ifndef FS_CONTROL_VERBS_H
#define FS_CONTROL_VERBS_H

#include "fs/control/protocol.h"
#include "fs/control/stream.h"
#include "fs/control/workers.h"

struct json;

extern const struct verb verb_at, verb_costs, verb_end, verb_exchange, verb_index, verb_plan, verb_samples,
    verb_shuffle, verb_stage, verb_upgrade, verb_where;
enum { PAYLOAD_MOST = 1 << 30 }; /* for verbs with long payloads */

extern const struct stream_rules verbs_stream_rules; /* user: struct control_handle */

/* Run a whole request. */
int verbs_run(struct control *control, const char *bytes, size_t n, const struct asker *asker);

enum work_class verbs_class(const char *bytes, size_t n); /* which workers should run it */

/* What `status` shows of verbs. */
bool verb_stage_chooses(const struct request *request); /* it stages only some files: that takes longer than a look */
void verb_stage_add_status(struct json *json, struct control *control);
void verb_plan_add_status(struct json *json, struct control *control);

#endif
