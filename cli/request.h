/* What a live mount answers: requests through its control stream, and the files beside it. Never hangs: where the mount
 * does not answer within REQUEST_SECONDS it is -ETIMEDOUT. `control` is the folder, struct live's. */
#ifndef CLI_REQUEST_H
#define CLI_REQUEST_H

#include "fs/base/str.h"

#include <stddef.h>

enum { REQUEST_SECONDS = 20, REQUEST_FILE_SECONDS = 5 };

/* Sends a request (its header line and payload). The reply is appended to `reply`. Where it was refused, `why` has the
 * reason in the mount's words; otherwise what failed. */
int request_send(const char *control, const void *request, size_t n, struct str *reply, struct str *why);

/* The whole of a file of the control mount, such as "status". */
int request_file(const char *control, const char *name, struct str *out);

#endif
