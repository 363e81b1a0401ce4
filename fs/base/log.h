/* One log for every process of a node: a line has a time, a level, the program and the node number.
 *
 * Until log_open the lines go to stderr, without the time. Every function may be called from any thread. */
#ifndef FS_BASE_LOG_H
#define FS_BASE_LOG_H

#include <stdbool.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Where the lines go. `fd` is not closed by the log; `syslog` also sends warnings and errors there.
 * `program` must live as long as the process. */
void log_open(const char *program, int fd, bool syslog);
void log_set_node(int number); /* -1: none */

/* Is the area one of those that DEALFS_DEBUG names, separated by commas, or is that "all"? It is read at log_open. */
bool log_wants(const char *area);

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(area, ...)                                                                                           \
    do {                                                                                                               \
        if (log_wants(area))                                                                                           \
            log_line(LOG_LEVEL_DEBUG, area ": " __VA_ARGS__);                                                          \
    } while (0)

/* For what may happen a million times: at most `burst` lines a second from one place in the code; how many were
 * left out is said with the next line that is let through. */
struct log_limit {
    long second;
    int lines, dropped;
};
bool log_limit_pass(struct log_limit *limit, int burst);
#define log_limited(level, burst, ...)                                                                                 \
    do {                                                                                                               \
        static struct log_limit limit_;                                                                                \
        if (log_limit_pass(&limit_, burst))                                                                            \
            log_line(level, __VA_ARGS__);                                                                              \
    } while (0)

#endif
