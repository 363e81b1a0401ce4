/* The last requests that were rejected or abandoned, for the file `errors`. Any thread. */
#ifndef FS_CONTROL_REFUSALS_H
#define FS_CONTROL_REFUSALS_H

#include "fs/base/str.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { REFUSALS = 128, REFUSAL_LINE_SHOWN = 256 };

struct refusal {
    uint64_t time; /* nanoseconds since 1970 */
    uid_t uid;
    pid_t pid;
    char *text; /* request line, a tab, the reason; printable */
};

struct refusal_ring {
    struct refusal at[REFUSALS];
    uint64_t count; /* total number; the newest is at (count - 1) % REFUSALS */
};

/* Separate for the mount's owner and for other users, who must not displace the owner's. */
struct refusals {
    pthread_mutex_t lock; /* guards all fields below */
    struct refusal_ring own, others;
};

void refusals_init(struct refusals *r);
void refusals_fini(struct refusals *r);
/* The beginning of a request line, a tab: to which the reason is appended. */
void refusal_begin(struct str *text, const char *line, size_t n);
void refusals_add(struct refusals *r, bool other, struct refusal refusal); /* takes the text */
uint64_t refusals_count(struct refusals *r);                               /* total number */
/* Oldest first, one line each: time (UTC), uid, pid, request line, reason, separated by tabs. */
void refusals_text(struct refusals *r, struct str *text);

#endif
