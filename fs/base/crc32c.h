/* The checksum of TFRecord and of RocksDB's lists: crc32c, rotated and added to, as both do. */
#ifndef FS_BASE_CRC32C_H
#define FS_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c_masked(const void *bytes, size_t n);

#endif
