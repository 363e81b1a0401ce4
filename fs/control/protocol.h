/* A request of the control protocol: `VERB key=value key=value …`, a line end, and for some verbs a payload.
 *
 * Pure: knows neither FUSE nor the mount. */
#ifndef FS_CONTROL_PROTOCOL_H
#define FS_CONTROL_PROTOCOL_H

#include "fs/base/keys.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct charge;
struct control;
struct request;

enum { REQUEST_LINE_MOST = 65536 }; /* bytes of the first line */

/* Who asks. */
struct asker {
    bool (*gave_up)(void *user); /* nobody waits for the reply any more; NULL: always somebody does */
    void *user;
    struct charge *charge; /* for the reply, and in whose name anything else is; NULL: without a bound */
    pid_t pid;             /* as the kernel gives it: 0 where it cannot be known */
};

static inline bool asker_gave_up(const struct asker *asker)
{
    return asker->gave_up && asker->gave_up(asker->user);
}

/* What a request can ask for. A verb with payload_most 0 takes no payload. */
struct verb {
    const char *name;
    const char *about; /* in the usage: payload and reply */
    const struct key *keys;
    uint64_t payload_most;
    /* 0 and `reply`, or -errno and `why` in words: then nothing was changed. */
    int (*run)(struct control *control, const struct request *request, const struct asker *asker, struct str *reply,
               struct str *why);
};

struct request {
    const struct verb *verb;
    struct key_value value[KEYS_MOST]; /* in the order of verb->keys */
    const char *payload;               /* borrowed from the bytes that were parsed */
    size_t payload_length;
    char *line; /* what the values point into */
};

#define REQUEST_INIT                                                                                                   \
    {                                                                                                                  \
        0                                                                                                              \
    }
#define CLEANUP_REQUEST __attribute__((cleanup(request_fini)))

/* The whole request; `verbs` ends with NULL. 0, or -errno and why it is refused. */
int request_parse(const struct verb *const *verbs, const char *bytes, size_t n, struct request *request,
                  struct str *why);
/* The first line alone, without its line end; to refuse it before there is all of a payload. */
int request_parse_line(const struct verb *const *verbs, const char *line, size_t n, struct request *request,
                       struct str *why);
void request_fini(struct request *request);
/* Shells like to add an empty line; that is no payload. */
bool request_only_line_ends(const char *bytes, size_t n);

/* The key of verbs that take records, and the separator that its value names. */
#define REQUEST_SEP                                                                                                    \
    {                                                                                                                  \
        .name = "sep", .choices = "lf|nul"                                                                             \
    }
static inline char request_separator(const struct key_value *sep)
{
    return sep->choice == 0 ? '\n' : '\0';
}

/* Of a payload of records that each end with `separator`, the next one; the last may lack its end. A carriage return
 * before a newline belongs to the line end. `*rest` and `*n` move past it. False: there is none left. */
bool request_record(const char **rest, size_t *n, char separator, const char **record, size_t *length);

#endif
