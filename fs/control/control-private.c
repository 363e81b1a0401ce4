/* Helpers for the parts of the control mount. */
#include "fs/control/control-private.h"

#include "fs/control/stream.h"
#include "fs/control/texts.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"

#include <inttypes.h>

uint64_t control_memory(void)
{
    char line[128];
    uint64_t kilobytes;
    CLEANUP_FCLOSE FILE *status = fopen("/proc/self/status", "re");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "RssAnon: %" SCNu64 " kB", &kilobytes) == 1)
            return kilobytes << 10;
    return 0;
}

void control_stats(struct control *control, struct store_stats *stats)
{
    memset(stats, 0, sizeof *stats);
    if (control_filled(control) && control->config.store)
        store_stats(control->config.store, stats);
}

bool control_is_public(const struct control *control)
{
    return control_filled(control) && control->public &&
           !(control->config.store && store_has_reduced(control->config.store));
}

bool control_path_shown(const struct control *control, uint64_t file, char *path)
{
    const struct catalog *catalog = control_filled(control) ? control->config.catalog : NULL;
    return catalog && file < catalog_files(catalog) &&
           control_inode_shown(control, catalog_file_ino(catalog, (uint32_t)file), path);
}

bool control_inode_shown(const struct control *control, uint64_t ino, char *path)
{
    return control_filled(control) && (control_is_public(control) || !control->config.mount->allow_other) &&
           catalog_path(control->config.catalog, ino, path, CATALOG_PATH_MAX) >= 0;
}

int control_errors(struct control *control, struct str *text)
{
    refusals_text(&control->refusals, text);
    return text->failed ? -ENOMEM : 0;
}

bool control_filled(const struct control *control)
{
    return atomic_load_explicit(&control->filled, memory_order_acquire);
}

bool control_is_owner(const struct control *control, uid_t uid)
{
    return uid == control->config.mount->owner_uid || uid == 0;
}

struct charge control_charge(struct control *control, uid_t uid)
{
    return (struct charge){.budget = &control->budget, .other = !control_is_owner(control, uid)};
}

void control_note(struct control *control, const struct fuse_ctx *who, int error, const char *why, struct str *line)
{
    const char *name = strerrorname_np(-error);
    str_addf(line, "%s: %s", name ? name : "refused", why);
    refusals_add(&control->refusals, !control_is_owner(control, who->uid),
                 (struct refusal){clock_realtime(), who->uid, who->pid, str_steal(line)});
}

void control_note_request(fuse_req_t req, int error, const struct str *why, const char *format, ...)
{
    CLEANUP_STR struct str line = STR_INIT, shown = STR_INIT;
    va_list args;
    va_start(args, format);
    str_addv(&line, format, args);
    va_end(args);
    refusal_begin(&shown, line.data ? line.data : "", line.length);
    control_note(control_of(req), fuse_req_ctx(req), error, why->length ? why->data : strerror(-error), &shown);
}

void control_reply_part(fuse_req_t req, const struct reply *reply, size_t size, uint64_t offset)
{
    size_t length = reply->text.length, at = offset < length ? (size_t)offset : length;
    fuse_reply_buf(req, reply->text.data + at, size < length - at ? size : length - at);
}
