/* Which process the kernel kills when memory runs out: a server or a feeder, which can be restarted, rather than the
 * keeper or its standby, which hold the mount. */
#ifndef FS_KEEPER_OOM_H
#define FS_KEEPER_OOM_H

enum { OOM_TEXT = 16 };

/* Protects this process and its children. `children`: gets the score for servers and feeders, for oom_set. */
void oom_protect(char children[OOM_TEXT]);
void oom_set(const char *score); /* of this process; "": unchanged */

#endif
