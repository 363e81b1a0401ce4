/* Small requests are strings, large ones mapped files. */
#include "fs/control/request-text.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { SMALL_MOST = 1 << 20, GROW_MOST = 64 << 20 };

static int add_small(struct request_text *t, const char *bytes, size_t n)
{
    str_add(&t->small, bytes, n);
    if (t->small.failed) {
        t->small.failed = false;
        return -ENOMEM;
    }
    t->data = t->small.data;
    t->length = t->small.length;
    return 0;
}

static int begin_file(struct request_text *t, const char *directory)
{
    int fd = scratch_open(directory);
    int error = fd < 0 ? -errno : scratch_grow(fd, 2 * SMALL_MOST, &t->file);
    if (error) {
        if (fd >= 0)
            close(fd);
        return error;
    }
    if (t->length)
        memcpy(t->file.bytes, t->small.data, t->length);
    str_fini(&t->small);
    t->data = t->file.bytes;
    t->fd = fd;
    return 0;
}

int request_text_add(struct request_text *t, const char *directory, const char *bytes, size_t n)
{
    int error = 0;
    if (!t->file.bytes && t->length + n <= SMALL_MOST)
        return add_small(t, bytes, n);
    if (!t->file.bytes)
        error = begin_file(t, directory);
    size_t room = t->file.length, more = room < GROW_MOST ? room : GROW_MOST;
    if (!error && n >= room - t->length) /* like a string, the bytes are followed by a zero */
        error = scratch_grow(t->fd, room + (n < more ? more : n + 1), &t->file);
    if (error)
        return error;
    memcpy((char *)t->file.bytes + t->length, bytes, n);
    t->data = t->file.bytes;
    t->length += n;
    return 0;
}

struct request_text request_text_take(struct request_text *t)
{
    struct request_text taken = *t;
    *t = (struct request_text)REQUEST_TEXT_INIT;
    return taken;
}

void request_text_fini(struct request_text *t)
{
    if (t->file.bytes)
        close(t->fd);
    scratch_fini(&t->file);
    str_fini(&t->small);
    *t = (struct request_text)REQUEST_TEXT_INIT;
}
