/* Finds the records of all chosen containers of a mount, with several threads, and writes them in order. */
#ifndef CLI_LIVE_CONTAINERS_H
#define CLI_LIVE_CONTAINERS_H

#include "cli/live/chosen-files.h"
#include "fs/records/container.h"

enum { CONTAINER_JOBS = 64 };

struct containers_wish {
    struct files_wish files;
    const struct container_format *format; /* NULL: detect it */
    uint32_t row;                          /* bytes of a row, for the format `fixed` */
    bool skip_broken;
    bool text; /* always write text */
    int jobs;  /* maximum concurrent containers, up to CONTAINER_JOBS; 0: chosen by the number of nodes */
};

struct containers_found {
    const struct container_format *format; /* of all of them; NULL: there are no records */
    bool text;                             /* the records are lines of text, not packed */
    uint64_t containers, records, bytes;   /* bytes: of the containers */
    uint64_t left_out;                     /* number of broken ones */
};

/* Writes the records to `spool`, in the order of the containers in the mount's list of samples: packed, or as text if
 * they have keys. Shows the progress. 0; -EINTR: a signal was caught; else -errno, and `why` names the container. */
int containers_index(const struct live *live, const struct containers_wish *wish, int spool,
                     struct containers_found *found, struct str *why);

#endif
