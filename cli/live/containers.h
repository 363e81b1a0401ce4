/* The records of all containers of a mount that are chosen, found by several threads and written in order. */
#ifndef CLI_LIVE_CONTAINERS_H
#define CLI_LIVE_CONTAINERS_H

#include "cli/live/chosen-files.h"
#include "fs/records/container.h"

enum { CONTAINER_JOBS = 64 };

struct containers_wish {
    struct files_wish files;
    const struct container_format *format; /* NULL: recognised */
    uint32_t row;                          /* bytes of a row, of the format `fixed` */
    bool skip_broken;
    bool text; /* write text in any case */
    int jobs;  /* containers in work at the same time, up to CONTAINER_JOBS; 0: by the number of nodes */
};

struct containers_found {
    const struct container_format *format; /* of all of them; NULL: they have no records */
    bool text;                             /* the records are lines of text: not packed */
    uint64_t containers, records, bytes;   /* bytes: of the containers */
    uint64_t left_out;                     /* broken ones */
};

/* Writes the records to `spool`, in the order of the containers in the mount's list of samples: packed, or as text
 * where they have keys. Shows the progress. 0; -EINTR: a signal was caught; else -errno, and `why` names the
 * container. */
int containers_index(const struct live *live, const struct containers_wish *wish, int spool,
                     struct containers_found *found, struct str *why);

#endif
