/* Processes that work on images. One that dies, or does not come back, costs the image that it worked on: another
 * takes its place. Nothing here calls libjpeg. */
#ifndef FS_IMAGE_CREW_H
#define FS_IMAGE_CREW_H

#include "fs/image/image.h"

struct crew;

/* Asked some times per second while a process is waited for: true, and it is ended. */
struct crew_care {
    bool (*gave_up)(void *user); /* NULL: nobody gives up */
    void *user;
};

/* `program` is executed as `program --worker`, which calls crew_work; processes are started when they are needed, as
 * many as there are callers at once. */
int crew_create(const char *program, struct crew **crew);
void crew_heed(struct crew *crew, struct crew_care care); /* for crew_shrink; before the first image */
void crew_rest(struct crew *crew);                        /* ends those that have nothing to do, until there is more */
void crew_stop(struct crew *crew);    /* ends the processes: who waits for one is told that it has died */
void crew_destroy(struct crew *crew); /* no caller is in it any more; ends the processes */

/* These are done by another process. Any thread; they wait. IMAGE_CRASHED: it died of it, or was ended after a minute
 * (DEALFS_IMAGE_PATIENCE, in seconds), or because nobody wanted the answer any more. */

/* image_shrink */
enum image_verdict crew_shrink(struct crew *crew, const void *bytes, size_t n, const struct image_shrinking *wanted,
                               struct str *out, struct image_reason *reason);
/* image_probe, with the usual limits. */
enum image_verdict crew_probe(struct crew *crew, const void *bytes, size_t n, struct crew_care care,
                              struct image_info *info, struct image_reason *reason);

/* Pixels are decoded, in the size that image_decoded tells, and then resized, if need be. */
struct crew_decoding {
    struct image_wish wish;
    struct image_pixels decoded, shown; /* without `data` */
};
/* `pixels`: as many bytes as `shown` has. Each process writes into a slot of its own, and what is in there is copied:
 * one that an image has taken over reaches no other, but those that it is asked for itself. crew_decoding_slot: how
 * much that takes; a process keeps a part of it for the next picture. */
enum image_verdict crew_decode(struct crew *crew, const void *bytes, size_t n, const struct crew_decoding *wanted,
                               struct crew_care care, void *pixels, struct image_reason *reason);
size_t crew_decoding_slot(const struct crew_decoding *wanted, size_t n);

/* In the process: lays down what rights it has (confine.h), and answers on stdin, a socket, until that is closed. Its
 * exit status. For tests the environment has DEALFS_IMAGE_FAULT=FAULT=LENGTH, by the table in crew-work.c: what becomes
 * of a file of that length when it is shrunk or decoded. */
int crew_work(void);

#endif
