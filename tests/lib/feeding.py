"""A loader of a plan's list, and a look at what the page cache has of it.

    feeding.py cached MNT LIST FROM TO          how many of these positions' files are in the page cache, whole

        --seen FILE      or were when this was asked before with that file: the kernel may reclaim pages at any time

    feeding.py drop MNT LIST                    none is, any more
    feeding.py read MNT LIST FROM TO [OPTION…]  read them, in their order

        --source SRC     the bytes must be those of SRC
        --reverse        from TO down to FROM
        --random SEED    in another order
        --threads N      any of N threads takes the next one
        --pieces BYTES   with so many reads of a file
        --rounds N       repeat it N times

LIST is a file with positions in the list of samples, as `plan` gives them."""
import argparse
import ctypes
import mmap
import os
import random
import sys
import threading

libc = ctypes.CDLL(None, use_errno=True)


def paths_of(mount, plan):
    with open(f'{mount}/.dealfs/samples', 'rb') as f:
        names = f.read().split(b'\n')
    with open(plan) as f:
        return [os.path.join(os.fsencode(mount), names[int(i)]) for i in f.read().split()]


def is_cached(path):
    """Asked without touching a page."""
    fd = os.open(path, os.O_RDONLY)
    try:
        size = os.fstat(fd).st_size
        if size == 0:
            return True
        libc.mmap.restype = ctypes.c_void_p
        address = libc.mmap(None, ctypes.c_size_t(size), mmap.PROT_READ, mmap.MAP_SHARED, fd, ctypes.c_long(0))
        pages = (size + mmap.PAGESIZE - 1) // mmap.PAGESIZE
        there = (ctypes.c_ubyte * pages)()
        if libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), there):
            raise OSError(ctypes.get_errno(), 'mincore')
        libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(size))
        return all(page & 1 for page in there)
    finally:
        os.close(fd)


def seen_cached(paths, memory):
    seen = set()
    if memory and os.path.exists(memory):
        with open(memory) as f:
            seen.update(map(int, f.read().split()))
    seen.update(i for i, path in enumerate(paths) if is_cached(path))
    if memory:
        with open(memory, 'w') as f:
            print(*seen, file=f)
    return seen


def read_file(path, piece):
    fd = os.open(path, os.O_RDONLY)
    parts = []
    try:
        while True:
            part = os.read(fd, piece)
            if not part:
                return b''.join(parts)
            parts.append(part)
    finally:
        os.close(fd)


def read_all(paths, options):
    turn, lock, failures = iter(paths), threading.Lock(), []

    def loader():
        while not failures:
            with lock:
                path = next(turn, None)
            if path is None:
                return
            try:
                got = read_file(path, options.pieces)
                if options.source:
                    original = os.path.join(os.fsencode(options.source),
                                            os.path.relpath(path, os.fsencode(options.mount)))
                    if got != read_file(original, 1 << 20):
                        failures.append(f'{path}: other bytes than in the source')
            except OSError as error:
                failures.append(f'{path}: {error}')

    threads = [threading.Thread(target=loader) for _ in range(options.threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for failure in failures[:5]:
        print(failure)
    return not failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('command', choices=('cached', 'drop', 'read'))
    parser.add_argument('mount')
    parser.add_argument('plan')
    parser.add_argument('first', type=int, nargs='?', default=0)
    parser.add_argument('end', type=int, nargs='?')
    parser.add_argument('--seen')
    parser.add_argument('--source')
    parser.add_argument('--reverse', action='store_true')
    parser.add_argument('--random', type=int)
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--pieces', type=int, default=1 << 20)
    parser.add_argument('--rounds', type=int, default=1)
    options = parser.parse_args()
    paths = paths_of(options.mount, options.plan)[options.first:options.end]
    if options.command == 'cached':
        print(len(seen_cached(paths, options.seen)))
        return 0
    if options.command == 'drop':
        for path in paths:
            fd = os.open(path, os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)
        return 0
    if options.reverse:
        paths.reverse()
    if options.random is not None:
        random.Random(options.random).shuffle(paths)
    good = True
    for _ in range(options.rounds):
        good = good and read_all(paths, options)
    return 0 if good else 1


sys.exit(main())
