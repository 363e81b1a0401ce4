/* Processes that work on images. If one dies or hangs, only its current image fails, and another process replaces it.
 * Nothing here calls libjpeg. */
#ifndef FS_IMAGE_CREW_H
#define FS_IMAGE_CREW_H

#include "fs/image/image.h"

struct crew;

/* Called several times per second while a process works; true: end the process. */
struct crew_care {
    bool (*gave_up)(void *user); /* NULL: never */
    void *user;
};

/* `program` is executed as `program --worker`, which calls crew_work. Processes are started on demand, one per
 * concurrent caller. */
int crew_create(const char *program, struct crew **crew);
void crew_heed(struct crew *crew, struct crew_care care); /* for crew_shrink; before the first image */
/* Bytes of memory that processes need together for the images that crew_shrink has; an image that needs more has them
 * alone. Each image costs a look at its header. Before the first image; default: unlimited. */
void crew_allow(struct crew *crew, uint64_t bytes);
#define CREW_SHRINK_MEMORY (UINT64_C(1) << 30) /* usual: as much as the limits of one image allow */
void crew_rest(struct crew *crew);             /* ends idle processes, until there is work */
void crew_stop(struct crew *crew);             /* ends all processes: waiting callers get IMAGE_CRASHED */
void crew_destroy(struct crew *crew);          /* only when no caller uses it; ends the processes */

/* Another process does the work. Any thread; these functions wait. IMAGE_CRASHED: the process died, or was ended after
 * a minute (DEALFS_IMAGE_PATIENCE, in seconds), or because nobody wanted the answer any more. */

/* like image_shrink */
enum image_verdict crew_shrink(struct crew *crew, const void *bytes, size_t n, const struct image_shrinking *wanted,
                               struct str *out, struct image_reason *reason);

/* A file, or its beginning; and who waits for the answer. */
struct crew_file {
    const void *bytes;
    size_t length;
    struct crew_care care;
};
/* like image_probe, with the usual limits */
enum image_verdict crew_probe(struct crew *crew, const struct crew_file *file, struct image_info *info,
                              struct image_reason *reason);

/* Pixels are decoded in the size that image_decoded returns, then resized if necessary. */
struct crew_decoding {
    struct image_wish wish;
    struct image_pixels decoded, shown; /* without `data` */
};
/* `pixels` must have room for all of `shown`. Each process has its own slot, whose contents are copied: a process that
 * an image has taken over can only affect images that it is asked for. crew_decoding_slot: size of the slot; a process
 * keeps a part of it for the next image. */
enum image_verdict crew_decode(struct crew *crew, const struct crew_file *file, const struct crew_decoding *wanted,
                               void *pixels, struct image_reason *reason);
size_t crew_decoding_slot(const struct crew_decoding *wanted, size_t n);

/* The process: gives up its rights (confine.h), and answers on stdin, a socket, until that is closed. Returns its exit
 * status. For tests, DEALFS_IMAGE_FAULT=FAULT=LENGTH in the environment selects a fault of the table in crew-work.c for
 * files of that length. */
int crew_work(void);

#endif
