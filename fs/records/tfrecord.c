/* TFRecord: for each record u64 length, u32 checksum of the length, the data, u32 checksum of the data; little-endian.
 * The checksums of the lengths are checked, those of the data are left to the reader. */
#include "fs/records/container.h"

#include <inttypes.h>

enum { HEADER = 12, FOOTER = 4 };

uint32_t tfrecord_checksum(const void *bytes, size_t n)
{
    static const uint32_t table[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
        0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    const unsigned char *p = bytes;
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8;
}

static uint64_t read_little(const unsigned char *p, int n)
{
    uint64_t number = 0;
    while (n-- > 0)
        number = number << 8 | p[n];
    return number;
}

static bool tfrecord_recognise(const unsigned char *head, size_t n, uint64_t size)
{
    return size >= HEADER + FOOTER && n >= HEADER && tfrecord_checksum(head, 8) == read_little(head + 8, 4);
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
        if (tfrecord_checksum(header, 8) != read_little(header + 8, 4))
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
