/* Parses requests of the control protocol: `VERB key=value key=value …`, a line end, and for some verbs a payload.
 *
 * Pure: without FUSE and without access to the mount. */
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

enum { REQUEST_LINE_MOST = 1 << 20 }; /* maximum bytes of the first line */

/* The process that asks. */
struct asker {
    bool (*gave_up)(void *user); /* true: nobody waits for the reply any more; NULL: the reply is always awaited */
    void *user;
    struct charge *charge; /* for the reply and all else that the request needs; NULL: unlimited */
    pid_t pid;             /* as the kernel reports it; 0: unknown */
    struct str *reply;     /* of a request that succeeded */
    struct str *why;       /* why it was rejected, in words */
};

static inline bool asker_gave_up(const struct asker *asker)
{
    return asker->gave_up && asker->gave_up(asker->user);
}

/* A verb. With payload_most 0 it takes no payload. */
struct verb {
    const char *name;
    const char *about; /* for the usage: payload and reply */
    const struct key *keys;
    uint64_t payload_most;
    /* 0 and the asker's reply; or -errno and why, and nothing was changed. */
    int (*run)(struct control *control, const struct request *request, const struct asker *asker);
};

struct request {
    const struct verb *verb;
    struct key_value value[KEYS_MOST]; /* in the order of verb->keys */
    const char *payload;               /* borrowed from the parsed bytes */
    size_t payload_length;
    char *line; /* the values point into this */
};

#define REQUEST_INIT                                                                                                   \
    {                                                                                                                  \
        0                                                                                                              \
    }
#define CLEANUP_REQUEST __attribute__((cleanup(request_fini)))

/* Parse a whole request; `verbs` ends with NULL. 0, or -errno and why it is rejected. */
int request_parse(const struct verb *const *verbs, const char *bytes, size_t n, struct request *request,
                  struct str *why);
/* Parse only the first line, without its line end, to reject a request before its payload arrives. */
int request_parse_line(const struct verb *const *verbs, const char *line, size_t n, struct request *request,
                       struct str *why);
void request_fini(struct request *request);
/* Shells append empty lines; these are no payload. */
bool request_only_line_ends(const char *bytes, size_t n);

/* The key of verbs whose payload has records, and the separator for its value. */
#define REQUEST_SEP                                                                                                    \
    {                                                                                                                  \
        .name = "sep", .choices = "lf|nul"                                                                             \
    }
static inline char request_separator(const struct key_value *sep)
{
    return sep->choice == 0 ? '\n' : '\0';
}

#endif
