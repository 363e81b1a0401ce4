/* The log: each line is one write(2), so that lines of several processes in one file stay whole.
 *
 * Threads: the settings are atomics. Only log_open writes the list of debug areas, before other threads exist. Writing
 * a line needs no lock and no memory, so that a child of a threaded process may log before it executes a program. */
#include "fs/base/log.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

/* A line fits into a pipe as a whole, or not at all. */
enum { LINE_BYTES = PIPE_BUF, MESSAGE_BYTES = LINE_BYTES - 256 };

static const char *program; /* NULL: log_open was not called */
static int log_fd = STDERR_FILENO, node = -1;
static bool to_syslog;
static bool may_block; /* log_fd is not a file: its reader may be stopped */
static int unread;     /* number of lines that were left out for that, or written in part */
static bool torn;      /* the last line was written in part */
static int terminal = -1;

static char areas[256]; /* "": none; else ",one,two," */

static const char *const level_names[] = {"error", "warning", "info", "debug"};

/* The same terminal without blocking, because a part of a line may have room. Others share the mode of `fd`. */
static int open_terminal(int fd)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int own = isatty(fd) == 1 ? open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
    if (own < 0)
        return fd;
    if (terminal >= 0)
        close(terminal);
    return terminal = own;
}

void log_open(const char *name, int fd, bool with_syslog)
{
    struct stat st;
    bool blocks = fstat(fd, &st) < 0 || !S_ISREG(st.st_mode);
    __atomic_store_n(&may_block, blocks, __ATOMIC_RELAXED);
    __atomic_store_n(&log_fd, blocks ? open_terminal(fd) : fd, __ATOMIC_RELAXED);
    __atomic_store_n(&program, name, __ATOMIC_RELEASE);
    if (with_syslog)
        openlog(name, LOG_PID | LOG_NDELAY, LOG_DAEMON);
    __atomic_store_n(&to_syslog, with_syslog, __ATOMIC_RELEASE);
    const char *wanted = getenv("DEALFS_DEBUG");
    if (wanted && *wanted)
        snprintf(areas, sizeof areas, ",%s,", wanted);
    else
        areas[0] = '\0';
}

void log_set_node(int number)
{
    __atomic_store_n(&node, number, __ATOMIC_RELAXED);
}

bool log_wants(const char *area)
{
    char word[64];
    if (!areas[0])
        return false;
    snprintf(word, sizeof word, ",%s,", area);
    return strstr(areas, word) || strstr(areas, ",all,");
}

/* UTC, computed from days instead of gmtime_r, which takes a lock of the C library that a forked child may find
 * locked. */
static int print_time(char *text, size_t n)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t seconds = now.tv_sec, days = seconds / 86400 + 719468;
    unsigned second = (unsigned)(seconds % 86400);
    int64_t era = days / 146097;
    unsigned day_of_era = (unsigned)(days % 146097);
    unsigned year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    unsigned day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    unsigned march_month = (5 * day_of_year + 2) / 153;
    unsigned day = day_of_year - (153 * march_month + 2) / 5 + 1;
    unsigned month = march_month < 10 ? march_month + 3 : march_month - 9;
    unsigned year = (unsigned)(era * 400) + year_of_era + (month <= 2);
    return snprintf(text, n, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ ", year, month, day, second / 3600, second / 60 % 60,
                    second % 60, (unsigned)(now.tv_nsec / 1000000));
}

/* "2025-01-31T12:00:00.123Z warning dealfs-server 0: ", or before log_open "dealfs: warning: ". */
static size_t print_prefix(char *text, size_t n, enum log_level level)
{
    const char *name = __atomic_load_n(&program, __ATOMIC_ACQUIRE);
    if (!name) {
        bool plain = level == LOG_LEVEL_ERROR || level == LOG_LEVEL_INFO;
        return (size_t)snprintf(text, n, "%.64s: %s%s", program_invocation_short_name, plain ? "" : level_names[level],
                                plain ? "" : ": ");
    }
    size_t used = (size_t)print_time(text, n);
    int number = __atomic_load_n(&node, __ATOMIC_RELAXED);
    used += (size_t)snprintf(text + used, n - used, "%s %.64s", level_names[level], name);
    if (number >= 0)
        used += (size_t)snprintf(text + used, n - used, " %d", number);
    return used + (size_t)snprintf(text + used, n - used, ": ");
}

/* Copy a message as one line: control characters become \xHH. */
static size_t copy_line(char *to, size_t n, const char *message)
{
    size_t used = 0;
    for (const unsigned char *p = (const unsigned char *)message; *p && used + 5 < n; p++)
        if ((*p < 0x20 && *p != '\t') || *p == 0x7f)
            used += (size_t)snprintf(to + used, n - used, "\\x%02x", *p);
        else
            to[used++] = (char)*p;
    to[used++] = '\n';
    return used;
}

/* A terminal does not know RWF_NOWAIT. Other errors mean that nobody will ever read it. */
static bool write_now(int fd, const char *line, size_t n)
{
    struct iovec part = {(char *)line, n};
    struct pollfd room = {.fd = fd, .events = POLLOUT};
    if (pwritev2(fd, &part, 1, -1, RWF_NOWAIT) >= 0)
        return true;
    if (errno != EOPNOTSUPP)
        return errno != EAGAIN;
    if (poll(&room, 1, 0) <= 0)
        return false;
    bool whole = file_write_all(fd, line, n) != -EAGAIN;
    __atomic_store_n(&torn, !whole, __ATOMIC_RELAXED);
    return whole;
}

/* Never waits for a reader, because then readers of the mount would also wait. */
static void write_line(const char *line, size_t n)
{
    int fd = __atomic_load_n(&log_fd, __ATOMIC_RELAXED);
    char text[128];
    if (!__atomic_load_n(&may_block, __ATOMIC_RELAXED)) {
        file_write_all(fd, line, n);
        return;
    }
    int before = __atomic_exchange_n(&unread, 0, __ATOMIC_RELAXED);
    int length = snprintf(text, sizeof text, "%s%d lines were left out, because nobody read them\n",
                          __atomic_load_n(&torn, __ATOMIC_RELAXED) ? " ...\n" : "", before);
    if (before && !write_now(fd, text, (size_t)length))
        __atomic_fetch_add(&unread, before, __ATOMIC_RELAXED);
    if (!write_now(fd, line, n))
        __atomic_fetch_add(&unread, 1, __ATOMIC_RELAXED);
}

void log_line(enum log_level level, const char *format, ...)
{
    KEEP_ERRNO;
    char message[MESSAGE_BYTES], line[LINE_BYTES];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (n >= MESSAGE_BYTES)
        memcpy(message + sizeof message - 5, " ...", 5);
    if (n >= 0) {
        size_t prefix = print_prefix(line, sizeof line, level);
        size_t length = prefix + copy_line(line + prefix, sizeof line - prefix, message);
        write_line(line, length);
        if (level <= LOG_LEVEL_WARNING && __atomic_load_n(&to_syslog, __ATOMIC_ACQUIRE))
            syslog(level == LOG_LEVEL_ERROR ? LOG_ERR : LOG_WARNING, "%.*s", (int)(length - prefix - 1), line + prefix);
    }
}

bool log_limit_pass(struct log_limit *limit, int burst)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    long second = now.tv_sec + 1; /* 0 is the initial state */
    long was = __atomic_load_n(&limit->second, __ATOMIC_RELAXED);
    if (was != second &&
        __atomic_compare_exchange_n(&limit->second, &was, second, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        __atomic_store_n(&limit->lines, 0, __ATOMIC_RELAXED);
        int dropped = __atomic_exchange_n(&limit->dropped, 0, __ATOMIC_RELAXED);
        if (dropped > 0)
            log_warning("%d lines like the next one were left out", dropped);
    }
    if (__atomic_fetch_add(&limit->lines, 1, __ATOMIC_RELAXED) < burst)
        return true;
    __atomic_fetch_add(&limit->dropped, 1, __ATOMIC_RELAXED);
    return false;
}
