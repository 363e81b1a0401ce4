"""Parses the bytes of one record that `dealfs index` found in a tar, TFRecord file or text."""
import os

BLOCK = 512


def members(data):
    """The members of a tar record by extension, as in WebDataset: {'__key__': ..., 'jpg': ..., 'cls': ...}. The
    extension begins after the first dot of the name."""
    found, at, name = {}, 0, None
    while at + BLOCK <= len(data):
        header, kind = data[at:at + BLOCK], data[at + 156:at + 157]
        size = tar_number(header[124:136])
        content = data[at + BLOCK:at + BLOCK + size]
        if kind in (b'x', b'X'):
            name, size = pax_name(content) or name, size
        elif kind == b'L':
            name = content.rstrip(b'\0')
        elif kind in (b'0', b'\0', b'7'):
            name = name or ustar_name(header)
            folder, slash, base = name.rpartition(b'/')
            key, _, extension = base.partition(b'.') if base[:1] != b'.' else (base, b'', b'')
            found['__key__'] = os.fsdecode(folder + slash + key)
            found[os.fsdecode(extension)] = content
        elif b'1' <= kind <= b'6':
            size = 0
        at += BLOCK + -(-size // BLOCK) * BLOCK
        name = name if kind in (b'x', b'X', b'L', b'K') else None
    return found


def tar_number(field):
    if field[0] & 0x80:
        return int.from_bytes(field[1:], 'big')
    return int(field.split(b'\0')[0].strip() or b'0', 8)


def pax_name(content):
    while content:
        length = int(content.split(b' ', 1)[0])
        key, _, value = content[:length - 1].split(b' ', 1)[1].partition(b'=')
        if key == b'path':
            return value
        content = content[length:]
    return None


def ustar_name(header):
    name, prefix = header[:100].split(b'\0')[0], header[345:500].split(b'\0')[0]
    return prefix + b'/' + name if prefix and header[257:263] == b'ustar\0' else name


def tfrecord(data):
    return data[12:-4]


def line(data):
    return data.rstrip(b'\n')


OPENERS = {None: None, 'fixed': None, 'tar': members, 'tfrecord': tfrecord, 'lines': line}
