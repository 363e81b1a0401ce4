/* What a live mount answers: requests through its control stream, and the files beside it. Never hangs: where the mount
 * does not answer within REQUEST_SECONDS it is -ETIMEDOUT.
 *
 * FUSE lets only its user into a mount without allow_other, and root neither: so root asks as that user. */
#ifndef CLI_LIVE_CLIENT_H
#define CLI_LIVE_CLIENT_H

#include "cli/live/live.h"

enum { REQUEST_SECONDS = 20, REQUEST_FILE_SECONDS = 5 };

/* For a command: the mount of a path, in no worse health than `worst`; that of LIVE_HUNG or better has a `control`. An
 * exit status; a failure has been said, and nothing is left in `live`. */
int client_find(const char *mountpoint, enum live_health worst, struct live *live);
/* From here on root is the mount's user, for good, and works in the mount without a guard. An exit status. */
int client_become(struct live *live);

/* A request that died with its server is asked again, of the next one: true, for a few servers. Such a death leaves
 * ESTALE and no word of a reason. All requests may be repeated. client_send, client_wait and client_file do so. */
bool client_asks_again(int error, size_t reason, int *servers);

/* Sends a request (its header line and payload). The reply is appended to `reply`. Where it was refused, `why` has the
 * reason in the mount's words; otherwise what failed. */
int client_send(const struct live *live, const void *request, size_t n, struct str *reply, struct str *why);

/* The same for as long as it takes, with no guard, after client_become: a signal that is caught (interrupt.h) ends it
 * with -EINTR. */
int client_wait(const struct live *live, const void *request, size_t n, struct str *reply, struct str *why);
/* " key=value" of a word KEY=VALUE, with the escapes of a request's line. False: it is no such word. */
bool client_add_pair(struct str *line, const char *word);
/* A directory for `under=`, relative to the mount, without slashes at its ends; a path below the mountpoint is
 * shortened, in place. NULL: the whole mount. */
const char *client_path_under(char *directory, const char *mountpoint);

/* The whole of a file of the control mount, such as "status". */
int client_file(const struct live *live, const char *name, struct str *out);

#endif
