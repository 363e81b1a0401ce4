"""TFRecord, as its documentation describes it: length, its checksum, data, its checksum; all little-endian."""
import struct

TABLE = []
for each in range(256):
    for _ in range(8):
        each = each >> 1 ^ (0x82f63b78 if each & 1 else 0)
    TABLE.append(each)


def crc(data):
    """The masked CRC-32C."""
    c = 0xffffffff
    for byte in data:
        c = TABLE[(c ^ byte) & 255] ^ c >> 8
    c ^= 0xffffffff
    return (((c >> 15 | c << 17) + 0xa282ead8) & 0xffffffff).to_bytes(4, 'little')


def framed(data):
    length = struct.pack('<Q', len(data))
    return length + crc(length) + data + crc(data)
