/* The table of verbs, the smallest verbs, and how requests get from a stream to a verb. */
#include "fs/control/verbs.h"

#include "fs/control/control-handles.h"
#include "fs/control/control-private.h"

#include "fs/world/peers.h"

#include <errno.h>
#include <string.h>

static int umount_run(struct control *control, const struct request *request, const struct asker *asker)
{
    int error = control->config.peers ? peers_command(control->config.peers, WORLD_UMOUNT, 0) : -ENOTCONN;
    (void)request;
    if (error == -ENOTCONN)
        str_adds(asker->why, "this node is alone: there are no other nodes to notify");
    else if (error)
        str_addf(asker->why, "notify the other nodes: %s", strerror(-error));
    return error;
}

static const struct key no_keys[] = {{0}};

/* Unmounts the other nodes. The command that asks unmounts this node itself. */
static const struct verb verb_umount = {
    .name = "umount",
    .about = "unmount all other nodes of the world",
    .keys = no_keys,
    .run = umount_run,
};

static const struct verb *const verbs[] = {
    &verb_plan,     &verb_at,      &verb_end,   &verb_where,   &verb_samples, &verb_costs, &verb_stage,
    &verb_exchange, &verb_shuffle, &verb_index, &verb_upgrade, &verb_umount,  NULL};

enum {
    /* how much may follow the line of a verb without payload, before it is rejected with a message */
    STRAY_MOST = 4096,
    EXAMPLES_TRIED = 100,
};

int verbs_run(struct control *control, const char *bytes, size_t n, const struct asker *asker)
{
    CLEANUP_REQUEST struct request request = REQUEST_INIT;
    int error = request_parse(verbs, bytes, n, &request, asker->why);
    if (!error && !control_filled(control) && request.verb != &verb_umount && request.verb != &verb_upgrade)
        return str_fail(asker->why, -EAGAIN, "%s", CONTROL_NOT_FILLED);
    return error ? error : request.verb->run(control, &request, asker);
}

/* Long requests wait for each other. */
enum work_class verbs_class(const char *bytes, size_t n)
{
    enum { QUICK_MOST = 64 << 10 };
    CLEANUP_REQUEST struct request request = REQUEST_INIT;
    CLEANUP_STR struct str why = STR_INIT;
    const char *end = n ? memchr(bytes, '\n', n) : NULL;
    if (n && request_parse_line(verbs, bytes, end ? (size_t)(end - bytes) : n, &request, &why) == 0) {
        const struct verb *verb = request.verb;
        if (verb == &verb_exchange || verb == &verb_shuffle || verb == &verb_samples || verb == &verb_costs ||
            (verb == &verb_stage && verb_stage_chooses(&request)))
            return WORK_TURN;
        if (verb == &verb_end)
            return WORK_END;
        if (verb == &verb_index)
            return WORK_STREAM; /* it waits for another node */
        if (verb == &verb_plan)
            return WORK_LONG;
    }
    return n > QUICK_MOST ? WORK_LONG : WORK_QUICK;
}

static int64_t check_line(void *user, const char *line, size_t n, struct str *why)
{
    CLEANUP_REQUEST struct request request = REQUEST_INIT;
    int error = request_parse_line(verbs, line, n, &request, why);
    (void)user;
    if (error)
        return error;
    return request.verb->payload_most ? (int64_t)request.verb->payload_most : STRAY_MOST;
}

static void note_refused(void *user, const char *line, size_t n, int error, const char *why)
{
    struct control_handle *handle = user;
    const struct fuse_ctx who = {.uid = handle->uid, .pid = handle->pid};
    CLEANUP_STR struct str shown = STR_INIT;
    refusal_begin(&shown, line, n);
    control_note(handle->control, &who, error, why, &shown);
}

static bool plain_text(const char *path)
{
    for (; *path; path++)
        if ((unsigned char)*path < ' ' || (unsigned char)*path > '~')
            return false;
    return true;
}

/* An existing file, so that the example works; with a name that a terminal shows unchanged. */
static void add_example_path(struct str *text, const struct catalog *c)
{
    char path[1024];
    for (uint32_t file = 0; c && file < catalog_files(c) && file < EXAMPLES_TRIED; file++)
        if (catalog_path(c, catalog_file_ino(c, file), path, sizeof path) >= 0 && plain_text(path)) {
            str_add_shell_quoted(text, path);
            return;
        }
    str_adds(text, "'class/file'");
}

/* "  where [sep=lf|nul]      payload: …": the keys, then in another column, or below, the description. */
static void add_verb(struct str *text, const struct verb *verb)
{
    enum { ABOUT = 37, WIDTH = 110 };
    size_t from = text->length;
    str_addf(text, "  %s ", verb->name);
    size_t indent = text->length - from;
    keys_add_usage(verb->keys, indent, WIDTH, text);
    size_t n = text->length - from;
    str_addf(text, "%s%*s%s\n", n < ABOUT ? "" : "\n", (int)(n < ABOUT ? ABOUT - n : indent), "", verb->about);
}

static void add_usage(void *user, struct str *text)
{
    const struct control_handle *handle = user;
    const struct control_config *config = &handle->control->config;
    CLEANUP_STR struct str path = STR_INIT;
    str_addf(&path, "%s/.dealfs/control", config->mount->mountpoint);
    str_adds(text, "dealfs control file. Write one request, then read its reply, on the same open file.\n\n"
                   "A request is one line, VERB key=value ..., and for some verbs a payload after it:\n\n");
    for (size_t i = 0; verbs[i]; i++)
        add_verb(text, verbs[i]);
    str_adds(text, "\nValues are percent-decoded: %20 is a space. A request that is refused makes the read fail; the\n"
                   "next read returns the reason. See dealfs-control(5).\n\nExample, for bash:\n\n  exec 3<>");
    str_add_shell_quoted(text, path.failed ? "" : path.data);
    str_adds(text, "\n  printf 'where\\n%s\\n' ");
    add_example_path(text, control_filled(handle->control) ? config->catalog : NULL);
    str_adds(text, " >&3\n  cat <&3\n  exec 3>&-\n");
}

const struct stream_rules verbs_stream_rules = {
    .check = check_line,
    .usage = add_usage,
    .refused = note_refused,
    .line_most = REQUEST_LINE_MOST,
};
