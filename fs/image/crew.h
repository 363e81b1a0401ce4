/* Processes that make pictures smaller. One that dies, or does not come back, costs the picture that it worked on:
 * another takes its place. Nothing here calls libjpeg. */
#ifndef FS_IMAGE_CREW_H
#define FS_IMAGE_CREW_H

#include "fs/image/image.h"

#include <sys/types.h>

struct crew;

/* `program` is executed as `program --worker`, which calls crew_work; processes are started when they are needed, as
 * many as there are callers at once. */
int crew_create(const char *program, struct crew **crew);
/* Its processes are this user's where ours is root's: before the first picture. */
void crew_become(struct crew *crew, uid_t uid, gid_t gid);
void crew_rest(struct crew *crew);    /* ends those that have nothing to do, until there is more */
void crew_stop(struct crew *crew);    /* ends the processes: who waits for one is told that it has died */
void crew_destroy(struct crew *crew); /* no caller is in it any more; ends the processes */

/* image_shrink, in another process. Any thread; waits. IMAGE_CRASHED: it died of it, or was killed after a minute. */
enum image_verdict crew_shrink(struct crew *crew, const void *bytes, size_t n, const struct image_shrinking *wanted,
                               struct str *out, struct image_reason *reason);

/* In the process, with what follows `--worker` in its arguments: lays down what rights it has, and answers on stdin, a
 * socket, until that is closed. Its exit status. For tests the environment has DEALFS_IMAGE_FAULT=crash=LENGTH or
 * hang=LENGTH: what becomes of a file of that length. */
int crew_work(char **user);

#endif
