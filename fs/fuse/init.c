/* Records the INIT handshake.
 *
 * libfuse 3.14 derives max_pages, which limits READs, from max_write, for which the kernel wants room in each read
 * buffer; and libfuse never sends PARALLEL_DIROPS. So the reply is corrected between libfuse and the kernel. */
#include "fs/fuse/init.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { READ_BYTES = 1 << 20 };

int init_record_request(struct init_record *r, const void *request, size_t n)
{
    if (n > sizeof r->request)
        return -EMSGSIZE;
    if (atomic_load(&r->state) != INIT_NONE)
        return 0;
    memcpy(r->request, request, n);
    r->request_length = (uint32_t)n;
    atomic_store(&r->state, INIT_READ);
    return 0;
}

static void reply_adjust(const struct fuse_init_in *in, struct fuse_init_out *out, uint32_t room)
{
    if (out->max_write > room - SLOT_HEADROOM)
        out->max_write = room - SLOT_HEADROOM;
    if (in->flags & FUSE_MAX_PAGES) {
        out->flags |= FUSE_MAX_PAGES;
        out->max_pages = (uint16_t)(READ_BYTES / sysconf(_SC_PAGESIZE));
    }
    out->flags |= in->flags & FUSE_PARALLEL_DIROPS;
}

int init_record_reply(struct init_record *r, const struct iovec *iov, int count, uint32_t room)
{
    if (atomic_load(&r->reply_length) != 0)
        return 0;
    struct {
        struct fuse_out_header header;
        struct fuse_init_out init;
    } reply = {0};
    size_t n = 0;
    for (int i = 0; i < count; i++) {
        if (iov[i].iov_len > sizeof reply - n)
            return -EPROTO;
        memcpy((char *)&reply + n, iov[i].iov_base, iov[i].iov_len);
        n += iov[i].iov_len;
    }
    struct fuse_init_in in = {0};
    size_t given = r->request_length - sizeof(struct fuse_in_header);
    memcpy(&in, r->request + sizeof(struct fuse_in_header), given < sizeof in ? given : sizeof in);
    if (reply.header.error || n < sizeof reply || in.major != FUSE_KERNEL_VERSION)
        return -EPROTO;
    reply_adjust(&in, &reply.init, room);
    memcpy(r->reply, &reply, sizeof reply);
    atomic_store(&r->reply_length, sizeof reply);
    return 0;
}
