/* TFRecord: for each record u64 length, u32 checksum of the length, the data, u32 checksum of the data; little-endian.
 * The checksums of the lengths are checked, those of the data are left to the reader. */
#include "fs/records/container.h"

#include "fs/base/crc32c.h"

#include <inttypes.h>

enum { HEADER = 12, FOOTER = 4 };

static uint64_t read_little(const unsigned char *p, int n)
{
    uint64_t number = 0;
    while (n-- > 0)
        number = number << 8 | p[n];
    return number;
}

static bool tfrecord_recognise(const unsigned char *head, size_t n, uint64_t size)
{
    return size >= HEADER + FOOTER && n >= HEADER && crc32c_masked(head, 8) == read_little(head + 8, 4);
}

static int tfrecord_scan(struct record_scan *s)
{
    for (uint64_t at = 0; at < s->size;) {
        if (s->size - at < HEADER + FOOTER)
            return scan_broken(s, at, "a record is cut off");
        const unsigned char *header = scan_look(s, at, HEADER);
        if (!header)
            return s->error;
        uint64_t length = read_little(header, 8), left = s->size - at - HEADER - FOOTER;
        if (crc32c_masked(header, 8) != read_little(header + 8, 4))
            return scan_broken(s, at, "the checksum of a length does not match");
        if (length > left)
            return scan_broken(s, at, "a record of %" PRIu64 " bytes ends beyond the end of the file", length);
        int error = scan_found(s, at, HEADER + length + FOOTER, NULL, 0);
        if (error)
            return error;
        at += HEADER + length + FOOTER;
    }
    return 0;
}

const struct container_format container_tfrecord = {"tfrecord", "tfrecord", tfrecord_recognise, tfrecord_scan};
