#include "mpi/looks.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOKED_MOST (UINT64_C(64) << 20) /* if more has changed, the leader looks by itself */

struct looks {
    const struct members *members;
    uint32_t leader;
    int fd; /* of the results; -1: none */
};

/* Only nodes that have cached the leader's catalog know which files to look at. */
static bool can_look(const struct looks *l, uint32_t node)
{
    static const struct digest none;
    const struct wire_member *m = &l->members->member[node], *leader = &l->members->member[l->leader];
    return m->state == MEMBER_UNMOUNTED && leader->state == MEMBER_UNMOUNTED &&
           digest_equal(&m->versions, &leader->versions) && !digest_equal(&m->versions, &none);
}

/* If this fails, the leader also looks at this part. */
static uint64_t look_here(struct looks *l, struct courier_helper *helper, uint32_t part, uint32_t parts)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct stat st = {.st_size = 0};
    l->fd = memfd_create("dealfs-looked", MFD_CLOEXEC);
    int error = l->fd < 0 ? -errno : helper_look(helper, part, parts, l->fd, &why);
    if (!error && fstat(l->fd, &st) == 0 && (uint64_t)st.st_size <= LOOKED_MOST)
        return (uint64_t)st.st_size;
    if (error)
        log_warning("check a part of the source: %s", why.length ? why.data : strerror(-error));
    if (l->fd >= 0 && ftruncate(l->fd, 0) < 0)
        close(steal_fd(l->fd));
    return 0;
}

/* Append one node's results to the leader's file. */
static int hand_over(const struct looks *l, uint32_t from, uint64_t size)
{
    const struct nodes *nodes = l->members->nodes;
    bool has = nodes->me == from, wants = nodes->me == l->leader;
    CLEANUP_FREE char *bytes = wants || has ? malloc(size) : NULL;
    int mine = (wants || has) && !bytes ? -ENOMEM : 0;
    if (!mine && has && pread(l->fd, bytes, size, 0) != (ssize_t)size)
        mine = -EIO;
    int error = agree_on(nodes, mine, NULL);
    if (!error)
        error = agree_share_some(nodes, from, wants, bytes, size);
    if (!error && wants && l->fd >= 0 && lseek(l->fd, 0, SEEK_END) >= 0 && file_write_all(l->fd, bytes, size) < 0)
        log_warning("take over the scan result of %s: %s", agree_name(nodes, from), strerror(errno));
    return error;
}

int looks_share(const struct members *members, struct courier_helper *helper, uint32_t leader, int *looked)
{
    struct looks l = {members, leader, -1};
    const struct nodes *nodes = members->nodes;
    uint32_t parts = 0, part = 0;
    uint64_t size = 0;
    CLEANUP_FREE uint64_t *sizes = NULL;
    for (uint32_t i = 0; i < nodes->count; i++) {
        part += i < nodes->me && can_look(&l, i);
        parts += can_look(&l, i);
    }
    if (parts < 2)
        return 0;
    if (can_look(&l, nodes->me))
        size = look_here(&l, helper, part, parts);
    *looked = l.fd;
    int error = agree_collect(nodes, 0, NULL, &size, sizeof size, &sizes);
    for (uint32_t i = 0; i < nodes->count && !error; i++)
        if (sizes[i] > LOOKED_MOST)
            error = agree_refuse(nodes, "%s: its scan result is malformed", agree_name(nodes, i));
        else if (i != leader && sizes[i] > 0)
            error = hand_over(&l, i, sizes[i]);
    return error;
}
