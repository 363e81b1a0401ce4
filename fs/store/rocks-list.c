/* Checks the list of a database's files before RocksDB reads it: version 9.10 reads some damaged ones without end.
 *
 * CURRENT names a MANIFEST. It consists of blocks of 32 KiB with pieces of records: a checksum (crc32c, masked), a
 * length, a kind, and the bytes. Zeros fill the rest of a block. A last piece that is cut off is not damage: the
 * process died while it was written. */
#include "fs/store/rocks-inside.h"

#include "fs/base/cleanup.h"
#include "fs/base/crc32c.h"
#include "fs/base/file.h"
#include "fs/base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum { LIST_BLOCK = 32768, LIST_HEAD = 7, LIST_KINDS = 4, CURRENT_MOST = 64, LIST_MOST = 1 << 30 };

/* A block of `n` bytes; the last one may be shorter. */
static bool is_sound(const unsigned char *block, size_t n)
{
    for (size_t at = 0; n - at >= LIST_HEAD;) {
        const unsigned char *piece = block + at;
        uint32_t crc;
        size_t length = piece[4] | (size_t)piece[5] << 8;
        unsigned kind = piece[6];
        memcpy(&crc, piece, sizeof crc);
        if (kind == 0 && length == 0)
            return true;
        if (length > n - at - LIST_HEAD)
            return n < LIST_BLOCK;
        if (kind == 0 || kind > LIST_KINDS || le32toh(crc) != crc32c_masked(piece + 6, length + 1))
            return false;
        at += LIST_HEAD + length;
    }
    return true;
}

/* -EBADMSG: it cannot be what RocksDB wrote. */
static int read_list(const char *directory, const char *name, size_t most, struct str *bytes)
{
    CLEANUP_STR struct str path = STR_INIT;
    str_addf(&path, "%s/" ROCKS_DATABASE "/%s", directory, name);
    int error = path.failed ? -ENOMEM : file_read(AT_FDCWD, path.data, most, bytes);
    return error == -EFBIG || error == -EINVAL || (!error && !bytes->data) ? -EBADMSG : error;
}

int rocks_check_lists(const char *directory, struct str *why)
{
    CLEANUP_STR struct str name = STR_INIT, list = STR_INIT;
    int error = read_list(directory, "CURRENT", CURRENT_MOST, &name);
    if (error)
        return error == -ENOENT ? 0 : error == -EBADMSG ? str_fail(why, error, "CURRENT is damaged") : error;
    name.data[strcspn(name.data, "\n/")] = '\0';
    error = read_list(directory, name.data, LIST_MOST, &list);
    if (error)
        return error == -ENOENT || error == -EBADMSG ? str_fail(why, -EBADMSG, "CURRENT is damaged") : error;
    for (size_t at = 0; at < list.length; at += LIST_BLOCK)
        if (!is_sound((const unsigned char *)list.data + at,
                      list.length - at < LIST_BLOCK ? list.length - at : LIST_BLOCK))
            return str_fail(why, -EBADMSG, "%s is damaged", name.data);
    return 0;
}
