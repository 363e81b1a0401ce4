/* Runs fusermount3, which mounts and sends the descriptor of /dev/fuse over a socket named by _FUSE_COMMFD. If it
 * fails, its stderr has the reason. */
#include "fs/attach/attach-inside.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/parcel.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { EXIT_MISSING = 127 };

struct mount_helper {
    pid_t pid;
    int socket;   /* our end */
    int messages; /* its stderr */
};

static _Noreturn void helper_execute(char *const argv[], int commfd, int messages)
{
    char number[16];
    dup2(messages, STDERR_FILENO);
    dup2(messages, STDOUT_FILENO);
    snprintf(number, sizeof number, "%d", commfd);
    fcntl(commfd, F_SETFD, 0);
    setenv("_FUSE_COMMFD", number, 1);
    execvp(argv[0], argv);
    execv("/usr/bin/fusermount3", argv);
    execv("/bin/fusermount3", argv);
    _exit(EXIT_MISSING);
}

static int helper_start(struct mount_helper *h, char *const argv[], struct str *why)
{
    int pair[2] = {-1, -1}, pipe[2] = {-1, -1};
    bool ready = pipe2(pipe, O_CLOEXEC) == 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0;
    h->pid = ready ? fork() : -1;
    if (h->pid == 0)
        helper_execute(argv, pair[1], pipe[1]);
    int error = h->pid < 0 ? -errno : 0;
    CLEANUP_CLOSE int messages = pipe[0], said = pipe[1], socket = pair[0], given = pair[1];
    if (error)
        return str_fail(why, error, "run fusermount3: %s", strerror(-error));
    h->messages = steal_fd(messages);
    h->socket = steal_fd(socket);
    return 0;
}

static int receive_fd(int socket, int *fd)
{
    char byte;
    *fd = -1;
    ssize_t n = parcel_receive(socket, &byte, 1, fd, 1, NULL);
    return n < 0 ? (int)n : *fd < 0 ? -EPROTO : 0;
}

/* Its exit status; `said`: the first line of its stderr. */
static int helper_end(struct mount_helper *h, struct str *said)
{
    int status = 0;
    file_read_fd(h->messages, 65536, said);
    close(h->messages);
    close(h->socket);
    while (waitpid(h->pid, &status, 0) < 0 && errno == EINTR)
        ;
    char *newline = said->length ? strchr(said->data, '\n') : NULL;
    if (newline) {
        *newline = '\0';
        said->length = (size_t)(newline - said->data);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static int helper_refusal(const char *verb, const char *path, int status, const struct str *said, struct str *why)
{
    str_addf(why, "%s ", verb);
    str_add_printable(why, path, strlen(path));
    if (status == EXIT_MISSING)
        return str_fail(
            why, -ENOENT,
            ": fusermount3 is not installed, and only root can mount without it: install the package fuse3");
    str_addf(why, ": %s", said->length ? said->data : "fusermount3 failed without a message");
    if (said->length == 0)
        return -EPERM;
    if (strstr(said->data, "busy"))
        return -EBUSY;
    if (strstr(said->data, "not found in") || strstr(said->data, "Invalid argument"))
        return -EINVAL;
    return -EPERM;
}

/* fusermount3 splits options at commas that are not preceded by a backslash. */
static void add_escaped(struct str *s, const char *text)
{
    for (; *text; text++) {
        if (*text == ',' || *text == '\\')
            str_adds(s, "\\");
        str_add(s, text, 1);
    }
}

int fusermount_mount(const char *path, const struct attach_options *options, int *fd, struct str *why)
{
    CLEANUP_STR struct str list = STR_INIT, said = STR_INIT;
    struct mount_helper helper;
    int received = -1;
    str_addf(&list, "%s,nosuid,nodev,subtype=%s%s,fsname=", options->read_only ? "ro" : "rw", options->subtype,
             options->unchecked ? "" : ",default_permissions");
    add_escaped(&list, options->source);
    if (options->allow_other)
        str_adds(&list, ",allow_other");
    if (options->no_exec)
        str_adds(&list, ",noexec");
    if (list.failed)
        return -ENOMEM;

    char *argv[] = {(char *)"fusermount3", (char *)"-o", list.data, (char *)"--", (char *)path, NULL};
    int error = helper_start(&helper, argv, why);
    if (error)
        return error;
    error = receive_fd(helper.socket, &received);
    int status = helper_end(&helper, &said);
    if (status == 0 && !error) {
        *fd = received;
        return 0;
    }
    if (received >= 0)
        close(received);
    return helper_refusal("mount", path, status, &said, why);
}

int fusermount_unmount(const char *path, bool lazy, struct str *why)
{
    CLEANUP_STR struct str said = STR_INIT;
    struct mount_helper helper;
    char *argv[] = {(char *)"fusermount3", (char *)(lazy ? "-uz" : "-u"), (char *)"--", (char *)path, NULL};
    int error = helper_start(&helper, argv, why);
    if (error)
        return error;
    int status = helper_end(&helper, &said);
    return status == 0 ? 0 : helper_refusal("unmount", path, status, &said, why);
}
