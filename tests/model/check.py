#!/usr/bin/python3
"""The reference model: a mount must be indistinguishable from its source.

    check.py SOURCE MOUNT SEED PROCESSES OPERATIONS [PROGRESS]

Each process makes random calls on both and compares what they return, byte by byte; one of them first walks
everything. Prints the first difference and exits 1. Paths are walked by descriptors, so that they may be of
any length. In the directory PROGRESS there is a file for each process at work, which grows with each operation."""
import contextlib
import errno
import mmap
import os
import random
import stat
import sys

K, M = 1 << 10, 1 << 20


class Differs(Exception):
    pass


@contextlib.contextmanager
def progress(directory, name):
    """Yields the function to call after each operation."""
    if directory is None:
        yield lambda: None
        return
    path = os.path.join(directory, name)
    with open(path, 'wb', buffering=0) as file:
        yield lambda: file.write(b'.')
    os.unlink(path)


def walk_to(root, parts):
    """A descriptor of the directory `parts` below `root`, whatever the length of its path."""
    fd = os.dup(root)
    try:
        for part in parts:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
            os.close(fd)
            fd = below
        return fd
    except BaseException:
        os.close(fd)
        raise


def entries(fd):
    with os.scandir(fd) as found:
        listed = [(os.fsencode(e.name), e) for e in found]
        return {name: ('d' if e.is_dir(follow_symlinks=False) else 'l' if e.is_symlink() else
                       'f' if e.is_file(follow_symlinks=False) else '?') for name, e in listed}, len(listed)


def expected(fd, top):
    names, _ = entries(fd)
    return {n: k for n, k in names.items() if k != '?' and not (top and n == b'.dealfs')}


def same_stat(a, b, what):
    for field in ('st_mode', 'st_uid', 'st_gid', 'st_mtime_ns'):
        if getattr(a, field) != getattr(b, field):
            raise Differs(f'{what}: {field} is {getattr(b, field)}, the source has {getattr(a, field)}')
    if not stat.S_ISDIR(a.st_mode) and a.st_size != b.st_size:
        raise Differs(f'{what}: size is {b.st_size}, the source has {a.st_size}')


class Pair:
    """Source and mount, with the list of everything in them."""

    def __init__(self, source, mount):
        self.root = [os.open(p, os.O_RDONLY | os.O_DIRECTORY) for p in (source, mount)]
        self.directories, self.files, self.links = [], [], []

    def both(self, parts):
        return [walk_to(r, parts) for r in self.root]

    def walk(self, done, parts=()):
        source, mount = self.both(parts)
        want = expected(source, not parts)
        got, listed = entries(mount)
        if got != want or listed != len(want):
            raise Differs(f'{parts}: listing differs: {set(got.items()) ^ set(want.items())}, {listed} entries')
        same_stat(os.fstat(source), os.fstat(mount), parts)
        os.close(source)
        os.close(mount)
        done()
        self.directories.append(parts)
        for name, kind in sorted(want.items()):
            if kind == 'd':
                self.walk(done, parts + (name,))
            else:
                (self.files if kind == 'f' else self.links).append(parts + (name,))

    def open_both(self, parts):
        directories = self.both(parts[:-1])
        try:
            return [os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW, dir_fd=d) for d in directories]
        finally:
            for d in directories:
                os.close(d)


def whole(pair, parts, rng):
    fds = pair.open_both(parts)
    chunk = rng.choice([4 * K, 64 * K, 128 * K, M, 3 * M + 1])
    same_stat(os.fstat(fds[0]), os.fstat(fds[1]), parts)
    at = 0
    while True:
        a = os.pread(fds[0], chunk, at)
        b = os.pread(fds[1], chunk, at)
        if a != b:
            raise Differs(f'{parts}: {chunk} bytes at {at}: {len(b)} bytes differ from the source\'s {len(a)}')
        if not a:
            break
        at += len(a)
    for fd in fds:
        os.close(fd)


def piece(pair, parts, rng):
    fds = pair.open_both(parts)
    size = os.fstat(fds[0]).st_size
    for _ in range(8):
        at = rng.randrange(size + 10)
        if rng.random() < 0.5:
            at -= at % rng.choice([4 * K, 128 * K, 4 * M])
        n = rng.choice([1, 100, 4 * K, 128 * K, 200 * K, M, 2 * M])
        if os.pread(fds[0], n, at) != os.pread(fds[1], n, at):
            raise Differs(f'{parts}: pread of {n} at {at}')
    for fd in fds:
        os.close(fd)


def mapped(pair, parts, rng):
    fds = pair.open_both(parts)
    size = os.fstat(fds[0]).st_size
    if size:
        maps = [mmap.mmap(fd, 0, prot=mmap.PROT_READ) for fd in fds]
        for _ in range(8):
            at = rng.randrange(size)
            n = rng.choice([1, 5000, 300 * K])
            if maps[0][at:at + n] != maps[1][at:at + n]:
                raise Differs(f'{parts}: map of {n} at {at}')
        for m in maps:
            m.close()
    for fd in fds:
        os.close(fd)


def dropped(pair, parts, rng):
    """As piece, but the mount's page cache of the file is dropped before, so that the server is asked again."""
    fds = pair.open_both(parts)
    os.posix_fadvise(fds[1], 0, 0, os.POSIX_FADV_DONTNEED)
    for fd in fds:
        os.close(fd)
    piece(pair, parts, rng)


def directory(pair, _, rng):
    parts = rng.choice(pair.directories)
    source, mount = pair.both(parts)
    got, listed = entries(mount)
    if got != expected(source, not parts) or listed != len(got):
        raise Differs(f'{parts}: listing')
    for call in (lambda: os.stat(b'no such name', dir_fd=mount),
                 lambda: os.open(b'new', os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=mount),
                 lambda: os.mkdir(b'new', dir_fd=mount)):
        try:
            call()
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EROFS):
                raise Differs(f'{parts}: {error}') from error
        else:
            raise Differs(f'{parts}: what cannot be was done')
    os.close(source)
    os.close(mount)


def link(pair, _, rng):
    if not pair.links:
        return
    parts = rng.choice(pair.links)
    source, mount = pair.both(parts[:-1])
    if os.readlink(parts[-1], dir_fd=source) != os.readlink(parts[-1], dir_fd=mount):
        raise Differs(f'{parts}: target')
    same_stat(*(os.stat(parts[-1], dir_fd=d, follow_symlinks=False) for d in (source, mount)), parts)
    os.close(source)
    os.close(mount)


def worker(pair, seed, operations, done):
    rng = random.Random(seed)
    small = [f for f in pair.files if b'sparse' not in f[-1]] or pair.files
    for _ in range(operations):
        call = rng.choices([whole, piece, mapped, dropped, directory, link], [4, 4, 3, 4, 1, 1])[0]
        files = pair.files if call in (piece, mapped, dropped) else small
        call(pair, rng.choice(files), rng)
        done()


def main():
    source, mount = (os.fsencode(p) for p in sys.argv[1:3])
    seed, processes, operations = (int(a) for a in sys.argv[3:6])
    directory = sys.argv[6] if len(sys.argv) > 6 else None
    pair = Pair(source, mount)
    with progress(directory, 'walk') as done:
        pair.walk(done)
    children = {}
    for i in range(processes):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                with progress(directory, str(i)) as done:
                    worker(pair, seed * 1000 + i, operations, done)
                status = 0
            except (Differs, OSError) as error:
                print(f'# process {i}: {type(error).__name__}: {error}', file=sys.stderr)
            os._exit(status)
        children[pid] = i
    bad = 0
    while children:
        pid, status = os.wait()
        if children.pop(pid, None) is not None and status:
            bad += 1
    print(f'{len(pair.files)} files, {len(pair.directories)} directories, {len(pair.links)} links, '
          f'{processes} processes: {bad} failed')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
