/* Lets other nodes parse the containers that they own; see the verb `index` in dealfs-control(5). */
#ifndef CLI_LIVE_OWNER_ASK_H
#define CLI_LIVE_OWNER_ASK_H

#include "cli/live/live.h"
#include "fs/base/str.h"
#include "fs/wire/indexing.h"

#include <stdbool.h>
#include <stddef.h>

struct owner_question {
    const struct live *live;
    uint32_t file;
    const char *format; /* "any": detect it */
    bool text;
    /* Called with some of the records, in order; a nonzero result ends the question and is returned. */
    int (*take)(void *user, const struct index_answer *answer, const char *bytes, size_t n);
    bool (*seen)(void *user, uint64_t bytes); /* bytes of the container so far; false: end with -EINTR */
    void *user;
};

/* 0: all records were taken. -EREMOTE: parse the container here; some records may have been taken. -EBADMSG, -ENOTSUP
 * or -EFBIG, as from container_scan, and why. */
int owner_ask(const struct owner_question *question, struct str *why);
uint32_t owner_nodes(const struct live *live); /* in the current or last world; 1: no other node can be asked */

#endif
