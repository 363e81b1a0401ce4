/* fs/base/log.h: lines, levels, areas, limits; from several threads and processes. */
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
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
    char now[32];
    time_t t = time(NULL);
    strftime(now, sizeof now, "%Y-%m-%dT%H:%M", gmtime(&t));
    log_set_node(3);
    log_error("a\nb\x1b[0m\tc");
    ok(matches(logged(fd), "Z error tester 3: a\\\\x0ab\\\\x1b\\[0m\tc\n$"), "one line, whatever stands in it");
    log_set_node(-1);
    log_warning("now");
    ok(strncmp(logged(fd), now, 14) == 0, "the time is UTC");
    char *big = calloc(1, 10000);
    memset(big, 'x', 9999);
    log_error("%s", big);
    free(big);
    logged(fd);
    ok(text.length > 4000 && text.length < 4400 && strcmp(text.data + text.length - 5, " ...\n") == 0,
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
    int passed = 0, calls = 0;
    uint64_t end = clock_now() + 20 * UINT64_C(1000000000);
    while (passed <= 3 && clock_now() < end) {
        passed += log_limit_pass(&limit, 3);
        calls++;
    }
    logged(fd);
    is_int(passed, 4, "a fourth line passes in a later second");
    ok(matches(text.data, "[0-9]+ lines like the next one were left out\n$"), "which says how many were left out");
    const char *said = strstr(text.data, "tester: ");
    is_int(said ? strtol(said + 8, NULL, 10) : -1, calls - passed, "all of them");
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
    str_fini(&text);
    close(fd);
    return done_testing();
}
