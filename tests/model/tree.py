#!/usr/bin/python3
"""Make a random source tree from a seed: tree.py DIRECTORY SEED [--compressible] [--small]

Names, sizes and kinds are those that break file systems: newlines, bytes that are no UTF-8, 255 bytes, paths beyond
PATH_MAX, sizes around every limit of the store, sparse files, hard links, dangling links, fifos and sockets."""
import os
import random
import socket
import sys

K, M = 1 << 10, 1 << 20
SIZES = [0, 1, 4095, 4096, 4097, 128 * K - 1, 128 * K, 128 * K + 1, M - 1, M, M + 1,
         4 * M - 1, 4 * M, 4 * M + 1]
LARGE = [64 * M - 1, 64 * M, 64 * M + 1]
NAMES = [b'plain.jpg', b'two words', b'new\nline', b'\xff\xfe\x80', 'größe-\u6f22\u5b57'.encode(), b'-rf',
         b'--', b'a' * 255, b'%2F', b'quote"\'`$x', b'tab\tback\\slash', b'.hidden', b'~', b'*', b'a',
         b'a-b', b'a.', b' ']


def content(rng, size, compressible):
    if compressible:
        word = rng.randbytes(61)
        return (word * (size // len(word) + 1))[:size]
    return rng.randbytes(size)


def write(directory, name, data, rng):
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=directory)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view):]
        os.fchmod(fd, rng.choice([0o644, 0o444, 0o755, 0o600]))
        os.utime(fd, ns=(0, rng.randrange(-10**18, 2 * 10**18)))
    finally:
        os.close(fd)


def write_sparse(directory, name, size, rng):
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=directory)
    os.ftruncate(fd, size)
    for _ in range(20):
        at = rng.randrange(size)
        os.pwrite(fd, rng.randbytes(min(5000, size - at)), at)
    os.close(fd)


def fresh(directory, rng):
    """A name that is not taken: one of the odd ones, or an odd one with a number."""
    taken = set(os.listdir(os.fsencode(f'/proc/self/fd/{directory}')))
    for _ in range(40):
        name = rng.choice(NAMES)
        if rng.random() < 0.6:
            name = name[:200] + b'%d' % rng.randrange(1000)
        if name not in taken:
            return name
    raise RuntimeError('no name is free')


def fill(directory, rng, depth, args):
    for _ in range(rng.randrange(2, 9)):
        size = rng.choice(SIZES) if rng.random() < 0.6 else rng.randrange(300 * K)
        if args['small']:
            size = min(size, 300 * K)
        write(directory, fresh(directory, rng), content(rng, size, args['compressible']), rng)
    for target in rng.sample([b'plain.jpg', b'..', b'/nowhere/at/all', b'a' * 300, b'dangling', b'.'],
                             rng.randrange(3)):
        os.symlink(target, fresh(directory, rng), dir_fd=directory)
    if rng.random() < 0.4:
        os.mkfifo(fresh(directory, rng), dir_fd=directory)
    if depth == 0:
        return
    for _ in range(rng.randrange(1, 4)):
        name = fresh(directory, rng)
        os.mkdir(name, 0o755, dir_fd=directory)
        if rng.random() < 0.15:
            continue  # an empty directory
        below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=directory)
        fill(below, rng, depth - 1, args)
        os.close(below)


def deep(directory, rng):
    """A chain of directories whose path is longer than PATH_MAX, with a file at its end."""
    fd = os.dup(directory)
    for _ in range(25):
        os.mkdir(b'd' * 200, dir_fd=fd)
        below = os.open(b'd' * 200, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd = below
    write(fd, b'bottom', rng.randbytes(1234), rng)
    os.close(fd)


def main():
    root, seed = os.fsencode(sys.argv[1]), int(sys.argv[2])
    args = {'compressible': '--compressible' in sys.argv, 'small': '--small' in sys.argv}
    rng = random.Random(seed)
    os.makedirs(root, exist_ok=True)
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    fill(fd, rng, 3, args)
    os.mkdir(b'class', dir_fd=fd)
    below = os.open(b'class', os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
    for size in SIZES if not args['small'] else SIZES[:9]:
        write(below, b'size-%d' % size, content(rng, size, args['compressible']), rng)
    if not args['small']:
        for size in LARGE:
            write_sparse(below, b'sparse-%d' % size, size, rng)
    os.link(b'size-4096', b'hard link', src_dir_fd=below, dst_dir_fd=fd)
    os.close(below)
    deep(fd, rng)
    unix = socket.socket(socket.AF_UNIX)
    os.fchdir(fd)
    unix.bind('socket')
    os.close(fd)


if __name__ == '__main__':
    main()
