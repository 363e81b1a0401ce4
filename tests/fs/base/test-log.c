/* fs/base/log.h: lines, levels, areas, limits; from several threads and processes. */
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "tests/fs/base/moved-clock.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct str text;

/* What was logged since the last call. */
static const char *logged(int fd)
{
    static off_t from;
    str_clear(&text);
    lseek(fd, from, SEEK_SET);
    if (file_read_fd(fd, 64 << 20, &text))
        bail_out("cannot read the log");
    from += (off_t)text.length;
    return text.data;
}

static bool matches(const char *line, const char *pattern)
{
    regex_t re;
    if (regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB))
        bail_out("bad pattern");
    bool yes = regexec(&re, line, 0, NULL, 0) == 0;
    regfree(&re);
    if (!yes)
        diag("'%s' does not match %s", line, pattern);
    return yes;
}

static void test_before_open(int fd)
{
    int saved = dup(STDERR_FILENO);
    dup2(fd, STDERR_FILENO);
    log_error("open %s: %s", "/data/x", "Permission denied");
    log_warning("take care");
    dup2(saved, STDERR_FILENO);
    close(saved);
    ok(matches(logged(fd), "^(lt-)?test-log: open /data/x: Permission denied\ntest-log: warning: take care\n$"),
       "before log_open: for a person at a terminal");
}

static void test_lines(int fd)
{
    errno = EXDEV;
    log_info("hello %d", 7);
    is_int(errno, EXDEV, "errno is left alone");
    ok(matches(logged(fd), "^20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\\.[0-9]{3}Z info tester: "
                           "hello 7\n$"),
       "a line has time, level and program");
    log_set_node(3);
    log_error("a\nb\x1b[0m\tc");
    ok(matches(logged(fd), "Z error tester 3: a\\\\x0ab\\\\x1b\\[0m\tc\n$"), "one line, whatever stands in it");
    log_set_node(-1);
    struct tm told = {0};
    setenv("TZ", "TEST-5", 1);
    tzset();
    log_warning("now");
    strptime(logged(fd), "%Y-%m-%dT%H:%M:%S", &told);
    ok(labs(timegm(&told) - time(NULL)) < 3600, "the time is UTC");
    char *big = calloc(1, 10000);
    memset(big, 'x', 9999);
    log_error("%s", big);
    free(big);
    logged(fd);
    ok(text.length > 3800 && text.length <= PIPE_BUF && strcmp(text.data + text.length - 5, " ...\n") == 0,
       "a message too long is cut and says so");
}

static void want(int fd, const char *areas)
{
    setenv("DEALFS_DEBUG", areas, 1);
    log_open("tester", fd, false);
}

static void test_debug(int fd)
{
    log_debug("scan", "unwanted");
    ok(!log_wants("scan"), "no area is wanted at first");
    want(fd, "scan,slots");
    ok(log_wants("scan") && log_wants("slots") && !log_wants("sca") && !log_wants("slot"), "areas are whole words");
    log_debug("scan", "wanted %d", 1);
    log_debug("other", "unwanted");
    ok(matches(logged(fd), "^[^ ]+ debug tester: scan: wanted 1\n$"), "only the area that is wanted is logged");
    want(fd, "all");
    ok(log_wants("anything"), "all are wanted");
    want(fd, "");
    ok(!log_wants("scan"), "and none again");
}

static void test_limit(int fd)
{
    struct log_limit limit = {0};
    int passed = 0;
    clock_stand();
    for (int i = 0; i < 10; i++)
        passed += log_limit_pass(&limit, 3);
    is_int(passed, 3, "three lines pass in a second");
    clock_add(SECOND);
    ok(log_limit_pass(&limit, 3), "a fourth line passes in the next one");
    ok(matches(logged(fd), "tester: 7 lines like the next one were left out\n$"), "which says how many were left out");
    clock_add(SECOND);
    ok(log_limit_pass(&limit, 3), "a fifth one in the one after it");
    logged(fd);
    is_uint(text.length, 0, "of which none was left out");
    clock_run();
}

static void *write_lines(void *user)
{
    for (int i = 0; i < 500; i++)
        log_info("%s line %d of a few words so that it is long enough to be torn", (const char *)user, i);
    return NULL;
}

static void test_many_writers(int fd)
{
    pid_t child = fork();
    pthread_t thread[3];
    for (size_t i = 0; i < 3; i++)
        pthread_create(&thread[i], NULL, write_lines, child ? (void *)"parent" : (void *)"child");
    for (size_t i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    int lines = 0, whole = 0;
    logged(fd);
    for (char *save, *line = strtok_r(text.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        lines++;
        whole += strncmp(line, "20", 2) == 0 && strlen(line) > 90 && strcmp(line + strlen(line) - 4, "torn") == 0;
    }
    is_int(lines, 3000, "every line of two processes with three threads is there");
    is_int(whole, 3000, "and whole");
}

static bool ends_with(const struct str *line, const char *end)
{
    return line->length >= strlen(end) && strcmp(line->data + line->length - strlen(end), end) == 0;
}

/* Adds what lines account for: themselves, or the lines of which they say that they were left out. */
static void count_lines(const char *bytes, size_t n, struct str *line, long *read_lines, long *left)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\r')
            continue;
        if (bytes[i] != '\n') {
            str_add(line, bytes + i, 1);
            continue;
        }
        if (ends_with(line, " lines were left out, because nobody read them"))
            *left += strtol(line->data, NULL, 10);
        *read_lines += ends_with(line, " that nobody reads");
        str_clear(line);
    }
}

/* Nobody reads at the other end: who logs does not wait. Then one reads, and each line is there or counted as left out.
 * A terminal passes bytes on when the kernel finds time: at any moment there may be room, and nothing to read. */
static void test_unread(int to, int from, const char *what)
{
    static char bytes[1 << 12];
    struct str line = {0};
    long logged_lines = 5000, read_lines = 0, left = 0;
    log_open("tester", to, false);
    for (int i = 0; i < 5000; i++)
        log_info("line %d that nobody reads", i);
    pass("%s that is full stops nobody", what);
    fcntl(from, F_SETFL, O_NONBLOCK);
    while (!left || read_lines + left < logged_lines) {
        struct pollfd ready = {.fd = from, .events = POLLIN};
        ssize_t n = poll(&ready, 1, 10) > 0 ? read(from, bytes, sizeof bytes) : 0;
        if (n > 0) {
            count_lines(bytes, (size_t)n, &line, &read_lines, &left);
            continue;
        }
        log_info("line %ld that nobody reads", logged_lines++);
    }
    ok(read_lines > 10 && read_lines + left == logged_lines, "each is read or counted: %ld and %ld of %ld", read_lines,
       left, logged_lines);
    str_fini(&line);
}

static void test_readers(void)
{
    int ends[2], master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (pipe2(ends, O_CLOEXEC) || master < 0 || grantpt(master) || unlockpt(master))
        bail_out("pipe, terminal: %s", strerror(errno));
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    test_unread(ends[1], ends[0], "a pipe");
    test_unread(slave, master, "a terminal");
    close(slave);
    close(master);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    int fd = open(test_path("log"), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        bail_out("open log: %s", strerror(errno));
    test_before_open(fd);
    unsetenv("DEALFS_DEBUG");
    log_open("tester", fd, false);
    test_lines(fd);
    test_debug(fd);
    test_limit(fd);
    test_many_writers(fd);
    test_readers();
    str_fini(&text);
    close(fd);
    return done_testing();
}
