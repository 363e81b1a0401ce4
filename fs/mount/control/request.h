/* A request of the control protocol: `VERB key=value key=value …`, a line end, and for some verbs a payload.
 *
 * Pure: knows neither FUSE nor the mount. The pairs are parsed apart from the verb, so that a file name made of pairs
 * (`plan/KEY=VALUE,…`) goes through the same code with a comma between them. */
#ifndef FS_MOUNT_CONTROL_REQUEST_H
#define FS_MOUNT_CONTROL_REQUEST_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct control;
struct request;

enum {
    REQUEST_KEYS = 24,         /* at most this many for one verb */
    REQUEST_LINE_MOST = 65536, /* bytes of the first line */
};

struct request_key {
    const char *name;
    const char *choices; /* "lf|nul"; NULL: any value */
    bool required;
};

/* Who asks. */
struct asker {
    bool (*gave_up)(void *user); /* nobody waits for the reply any more; NULL: always somebody does */
    void *user;
};

/* What a request can ask for. A verb with payload_most 0 takes no payload. */
struct verb {
    const char *name;
    const char *usage;              /* its line in the usage text */
    const struct request_key *keys; /* ends with a name of NULL */
    uint64_t payload_most;
    /* 0 and `reply`, or -errno and `why` in words: then nothing was changed. */
    int (*run)(struct control *control, const struct request *request, const struct asker *asker, struct str *reply,
               struct str *why);
};

struct request_value {
    const char *text; /* NULL: not given. Decoded, NUL-terminated, without NUL bytes in it */
    size_t length;
};

struct request {
    const struct verb *verb;
    struct request_value value[REQUEST_KEYS]; /* in the order of verb->keys */
    const char *payload;                      /* borrowed from the bytes that were parsed */
    size_t payload_length;
    char *line; /* what the values point into */
};

#define REQUEST_INIT {0}
#define CLEANUP_REQUEST __attribute__((cleanup(request_fini)))

/* The whole request; `verbs` ends with NULL. 0, or -errno and why it is refused. */
int request_parse(const struct verb *const *verbs, const char *bytes, size_t n, struct request *request,
                  struct str *why);
/* The first line alone, without its line end. */
int request_parse_line(const struct verb *const *verbs, const char *line, size_t n, struct request *request,
                       struct str *why);
/* `key=value` pairs of a known verb, with `separator` between them; `text` is changed and must outlive the request. */
int request_parse_pairs(const struct verb *verb, char *text, size_t n, char separator, struct request *request,
                        struct str *why);
void request_fini(struct request *request);

/* Values by key, which must be one of the verb's. */
const char *request_text(const struct request *request, const char *key, const char *otherwise);
/* '\n' or '\0', from a key `sep` with the choices lf and nul. */
char request_separator(const struct request *request);

/* Of a payload of records that each end with `separator`, the next one; the last may lack its end. A carriage return
 * before a newline belongs to the line end. `*rest` and `*n` move past it. False: there is none left. */
bool request_record(const char **rest, size_t *n, char separator, const char **record, size_t *length);

#endif
