/* Requests to a live mount through its control stream, and reads of its control files. Never hangs: if the mount does
 * not answer within REQUEST_SECONDS, the result is -ETIMEDOUT.
 *
 * Without allow_other, FUSE lets only the mount's user in, not even root: so root becomes that user for a request. */
#ifndef CLI_LIVE_CLIENT_H
#define CLI_LIVE_CLIENT_H

#include "cli/live/live.h"

enum { REQUEST_SECONDS = 20, REQUEST_FILE_SECONDS = 5 };

/* For a command: the mount of a path, if its health is not worse than `worst`; a mount of LIVE_HUNG or better has a
 * `control`. Returns an exit status; after a failure, which was printed, `live` is empty. */
int client_find(const char *mountpoint, enum live_health worst, struct live *live);
/* From here on root is the mount's user permanently, and accesses the mount without a guard. Returns an exit status. */
int client_become(struct live *live);

/* A request whose server died is sent again to the next server: true, for a few servers. Such a death is recognised by
 * ESTALE without a reason. All requests may be repeated. client_send, client_wait and client_file do this. */
bool client_asks_again(int error, size_t reason, int *servers);
/* After a failed request, the next read of its stream returns the reason. `why` is empty if there is none. */
void client_reason(int control, struct str *why);

/* Sends a request (header line and payload), and appends the reply to `reply`. If it was rejected, `why` has the
 * mount's reason; else what failed. */
int client_send(const struct live *live, const struct str *request, struct str *reply, struct str *why);

/* The same without time limit and without guard, after client_become. The contents of the file `payload` follow the
 * request; -1: none. A signal that is caught (interrupt.h) ends it with -EINTR. */
int client_wait(const struct live *live, const struct str *request, int payload, struct str *reply, struct str *why);
/* Appends " key=value" for a word KEY=VALUE, escaped for a request's line. False: not such a word. */
bool client_add_pair(struct str *line, const char *word);
/* A directory for `under=`, relative to the mount, without slashes at its ends; a path below the mountpoint is
 * shortened in place. NULL: the whole mount. */
const char *client_path_under(char *directory, const char *mountpoint);

/* The contents of a file of the control mount, such as "status". */
int client_file(const struct live *live, const char *name, struct str *out);
/* The same file of many mounts, all at the same time: those that hang take REQUEST_FILE_SECONDS together. `answers` has
 * `count` elements; the caller frees their texts. -ENOENT: it has no control mount. */
struct client_answer {
    int error;
    struct str text;
};
void client_files(const struct live *live, size_t count, const char *name, struct client_answer *answers);

#endif
