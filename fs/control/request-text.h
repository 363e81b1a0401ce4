/* The bytes of a request. From 1 MiB on they are in a file without a name, so that uploads use no anonymous memory. */
#ifndef FS_CONTROL_REQUEST_TEXT_H
#define FS_CONTROL_REQUEST_TEXT_H

#include "fs/base/scratch.h"
#include "fs/base/str.h"

struct request_text {
    const char *data; /* never NULL after an add; a zero follows the bytes */
    size_t length;
    struct str small;    /* the bytes, until there is a file */
    struct scratch file; /* a mapping of the file, which may be longer than the bytes */
    int fd;              /* of the file */
};

#define REQUEST_TEXT_INIT                                                                                              \
    {                                                                                                                  \
        0                                                                                                              \
    }

/* `directory`: see scratch_open. 0; or -ENOMEM, -ENOSPC, …, and nothing was added. */
int request_text_add(struct request_text *text, const char *directory, const char *bytes, size_t n);
struct request_text request_text_take(struct request_text *text); /* leaves an empty text */
void request_text_fini(struct request_text *text);

#endif
