/* The table of verbs, and how requests reach them from a stream. */
#include "fs/mount/control/inside.h"

#include "fs/base/file.h"

#include <errno.h>
#include <string.h>

const struct verb *const control_verbs[] = {&verb_plan, &verb_where, &verb_samples, &verb_stage, &verb_umount, NULL};

enum {
    POOL_MOST_SHIFT = 31, /* 2 GiB of requests at any time */
    STRAY_MOST = 4096,    /* what may follow the line of a verb that takes no payload, until it is refused with words */
    EXAMPLES_TRIED = 100,
};

int control_run(struct control *control, const char *bytes, size_t n, const struct asker *asker, struct str *reply,
                struct str *why)
{
    CLEANUP_REQUEST struct request request = REQUEST_INIT;
    int error = request_parse(control_verbs, bytes, n, &request, why);

    if (!error && !control_filled(control) && request.verb != &verb_umount) {
        str_adds(why, "there is no catalog yet: this node waits for its first world, which brings it");
        return -EAGAIN;
    }
    return error ? error : request.verb->run(control, &request, asker, reply, why);
}

static int64_t check_line(void *user, const char *line, size_t n, struct str *why)
{
    CLEANUP_REQUEST struct request request = REQUEST_INIT;
    int error = request_parse_line(control_verbs, line, n, &request, why);

    (void)user;
    if (error)
        return error;
    return request.verb->payload_most ? (int64_t)request.verb->payload_most : STRAY_MOST;
}

void control_note_refused(struct control *control, const struct fuse_ctx *who, const char *line, size_t n, int error,
                          const char *why)
{
    struct str text = STR_INIT;

    const char *name = strerrorname_np(-error);

    str_addf(&text, "%s: %s", name ? name : "refused", why);
    refusals_add(&control->refusals, clock_realtime(), who->uid, who->pid, line, n, text.failed ? why : text.data);
    str_fini(&text);
}

static void note_refused(void *user, const char *line, size_t n, int error, const char *why)
{
    struct handle *handle = user;
    const struct fuse_ctx who = {.uid = handle->uid, .pid = handle->pid};

    control_note_refused(handle->control, &who, line, n, error, why);
}

void control_add_quoted(struct str *text, const char *word)
{
    str_adds(text, "'");
    for (; *word; word++)
        if (*word == '\'')
            str_adds(text, "'\\''");
        else
            str_add(text, word, 1);
    str_adds(text, "'");
}

static bool plain_text(const char *path)
{
    for (; *path; path++)
        if ((unsigned char)*path < ' ' || (unsigned char)*path > '~')
            return false;
    return true;
}

/* A file that is there, so that the example gives something; one that a terminal shows as it is. */
static void add_example_path(struct str *text, const struct catalog *c)
{
    char path[1024];

    for (uint32_t file = 0; c && file < catalog_files(c) && file < EXAMPLES_TRIED; file++)
        if (catalog_path(c, catalog_file_ino(c, file), path, sizeof path) >= 0 && plain_text(path)) {
            control_add_quoted(text, path);
            return;
        }
    str_adds(text, "'class/file'");
}

static void add_usage(void *user, struct str *text)
{
    const struct handle *handle = user;
    const struct control_config *config = &handle->control->config;
    CLEANUP_STR struct str path = STR_INIT;

    str_addf(&path, "%s/.dealfs/control", config->mount->mountpoint);
    str_adds(text, "dealfs control file. Write one request, then read its reply, on the same open file.\n\n"
                   "A request is one line, VERB key=value ..., and for some verbs a payload after it:\n\n");
    for (size_t i = 0; control_verbs[i]; i++)
        str_addf(text, "  %s\n", control_verbs[i]->usage);
    str_adds(text, "\nValues are percent-decoded: %20 is a space. A request that is refused makes the read fail; the\n"
                   "next read tells why. See dealfs-control(5).\n\nExample, for bash:\n\n  exec 3<>");
    control_add_quoted(text, path.failed ? "" : path.data);
    str_adds(text, "\n  printf 'where\\n%s\\n' ");
    add_example_path(text, control_filled(handle->control) ? config->catalog : NULL);
    str_adds(text, " >&3\n  cat <&3\n  exec 3>&-\n");
}

const struct stream_rules control_stream_rules = {
    .check = check_line,
    .usage = add_usage,
    .refused = note_refused,
    .line_most = REQUEST_LINE_MOST,
    .pool_most = (size_t)1 << POOL_MOST_SHIFT,
};
