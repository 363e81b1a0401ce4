/* One log for every process of a node: a line has a time, a level, the program and the node number.
 *
 * Until log_open, lines go to stderr without the time. Any thread may call these functions. */
#ifndef FS_BASE_LOG_H
#define FS_BASE_LOG_H

#include <stdbool.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Sets the destination. The log does not close `fd`; `syslog`: also send warnings and errors there. `program` must
 * stay valid. From then on a line that cannot be written at once to a pipe or a terminal is left out. */
void log_open(const char *program, int fd, bool syslog);
void log_set_node(int number); /* -1: none */

/* Is the area in DEALFS_DEBUG, a list with commas, or is that "all"? It is read by log_open. */
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

/* For events that may happen a million times: at most `burst` lines per second from one place in the code; the next
 * line says how many were left out. */
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
