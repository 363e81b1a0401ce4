/* Containers that other nodes own are parsed by them; see verb `index` in dealfs-control(5). */
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
    const char *format; /* "any": recognised */
    bool text;
    /* Some of the records, in order; not 0: ends the question, which returns it. */
    int (*take)(void *user, const struct index_answer *answer, const char *bytes, size_t n);
    bool (*seen)(void *user, uint64_t bytes); /* of the container, so far; false: the question ends with -EINTR */
    void *user;
};

/* 0: all records were taken. -EREMOTE: the container is to be parsed here; some records may have been taken.
 * -EBADMSG, -ENOTSUP or -EFBIG, as of container_scan, and why. */
int owner_ask(const struct owner_question *question, struct str *why);
uint32_t owner_nodes(const struct live *live); /* of the world, or of the last one; 1: nobody can be asked */

#endif
