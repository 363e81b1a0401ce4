/* Requests and replies; a guarded child does the work. */
#include "cli/live/client.h"

#include "cli/base/command.h"
#include "cli/base/guard.h"
#include "cli/base/interrupt.h"
#include "cli/base/place.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
    REPLY_MOST = 64 << 20,
    SERVERS = 5, /* number of servers that may die during one request */
};

bool client_asks_again(int error, size_t reason, int *servers)
{
    return error == -ESTALE && reason == 0 && ++*servers < SERVERS;
}

int client_find(const char *mountpoint, enum live_health worst, struct live *live)
{
    CLEANUP_STR struct str why = STR_INIT;
    int error = live_find(mountpoint, live, &why);
    if (error)
        return command_fail("%s", command_why(&why, error));
    if (live->health <= worst)
        return COMMAND_DONE;
    command_fail("%s: %s", mountpoint, live_health_text(live->health));
    live_fini(live);
    return COMMAND_FAILED;
}

/* `control` becomes a path that works for the user: root's path through /proc does not. */
static int become_user(const struct live *live, const char **control)
{
    char root[64];
    int n = snprintf(root, sizeof root, "/proc/%d/root", (int)live->keeper);
    *control = live->control;
    if (geteuid() != 0)
        return 0;
    if (live->health == LIVE_ELSEWHERE) {
        if (chdir(root) < 0)
            return -errno;
        *control += n + 1;
    }
    return process_become(live->uid, live->gid);
}

int client_become(struct live *live)
{
    const char *control;
    int error = geteuid() == 0 && live->uid != 0 ? process_leave_environment(live->uid) : 0;
    if (!error)
        error = become_user(live, &control);
    if (error)
        return command_fail("%s: become its user (uid %u): %s", live->mountpoint, (unsigned)live->uid,
                            strerror(-error));
    memmove(live->control, control, strlen(control) + 1);
    return COMMAND_DONE;
}

/* Read all that is available. */
static int receive(int fd, struct str *out)
{
    enum { PIECE = 64 << 10 };
    for (char *room; (room = str_reserve(out, PIECE));) {
        ssize_t n = read(fd, room, PIECE);
        if (n == 0)
            return 0;
        if (n > 0)
            out->length += (size_t)n;
        else if (errno != EINTR || interrupted)
            return -errno;
    }
    return -ENOMEM;
}

void client_reason(int control, struct str *why)
{
    str_clear(why);
    if (receive(control, why))
        str_clear(why);
    while (why->length > 0 && why->data[why->length - 1] == '\n')
        why->data[--why->length] = '\0';
}

/* For a child. */
struct control_use {
    const struct live *live;
    const struct str *request;
    const char *file;
};

static int send_and_receive(void *user, struct str *out)
{
    const struct control_use *use = user;
    const char *control;
    int error = become_user(use->live, &control);
    CLEANUP_FREE char *path = error ? NULL : place_join(control, "control");
    if (!path)
        return error ? error : -ENOMEM;
    CLEANUP_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        error = -errno;
        return str_fail(out, error, "open %s/control: %s", use->live->control, strerror(-error));
    }
    error = file_write_all(fd, use->request->data, use->request->length);
    if (!error)
        error = file_read_fd(fd, REPLY_MOST, out);
    if (error)
        client_reason(fd, out);
    return error;
}

int client_send(const struct live *live, const struct str *request, struct str *reply, struct str *why)
{
    CLEANUP_STR struct str text = STR_INIT;
    struct control_use use = {.live = live, .request = request};
    int error, servers = 0;
    if (request->failed)
        return -ENOMEM;
    do
        error = guard_run(send_and_receive, &use, REQUEST_SECONDS, &text);
    while (client_asks_again(error, text.length, &servers));
    if (error && text.length == 0)
        str_addf(why, "%s/control: %s", live->control,
                 error == -ETIMEDOUT ? "the mount does not answer" : strerror(-error));
    else if (text.length > 0)
        str_add(error ? why : reply, text.data, text.length);
    return error;
}

static int send_and_wait(const char *path, const struct str *request, int payload, struct str *reply, struct str *why)
{
    CLEANUP_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC);
    int error = fd < 0 ? -errno : file_write_all(fd, request->data, request->length);
    if (!error && payload >= 0)
        error = lseek(payload, 0, SEEK_SET) < 0 ? -errno : file_copy(payload, fd, UINT64_MAX - 1);
    if (!error)
        error = receive(fd, reply);
    if (error && fd >= 0 && error != -EINTR)
        client_reason(fd, why);
    return error;
}

int client_wait(const struct live *live, const struct str *request, int payload, struct str *reply, struct str *why)
{
    CLEANUP_FREE char *path = place_join(live->control, "control");
    int error, servers = 0;
    if (!path || request->failed)
        return -ENOMEM;
    do {
        str_clear(reply);
        error = send_and_wait(path, request, payload, reply, why);
    } while (client_asks_again(error, why->length, &servers));
    if (error && why->length == 0)
        str_addf(why, "%s: %s", path, strerror(-error));
    return error;
}

bool client_add_pair(struct str *line, const char *word)
{
    const char *equals = strchr(word, '=');
    if (!equals || equals == word)
        return false;
    str_adds(line, " ");
    str_add_percent(line, word, (size_t)(equals - word));
    str_adds(line, "=");
    str_add_percent(line, equals + 1, strlen(equals + 1));
    return true;
}

const char *client_path_under(char *directory, const char *mountpoint)
{
    size_t n = strlen(mountpoint);
    while (n > 1 && mountpoint[n - 1] == '/')
        n--;
    if (*directory == '/' && strncmp(directory, mountpoint, n) == 0 && (directory[n] == '/' || directory[n] == '\0'))
        directory += n;
    directory += strspn(directory, "/");
    for (n = strlen(directory); n > 0 && directory[n - 1] == '/';)
        directory[--n] = '\0';
    return *directory && strcmp(directory, ".") != 0 ? directory : NULL;
}

static int read_control_file(void *user, struct str *out)
{
    const struct control_use *use = user;
    const char *control;
    int error = become_user(use->live, &control);
    CLEANUP_FREE char *path = error ? NULL : place_join(control, use->file);
    return error ? error : path ? file_read(AT_FDCWD, path, REPLY_MOST, out) : -ENOMEM;
}

static void read_some_files(const struct live *live, size_t count, const char *name, struct client_answer *answers)
{
    uint64_t deadline = clock_now() + REQUEST_FILE_SECONDS * SECOND;
    struct control_use use[LIVE_PROBES_MOST];
    struct guard guard[LIVE_PROBES_MOST];
    for (size_t i = 0; i < count; i++) {
        use[i] = (struct control_use){.live = &live[i], .file = name};
        answers[i] = (struct client_answer){.text = STR_INIT};
        answers[i].error = live[i].control ? guard_start(read_control_file, &use[i], &guard[i]) : -ENOENT;
    }
    for (size_t i = 0; i < count; i++) {
        int servers = 0;
        if (answers[i].error)
            continue;
        answers[i].error = guard_await(&guard[i], deadline, &answers[i].text);
        while (client_asks_again(answers[i].error, 0, &servers)) {
            str_clear(&answers[i].text);
            answers[i].error = guard_start(read_control_file, &use[i], &guard[i]);
            if (!answers[i].error)
                answers[i].error = guard_await(&guard[i], deadline, &answers[i].text);
        }
    }
}

void client_files(const struct live *live, size_t count, const char *name, struct client_answer *answers)
{
    for (size_t i = 0; i < count; i += LIVE_PROBES_MOST)
        read_some_files(live + i, count - i < LIVE_PROBES_MOST ? count - i : LIVE_PROBES_MOST, name, answers + i);
}

int client_file(const struct live *live, const char *name, struct str *out)
{
    struct control_use use = {.live = live, .file = name};
    size_t before = out->length;
    int error, servers = 0;
    do {
        out->length = before;
        error = guard_run(read_control_file, &use, REQUEST_FILE_SECONDS, out);
    } while (client_asks_again(error, 0, &servers));
    return error;
}
