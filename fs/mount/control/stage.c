/* `stage`: fill the shards from the source, stop doing so, or see how far it is. */
#include "fs/mount/control/inside.h"

#include "fs/base/json.h"

#include <errno.h>
#include <string.h>

static const char *const state_names[] = {
    [STAGE_IDLE] = "idle",       [STAGE_RUNNING] = "running", [STAGE_DONE] = "done",
    [STAGE_STOPPED] = "stopped", [STAGE_FAILED] = "failed",
};

void control_add_stage(struct control *control, struct json *json, const char *key)
{
    struct stage_progress p = {0};

    if (control->config.store)
        store_stage_progress(control->config.store, &p);
    json_begin_object(json, key);
    json_string(json, "state", state_names[p.state]);
    json_string(json, "error", p.error ? strerror(p.error < 0 ? -p.error : p.error) : NULL);
    json_uint(json, "failed", p.failed);
    json_uint(json, "files", p.files);
    json_uint(json, "files_total", p.files_total);
    json_uint(json, "bytes", p.bytes);
    json_uint(json, "bytes_total", p.bytes_total);
    json_uint(json, "kept", p.kept);
    json_uint(json, "elapsed", p.elapsed);
    json_end_object(json);
}

static int run(struct control *control, const struct request *request, const struct asker *asker, struct str *reply,
               struct str *why)
{
    const char *action = request_text(request, "action", "start");
    struct json json = {.out = reply};
    int error = 0;

    (void)asker;
    if (!control->config.store)
        error = -ENODEV;
    else if (strcmp(action, "start") == 0)
        error = store_stage_start(control->config.store);
    else if (strcmp(action, "stop") == 0)
        store_stage_stop(control->config.store);
    if (error) {
        str_addf(why, "cannot %s staging: %s", action, strerror(-error));
        return error;
    }
    control_add_stage(control, &json, NULL);
    str_adds(reply, "\n");
    return 0;
}

static const struct request_key keys[] = {{.name = "action", .choices = "start|stop|look"}, {0}};

const struct verb verb_stage = {
    .name = "stage",
    .usage = "stage [action=start|stop|look]     reply: JSON, how far the filling of the shards is",
    .keys = keys,
    .run = run,
};
